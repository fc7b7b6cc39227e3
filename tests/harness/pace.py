"""Measures how slow this host is at the moment, so that bounds in seconds hold on a slower one, too.

A bound in seconds is meant for the machine on which it was measured, with nothing else running.  A test
multiplies it by what is measured here, in the same process or at the same time.
"""

import time
import typing
from collections.abc import Callable

ROUNDS = 100_000
REFERENCE = 0.03
"""Seconds that `work` takes on the reference machine, with Python 3.11 and nothing else running."""


class Pace(typing.NamedTuple):
    """Factors by which this host is slower than the reference machine, 1 or more.

    :ivar processor: factor of bounds of processor time.
    :ivar wall: factor of bounds of elapsed time, which grows with other load of this host, too.
    """

    processor: float
    wall: float

    def worse(self, second: "Pace") -> "Pace":
        """Return the larger factors of two measurements, as from before and after what is bounded."""
        return Pace(max(self.processor, second.processor), max(self.wall, second.wall))


def work(rounds: int = ROUNDS) -> int:
    """Do what Stoker's pure functions do most: calls, maps, lists, texts, checks of types."""
    length = 0
    for number in range(rounds):
        part = {"name": f"r{number}", "items": [number, None]}
        for value in part.values():
            length += isinstance(value, str) and len(value)
    return length


def measure(
    run: Callable[[], object] = work,
    *,
    processor: Callable[[], float] = time.thread_time,
    wall: Callable[[], float] = time.monotonic,
) -> Pace:
    """Measure the host; takes REFERENCE on the reference machine.

    :param processor: seconds of this thread's processor time.
    :param wall: seconds that never jump.
    """
    began_wall = wall()
    began_processor = processor()
    run()
    used = processor() - began_processor
    passed = wall() - began_wall
    return Pace(max(1.0, used / REFERENCE), max(1.0, passed / REFERENCE))
