"""Print a constraints file: this environment's versions of all that an installation may have.

    python tools/constraints.py >constraints.txt

These are Stoker's requirements and those of its extras for operators and clients, with theirs in turn.
"""

import importlib.metadata
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("postgresql", "mysql", "etcd", "zookeeper", "redis", "memcached", "client")
"""The extras of Stoker that are no tools of its development."""
HEAD = """\
# The versions that the tests have run with, of all that Stoker and its extras for operators require, for
# `pip install -c constraints.txt`.
# `make constraints` makes this file.
"""


def requirements_of(name: str, extras: Iterable[str]) -> list[Requirement]:
    """Return the requirements of an installed package that count on this Python, with those of some extras.

    :raises importlib.metadata.PackageNotFoundError: the package is not installed.
    """
    requirements = map(Requirement, importlib.metadata.requires(name) or [])
    environments = [{"extra": extra} for extra in ("", *extras)]
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments))
    ]


def versions(name: str, extras: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each package that a package requires, directly or not, by name."""
    waiting = requirements_of(name, extras)
    read: set[tuple[str, frozenset[str]]] = set()
    installed: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        required = canonicalize_name(requirement.name)
        if (required, frozenset(requirement.extras)) in read or required == name:
            continue
        read.add((required, frozenset(requirement.extras)))
        installed[required] = importlib.metadata.version(required)
        waiting += requirements_of(required, requirement.extras)
    return dict(sorted(installed.items()))


def constraints() -> str:
    """Return the text of the file."""
    lines = (f"{name}=={version}\n" for name, version in versions("stoker", EXTRAS).items())
    return HEAD + "".join(lines)


if __name__ == "__main__":
    print(constraints(), end="")
