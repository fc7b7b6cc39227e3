"""The tests that shall notice a fault: those that run its line, the cheapest first."""

import functools
import re
from collections.abc import Iterable, Iterator

from mutate.constants import Dependents, dependents
from mutate.kernel import ROOT
from mutate.notes import Notes
from mutate.operators import OF_STATEMENTS, Mutant

_ON_SQLITE = re.compile(r"(?<=[\[-])sqlite(?=[\]-])")
SLOWEST = 20.0
"""Seconds of a test that is not worth its time."""


def tests_of(mutant: Mutant, notes: Notes, seconds: float) -> list[str]:
    """Return tests by turns of their files: of each the cheapest that is left, as the time allows.

    :param seconds: time of all of them together, as measured without a fault.
    """
    by_file: dict[str, list[str]] = {}
    for name in sorted(_running(mutant, notes), key=lambda name: notes.seconds.get(name, float("inf"))):
        if notes.seconds.get(name, float("inf")) < SLOWEST:
            by_file.setdefault(name.split("::")[0], []).append(name)
    chosen: list[str] = []
    total = 0.0
    for name in _by_turns(by_file.values()):
        total += notes.seconds[name]
        if chosen and total > seconds:
            break
        chosen.append(name)
    chosen.sort(key=lambda name: notes.seconds[name])
    if mutant.operator in OF_STATEMENTS:
        # Servers lock rows; SQLite has one writer.
        chosen += [_ON_SQLITE.sub("postgresql", name) for name in chosen if _ON_SQLITE.search(name)]
    return chosen


def _running(mutant: Mutant, notes: Notes) -> set[str]:
    lines = notes.lines.get(mutant.path, {})
    depending = _dependents(mutant.path, mutant.line)
    if not mutant.is_loaded and (depending is None or not depending.statements):
        return lines.get(mutant.line, set())
    # What runs when a module is loaded decides what its functions do: those that read it, or all.
    readers = frozenset() if depending is None or depending.public else depending.lines
    return set().union(*(lines.get(line, set()) for line in {*(readers or lines), mutant.line}))


@functools.cache
def _dependents(path: str, line: int) -> Dependents | None:
    return dependents((ROOT / path).read_text(), line)


def _by_turns(rows: Iterable[list[str]]) -> Iterator[str]:
    waiting = [iter(row) for row in rows]
    while waiting:
        for row in list(waiting):
            try:
                yield next(row)
            except StopIteration:
                waiting.remove(row)
