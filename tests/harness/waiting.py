"""Wait for what other threads or processes bring about."""

import os
import time
import typing

MOST = 4.0
"""How often the time is given, at the most, on a machine that has more to do than cores."""


def crowded(load: float, cores: int) -> float:
    """How much longer things take than on a machine that has a core for each of them."""
    return min(MOST, max(1.0, load / cores))


def wait_for(
    condition: typing.Callable[[], bool],
    within: float = 30.0,
    why: typing.Callable[[], str] = lambda: "",
    *,
    pause: float = 0.05,
) -> None:
    """Wait until the condition holds.

    :param within: seconds; more on a machine that has more to do than cores.
    :param why: asked for the text of the error.
    :param pause: seconds between two looks at the condition.
    :raises TimeoutError: it does not hold after that time.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > within * crowded(os.getloadavg()[0], len(os.sched_getaffinity(0))):
            raise TimeoutError(f"not so after {waited:.1f} s: {why()}")
        time.sleep(pause)
