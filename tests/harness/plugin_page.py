"""The package of doc/plugins.md, installed as the page says."""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "plugins.md"
FILE = re.compile(r"^```(?:toml|python)\n(# (\S+)\n.*?)^```$", re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"^```yaml\n(heat_template_version.*?)^```$", re.DOTALL | re.MULTILINE)


def install(directory: pathlib.Path) -> pathlib.Path:
    """Write the files of the page and install them; the folder for PYTHONPATH.

    :param directory: gets the package's source, and the folder.
    """
    source = directory / "acme-stoker"
    site = directory / "site"
    files = FILE.findall(PAGE.read_text())
    assert len(files) == 3
    for text, name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "acme_stoker/__init__.py").touch()
    options = ["--no-deps", "--no-build-isolation", "--target", site]
    pip = [sys.executable, "-m", "pip", "install", *options, source]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    return site


def template(resource_type: str) -> str:
    """The page's template that has a resource of this type."""
    [matching] = [text for text in TEMPLATE.findall(PAGE.read_text()) if f"type: {resource_type}\n" in text]
    return str(matching)
