"""Memory that goes back to the system after large requests, and that threads keep."""

import os
import subprocess
import sys
import typing
from collections.abc import Iterable

import pytest
from stoker.cli.daemon.memory import ARENAS
from stoker.cli.http.memory import LARGE, LONG, StartResponse, trim, trimming


def trims(body: str, answer: str | None, error: Exception | None = None, seconds: float = 0.0) -> int:
    """Return how often memory is returned after a request, by the lengths of its body and its answer.

    :param seconds: the processor's time that the request takes.
    """
    calls: list[int] = []
    clock = iter([7.0, 7.0 + seconds])

    def app(environ: dict[str, typing.Any], start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [] if answer is None else [("Content-Length", answer)])
        if error is not None:
            raise error
        return [b"text"]

    application = trimming(app, lambda: calls.append(1), lambda: next(clock))
    try:
        assert application({"CONTENT_LENGTH": body}, lambda *values: None) == [b"text"]
    except ValueError:
        assert error is not None
    return len(calls)


@pytest.mark.parametrize(
    ("body", "answer", "expected"),
    [
        ("", None, 0),
        ("10", str(LARGE - 1), 0),
        ("no number", "10", 0),
        ("10", str(LARGE), 1),
        (str(LARGE), "10", 1),
    ],
)
def test_memory_is_released_after_large_requests_only(body: str, answer: str | None, expected: int) -> None:
    assert trims(body, answer) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.9 * LONG, 0), (1.1 * LONG, 1)])
def test_memory_is_released_after_a_request_that_computes_for_long(seconds: float, expected: int) -> None:
    assert trims("", None, seconds=seconds) == expected


def test_memory_is_released_after_a_large_request_that_fails() -> None:
    assert trims(str(LARGE), None, ValueError("no")) == 1


def test_giving_back_memory_changes_nothing_else() -> None:
    trim()


ALLOCATING_THREADS = """
import ctypes, threading
from stoker.cli.daemon.memory import limit_arenas
limit_arenas()
barrier = threading.Barrier(9)
def allocate():
    block = b"x" * 100_000
    barrier.wait()
    barrier.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
barrier.wait()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
barrier.wait()
"""


@pytest.mark.parametrize(("environment", "arenas"), [({}, ARENAS), ({"MALLOC_ARENA_MAX": "4"}, 4)])
def test_threads_share_arenas(environment: dict[str, str], arenas: int) -> None:
    rest = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    command = [sys.executable, "-W", "ignore", "-c", ALLOCATING_THREADS]
    done = subprocess.run(
        command, env=rest | environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.count("<heap nr=") == arenas
