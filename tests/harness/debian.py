"""Debian's packages on this machine, and those that a command of the Makefile installs."""

import dataclasses
import pathlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).parents[2]
DPKG = pathlib.Path("/var/lib/dpkg")
BASE = ("apt", "ca-certificates", "git", "make", "python3-venv")
"""Packages that README.md expects of a machine, besides a minimal Debian."""
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]+")
_LINE = re.compile(r"^(\S+) \[platform:dpkg ([^]]+)\]$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Package:
    """An installed package.

    :ivar is_minimal: every Debian has it.
    :ivar requirements: for each dependency the names of the packages of which one is enough.
    :ivar provides: other names for it.
    """

    name: str
    is_minimal: bool = False
    requirements: tuple[tuple[str, ...], ...] = ()
    provides: tuple[str, ...] = ()


def packages_of_profiles(profiles: Collection[str], text: str) -> tuple[set[str], set[str]]:
    """Return the packages of bindep.txt that belong to one of the profiles, and the others."""
    lines = {name: set(words.split()) for name, words in _LINE.findall(text)}
    chosen = {name for name, words in lines.items() if not words.isdisjoint(profiles)}
    return chosen, lines.keys() - chosen


def installed(status: str) -> dict[str, Package]:
    """Return the packages of dpkg's database, by name."""
    packages = {}
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            depends = ", ".join(filter(None, (fields.get("Pre-Depends"), fields.get("Depends"))))
            packages[fields["Package"]] = Package(
                fields["Package"],
                fields.get("Essential") == "yes" or fields.get("Priority") == "required",
                tuple(tuple(_names(group, "|")) for group in depends.split(",") if group.strip()),
                tuple(_names(fields.get("Provides", ""), ",")),
            )
    return packages


def _names(text: str, separator: str) -> Iterator[str]:
    for item in text.split(separator):
        if match := _NAME.match(item.strip()):
            yield match.group()


def closure(
    packages: Mapping[str, Package], names: Iterable[str], *, without: Collection[str] = ()
) -> set[str]:
    """Return these packages, those of every Debian, and all that they depend on, as far as installed.

    Of a choice it is the first that is installed, for apt takes it; nothing is recommended.

    :param without: packages that another command installs.  Where they, or what needs them, are one choice
        of several, apt would have taken another without this command.
    """
    providers = {name: package.name for package in packages.values() for name in package.provides}
    providers |= {name: name for name in packages}
    waiting = [*names, *(name for name, package in packages.items() if package.is_minimal)]
    beyond = _needing(packages, providers, set(without) - {*waiting})
    reached: set[str] = set()
    while waiting:
        name = providers.get(waiting.pop(), "")
        if name and name not in reached:
            reached.add(name)
            for choice in packages[name].requirements:
                present = [providers[one] for one in choice if one in providers]
                waiting += [one for one in present if len(choice) == 1 or one not in beyond][:1]
    return reached


def _needing(
    packages: Mapping[str, Package], providers: Mapping[str, str], names: Collection[str]
) -> set[str]:
    """Return these packages with all that cannot be installed without them."""
    needing: set[str] = set()
    more = set(names)
    while more:
        needing |= more
        more = {
            package.name
            for package in packages.values()
            for choice in package.requirements
            if needing.issuperset(present := {providers[one] for one in choice if one in providers})
            and present
        } - needing
    return needing


def files(names: Collection[str]) -> set[str]:
    """Return the paths of the files of installed packages, as a system with one /usr has them."""
    paths: set[str] = set()
    for listed in (DPKG / "info").glob("*.list"):
        if listed.name.removesuffix(".list").partition(":")[0] in names:
            paths.update(map(in_usr, listed.read_text().splitlines()))
    return paths


def in_usr(path: str) -> str:
    """Return the path of a file of the system below /usr, to which /bin, /lib and /sbin lead."""
    return f"/usr{path}" if path.startswith(("/bin/", "/lib", "/sbin/")) else path
