"""Limits the arenas of the C library, from which the threads of a daemon get their memory."""

import ctypes
import os

ARENAS = 2
"""More would serve threads that allocate at the same moment, and Python's seldom do."""
_M_ARENA_MAX = -8
"""The parameter of mallopt(3)."""


def limit_arenas() -> None:
    """Let threads share arenas, where the C library is glibc; called before there are many threads.

    By default up to eight for each core have one of their own, which keeps what its thread has freed.  The
    environment's limit wins.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, ARENAS)
