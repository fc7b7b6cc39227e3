"""Graphs of needs; pure."""

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
            trail.append((start, [needed for needed in needs[start] if needed in needs]))
            above.add(start)
        while trail:
            node, unvisited = trail[-1]
            if not unvisited:
                trail.pop()
                above.discard(node)
                done.add(node)
                continue
            needed = unvisited.pop(0)
            if needed in above:
                continue
            acyclic.setdefault(node, []).append(needed)
            if needed not in done:
                trail.append((needed, [more for more in needs[needed] if more in needs]))
                above.add(needed)
    return {node: acyclic.get(node, []) for node in needs}
