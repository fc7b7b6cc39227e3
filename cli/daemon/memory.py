"""Limits the arenas of the C library, from which the threads of a daemon get their memory."""

import ctypes
import os

ARENAS = 1
"""More would serve threads that allocate at the same moment, as those of Python seldom do."""
_M_ARENA_MAX = -8
"""The parameter of mallopt(3)."""


def limit_arenas() -> None:
    """Let all threads use one arena, where the C library is glibc; called before there are other threads.

    By default up to eight for each core have one of their own, which keeps what its thread has freed.  Such a
    thread keeps its arena, so it is too late once there are threads.  The environment's limit wins.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, ARENAS)
