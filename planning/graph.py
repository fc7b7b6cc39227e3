"""Graphs of what needs what; pure."""

import typing
from collections.abc import Hashable, Mapping, Sequence

K = typing.TypeVar("K", bound=Hashable)


def without_cycles(needs: Mapping[K, Sequence[K]]) -> dict[K, list[K]]:
    """Return the same needs without those that close a cycle, and without unknown ones.

    A template's graph has no cycle, but stored rows may have one: an update that reverses a dependency and
    fails half-way leaves both directions.
    """
    acyclic: dict[K, list[K]] = {}
    done: set[K] = set()
    for start in needs:
        above: set[K] = set()
        trail: list[tuple[K, list[K]]] = []
        if start not in done:
            trail.append((start, [other for other in needs[start] if other in needs]))
            above.add(start)
        while trail:
            node, left = trail[-1]
            if not left:
                trail.pop()
                above.discard(node)
                done.add(node)
                continue
            other = left.pop(0)
            if other in above:
                continue
            acyclic.setdefault(node, []).append(other)
            if other not in done:
                trail.append((other, [more for more in needs[other] if more in needs]))
                above.add(other)
    return {node: acyclic.get(node, []) for node in needs}
