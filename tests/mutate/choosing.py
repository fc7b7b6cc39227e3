"""The tests that shall notice a fault: those that run its line, the cheapest first."""

import functools
import pathlib
from collections.abc import Collection, Iterable, Iterator

from mutate.constants import Dependents, dependents
from mutate.databases import on_another
from mutate.kernel import ROOT
from mutate.notes import Notes
from mutate.operators import Mutant

NEAR = ("tests/unit/", "tests/services/")
SLOWEST = 20.0
"""Seconds of a test that is not worth its time."""


def tests_of(mutant: Mutant, notes: Notes, seconds: float, killers: Collection[str]) -> list[str]:
    """Return tests as the time allows: those of the folders of units and databases first, then others.

    Of the others, which run most of the kernel's lines, each file in its turn has the cheapest that is left.

    :param seconds: time of all of them together, as measured without a fault.
    :param killers: tests that have noticed other faults of the module; they come first, and before them,
        for what is loaded, the module's own tests.
    """
    # A class of fields alone has no line that a test runs, but a file of tests that is named after it.
    file = f"{own_file(mutant.path)}::"
    own = [name for name in notes.seconds if mutant.is_loaded and name.startswith(file)]
    candidates = {*_running(mutant, notes), *own}
    running = {name for name in candidates if notes.seconds.get(name, float("inf")) < SLOWEST}
    first = [name for name in dict.fromkeys([*own, *killers]) if name in running]
    cheap = sorted(running - set(first), key=lambda name: (notes.seconds[name], name))
    near = [name for name in cheap if name.startswith(NEAR)]
    chosen = list(_within(seconds, first, notes))
    chosen += _within(seconds / 2, near, notes)
    chosen += _within(seconds / 2, _by_turns(name for name in cheap if not name.startswith(NEAR)), notes)
    if mutant.operator == "lock":
        # Servers lock rows; SQLite has one writer.
        on_server = {name: on_another(name, "sqlite", "postgresql") for name in chosen}
        chosen += [other for name, other in on_server.items() if other != name]
    return chosen


def own_file(path: str) -> str:
    """Return the file of a module's own tests, which lie as the modules do."""
    module = pathlib.PurePath(path)
    return str(pathlib.PurePath("tests/unit", module.parent, f"test_{module.name}"))


def _within(seconds: float, names: Iterable[str], notes: Notes) -> Iterator[str]:
    """Yield tests until the time is used up, but at least one."""
    total = 0.0
    for name in names:
        yield name
        total += notes.seconds[name]
        if total > seconds:
            break


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


def _by_turns(names: Iterable[str]) -> Iterator[str]:
    by_file: dict[str, list[str]] = {}
    for name in names:
        by_file.setdefault(name.split("::")[0], []).append(name)
    waiting = [iter(row) for row in by_file.values()]
    while waiting:
        for row in list(waiting):
            try:
                yield next(row)
            except StopIteration:
                waiting.remove(row)
