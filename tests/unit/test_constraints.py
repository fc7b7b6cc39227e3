"""The constraints file: it is the set of versions that the tests run with."""

import configparser
import importlib.metadata
import pathlib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[2]
DEVELOPMENT = {"docs", "test"}
"""Extras that no operator installs."""


def pins() -> dict[str, str]:
    """Return the version of each package in the file."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def requirements() -> list[Requirement]:
    """Return all that setup.cfg requires of an installation, with each extra for operators."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    texts = [
        setup["options"]["install_requires"],
        *(extras[name] for name in extras if name not in DEVELOPMENT),
    ]
    return [Requirement(line) for text in texts for line in text.strip().splitlines()]


def test_each_requirement_is_pinned_within_its_range() -> None:
    versions = pins()
    outside = [
        f"{requirement} is {versions.get(canonicalize_name(requirement.name), 'missing')}"
        for requirement in requirements()
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"))
    ]
    assert outside == [], "run `make constraints`"


def test_the_tests_run_with_these_versions() -> None:
    installed = {name: importlib.metadata.version(name) for name in pins()}
    assert installed == pins(), "run `make constraints`, and then the tests"
