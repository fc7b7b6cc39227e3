"""A wheel of the checkout, built without a download."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "share", "*.egg-info", "var", "__pycache__")


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
    """Build a wheel in an empty folder, from a copy, for a build leaves files; return its path."""
    shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(folder), str(folder / "source")], check=True)
    (path,) = folder.glob("*.whl")
    return path
