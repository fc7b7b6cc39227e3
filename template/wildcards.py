"""Wildcards in the names of an environment's registry."""

import fnmatch
import functools
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..shapes import JsonMap
from .budget import Budget

COMPARED = 32
"""Characters of a pattern or a name that one step of work compares."""
MOST_CHARACTERS = 1000
"""Characters of a pattern with wildcards; a longer one is only a name.  Names have 255, and Python compiles a
long pattern in quadratic time: 40 KB with open brackets take 15 s."""
_REMEMBERED = 1000
"""Patterns whose expressions are kept."""
_COMPILE = 200
_COMPILED_AT_ONCE = 25
"""Steps of work that a pattern with ``?`` or ``[`` takes once: these, and its squared length by this."""


class Pattern(typing.NamedTuple):
    """Name with wildcards in a map of the registry.

    :ivar steps: steps of work that a comparison takes.
    :ivar fits: returns whether the pattern matches a name.
    """

    key: str
    steps: int
    fits: Callable[[str], bool]


def compiled(key: str, budget: Budget) -> Pattern:
    """Return a pattern, charged for its compilation.

    :raises LimitExceeded: the request takes too much work.
    """
    steps = 1 + len(key) // COMPARED
    if len(key) <= MOST_CHARACTERS:
        if _is_compiled(key):
            budget.step(_COMPILE + len(key) ** 2 // _COMPILED_AT_ONCE)
        else:
            steps += key.count("*")
    return Pattern(key, steps, _comparison(key))


def fits(name: str, pattern: str) -> bool:
    """Return whether the pattern matches the name; a pattern that is too long is only a name."""
    return name == pattern or _comparison(pattern)(name)


@functools.lru_cache(_REMEMBERED)
def _comparison(key: str) -> Callable[[str], bool]:
    """Return the comparison of names with a pattern; only what needs it becomes an expression."""
    if len(key) > MOST_CHARACTERS or not _is_pattern(key):
        return lambda name: name == key
    if _is_compiled(key):
        matches = re.compile(fnmatch.translate(key)).match
        return lambda name: matches(name) is not None
    first, *middle, last = key.split("*")
    if not middle and not last:
        return lambda name: name.startswith(first)
    return lambda name: _in_order(name, first, middle, last)


def _is_compiled(key: str) -> bool:
    return "?" in key or "[" in key


def _in_order(name: str, first: str, middle: Sequence[str], last: str) -> bool:
    """Return whether a name begins and ends with two texts, and has more between them, in order."""
    end = len(name) - len(last)
    at = len(first)
    if not (name.startswith(first) and name.endswith(last)):
        return False
    for text in middle:
        at = name.find(text, at, end)
        if at < 0:
            return False
        at += len(text)
    return at <= end


@dataclass
class WildNames:
    """The names with wildcards in the maps of one registry; each map is searched once."""

    _names: dict[int, list[str]] = field(default_factory=dict)
    _patterns: dict[int, tuple[int, list[Pattern]]] = field(default_factory=dict)

    def of(self, entries: JsonMap) -> list[str]:
        """Return the names with wildcards, longer ones first.

        :param entries: a map of the registry, which must live as long as this object.
        """
        if id(entries) not in self._names:
            self._names[id(entries)] = sorted(filter(_is_pattern, entries), key=len, reverse=True)
        return self._names[id(entries)]

    def patterns(self, entries: JsonMap, budget: Budget) -> list[Pattern]:
        """Return the names with wildcards as patterns, longer ones first, charged for a comparison with each.

        :param entries: as for `of`.
        :raises LimitExceeded: the request takes too much work.
        """
        if id(entries) not in self._patterns:
            patterns = [compiled(key, budget) for key in self.of(entries)]
            self._patterns[id(entries)] = sum(pattern.steps for pattern in patterns), patterns
        steps, patterns = self._patterns[id(entries)]
        budget.step(steps)
        return patterns


def matching(entries: JsonMap, name: str, wild: WildNames, budget: Budget) -> Iterator[str]:
    """Yield the keys that match a name: the name itself, and patterns."""
    if name in entries:
        yield name
    for key, _, fits in wild.patterns(entries, budget):
        if key != name and fits(name):
            yield key


def _is_pattern(key: str) -> bool:
    return "*" in key or "?" in key or "[" in key
