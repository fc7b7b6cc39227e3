"""Wait for what other threads or processes bring about."""

import time
import typing


def wait_for(
    condition: typing.Callable[[], bool], within: float = 30.0, why: typing.Callable[[], str] = lambda: ""
) -> None:
    """Wait until the condition holds.

    :param within: seconds.
    :param why: asked for the text of the error.
    :raises TimeoutError: it does not hold after that time.
    """
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {within} s: {why()}")
        time.sleep(0.05)
