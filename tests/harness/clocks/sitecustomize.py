"""Lets the clock of a process be ahead by the seconds that a file has; CLOCK_AHEAD names it."""

import os
import time

_real = time.time
_path = os.environ.get("CLOCK_AHEAD", "")


def _shifted() -> float:
    try:
        with open(_path) as file:
            return _real() + float(file.read())
    except (OSError, ValueError):
        return _real()


time.time = _shifted
