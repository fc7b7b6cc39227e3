"""Sizes of values: the bytes that they take in memory and in the database, and their depth."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Json = typing.Any

MAX_VALUE_DEPTH = 200
"""Levels of maps and lists inside each other, those of the template around a value included.  A document may
have half as many.  The recursive functions over values rely on it."""


class Weights(typing.NamedTuple):
    """Bytes of an empty text, map and list, of each entry and item in them, and of any other value."""

    text: int
    map: int
    list: int
    entry: int
    item: int
    other: int


MEMORY = Weights(text=49, map=64, list=56, entry=81, item=8, other=24)
"""Weights of values in the memory of CPython."""
STORED = Weights(text=3, map=2, list=2, entry=5, item=1, other=5)
"""Weights of values as JSON, in the database."""
WIDE = 4
"""Bytes of a character in a text that is not pure ASCII."""


@dataclass(frozen=True)
class Size:
    """Size of a value: bytes, and levels of maps and lists."""

    bytes: int
    depth: int


def measure(value: Json) -> Size:
    """Return the size of a value."""
    total = 0

    def add(size: int) -> None:
        nonlocal total
        total += size

    depth = walk(value, add, MEMORY, MAX_VALUE_DEPTH)
    return Size(total, depth)


def walk(value: Json, charge: Callable[[int], None], weights: Weights, deepest: int) -> int:
    """Charge the parts of a value, each container before its contents.

    :returns: how many levels it has; the walk ends one level below `deepest`.
    """
    level, depth = [value], 0
    while level and depth <= deepest:
        leaves, nested, below = 0, 0, list[Json]()
        for item in level:
            if isinstance(item, str):
                leaves += weights.text + (len(item) if item.isascii() else len(item) * WIDE)
            elif item is None or isinstance(item, int | float):
                leaves += weights.other
            elif isinstance(item, list | tuple):
                nested = 1
                charge(weights.list + len(item) * weights.item)
                below.extend(item)
            elif isinstance(item, Mapping):
                nested = 1
                charge(weights.map + len(item) * weights.entry)
                leaves += sum(map(len, map(str, item)))
                below.extend(item.values())
            else:
                leaves += weights.other
        charge(leaves)
        depth, level = depth + nested, below
    return depth
