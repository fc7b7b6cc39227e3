"""Search of a registry for the entries that match a name or a type, wildcards included."""

import fnmatch
import typing
from collections.abc import Iterator, Mapping

from .budget import Budget
from .resource_settings import SETTINGS

Json = typing.Any
_COMPARED = 32
"""Characters of a pattern or a name that one step of work compares."""


MOST_CHARACTERS = 1000
"""Characters of a pattern with wildcards.  Names have 255, and Python compiles a long pattern in quadratic
time: 40 KB with open brackets take 15 s."""


def fits(name: str, pattern: str) -> bool:
    """Return whether the pattern matches the name; a pattern that is too long is only a name."""
    return name == pattern or (len(pattern) <= MOST_CHARACTERS and fnmatch.fnmatchcase(name, pattern))


class WildNames:
    """The names with wildcards in the maps of one registry; each map is searched once."""

    def __init__(self) -> None:
        self._found: dict[int, list[str]] = {}

    def of(self, entries: Mapping[str, Json]) -> list[str]:
        """Return the names with wildcards, longer ones first.

        :param entries: a map of the registry: it must live as long as this does.
        """
        if id(entries) not in self._found:
            self._found[id(entries)] = sorted(filter(_is_pattern, entries), key=len, reverse=True)
        return self._found[id(entries)]


def matching(entries: Mapping[str, Json], name: str, wild: WildNames, budget: Budget) -> Iterator[str]:
    """Yield the keys that match a name: the name itself, and patterns."""
    if name in entries:
        yield name
    for key in wild.of(entries):
        budget.step(1 + len(key) // _COMPARED)
        if key != name and fits(name, key):
            yield key


def mapped(entries: Mapping[str, Json], type_name: str, wild: WildNames, budget: Budget) -> str | None:
    """Return the name that the type is mapped to, None if it is not mapped."""
    exact = entries.get(type_name)
    if isinstance(exact, str) and type_name not in SETTINGS:
        return exact
    budget.step(1 + len(type_name) // _COMPARED)
    for key in wild.of(entries):
        budget.step(1 + len(key) // _COMPARED)
        if key.endswith("*") and isinstance(entries[key], str) and type_name.startswith(key[:-1]):
            target = str(entries[key])
            return target[:-1] + type_name[len(key) - 1 :] if target.endswith("*") else target
    return None


def _is_pattern(key: str) -> bool:
    return "*" in key or "?" in key or "[" in key
