"""Wait for what other threads or processes bring about."""

import os
import time
import typing

MOST = 4.0
"""How often the time is given, at the most, on a machine that has more to do than cores."""


def crowded(load: float, cores: int) -> float:
    """Return how much longer things take than on a machine that has a core for each of them."""
    return min(MOST, max(1.0, load / cores))


def slowness() -> float:
    """Return how much longer things take now than on a machine that has a core for each of them."""
    return crowded(os.getloadavg()[0], len(os.sched_getaffinity(0)))


def over(began: float, within: float) -> bool:
    """Return whether something that began then has had its time.

    :param began: start by time.monotonic().
    :param within: seconds; more on a machine that has more to do than cores.
    """
    return time.monotonic() - began > within * slowness()


def wait_for(
    condition: typing.Callable[[], bool],
    within: float = 60.0,
    why: typing.Callable[[], str] = lambda: "",
    *,
    pause: float = 0.05,
) -> None:
    """Wait until the condition holds.

    :param within: seconds; more on a machine that has more to do than cores.
    :param why: asked for the text of the error.
    :param pause: seconds between two checks of the condition.
    :raises TimeoutError: the condition does not hold after that time.
    """
    began = time.monotonic()
    while not condition():
        if over(began, within):
            raise TimeoutError(f"not so after {time.monotonic() - began:.1f} s: {why()}")
        time.sleep(pause)
