"""Gives the memory of large requests back to the system."""

import ctypes
import time
import typing
from collections.abc import Callable, Iterable

LARGE = 512 * 1024
"""Bytes of a body or an answer after which freed memory is returned."""
LONG = 0.1
"""Processor's seconds of a request after which freed memory is returned, which takes some milliseconds.

The deletion of a large stack has neither a body nor an answer, and has read all of it.
"""
StartResponse = Callable[..., typing.Any]
Application = Callable[[dict[str, typing.Any], StartResponse], Iterable[bytes]]


def trim() -> None:
    """Give memory that is free back to the system, where the C library can do that (malloc_trim(3)).

    It keeps small pieces for the next requests otherwise.  A stack of ten thousand resources leaves 30 MB of
    them, in each of the threads that have worked on one.
    """
    if _MALLOC_TRIM is not None:
        _MALLOC_TRIM(0)


_MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""None: the C library is not glibc."""


def trimming(
    app: Application, trim: Callable[[], None] = trim, clock: Callable[[], float] = time.thread_time
) -> Application:
    """Return a WSGI application that gives memory back after each large or long request to another one.

    :param clock: the processor's seconds of this thread so far.
    """

    def answer(environ: dict[str, typing.Any], start_response: StartResponse) -> Iterable[bytes]:
        began = clock()
        sizes = [_size(environ.get("CONTENT_LENGTH"))]

        def start(status: str, headers: list[tuple[str, str]], *error: typing.Any) -> typing.Any:
            sizes.extend(_size(value) for name, value in headers if name.lower() == "content-length")
            return start_response(status, headers, *error)

        try:
            return app(environ, start)
        finally:
            if max(sizes) >= LARGE or clock() - began >= LONG:
                trim()

    return answer


def _size(text: str | None) -> int:
    """Return the length that a header field says; 0: it says none."""
    return int(text) if text and text.isdecimal() else 0
