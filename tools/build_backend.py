"""The build backend: that of setuptools, with the programs' manual in all that is built.

Man pages and completions are made from the argument parsers, which need Stoker's own requirements.  So a
build of a checkout requires them, too.  A source archive has the manual already, and needs setuptools only.
An editable installation has no manual.
"""

import configparser
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
MANUAL = pathlib.Path("share")
"""The folder of the manual, from which setup.cfg takes it; frontends run hooks in the root of the sources."""
COMPLETIONS = "shtab"
"""The library that writes the completions; setup.cfg says which versions, among those for tests."""
Settings = Mapping[str, object] | None


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Return the requirements of setuptools, and those of the manual where it is still to be made."""
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_requirements_of_manual()]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return the requirements of setuptools, and those of the manual where it is still to be made."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_requirements_of_manual()]


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build a source archive that has the manual; return its name."""
    with _manual():
        return str(build_meta.build_sdist(sdist_directory, config_settings))


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that has the manual; return its name."""
    with _manual():
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


def _has_manual() -> bool:
    """Return whether the sources are those of a source archive: a checkout has no PKG-INFO."""
    return pathlib.Path("PKG-INFO").exists()


def _requirements_of_manual() -> list[str]:
    if _has_manual():
        return []
    setup = configparser.ConfigParser()
    setup.read("setup.cfg")
    needed = setup["options"]["install_requires"].strip().splitlines()
    for_tests = setup["options.extras_require"]["test"].strip().splitlines()
    return [*needed, *(line for line in for_tests if line.startswith(COMPLETIONS))]


@contextlib.contextmanager
def _manual() -> Iterator[None]:
    """Make the manual for the time of a build; an older one, of a build that was killed, is not used."""
    if _has_manual():
        yield
        return
    shutil.rmtree(MANUAL, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            # The sources are the package stoker, whatever the name of their folder is.
            pathlib.Path(folder, "stoker").symlink_to(pathlib.Path.cwd())
            path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
            command = [sys.executable, "-W", "ignore", "tools/manual.py", str(MANUAL)]
            subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)
        yield
    finally:
        shutil.rmtree(MANUAL, ignore_errors=True)
