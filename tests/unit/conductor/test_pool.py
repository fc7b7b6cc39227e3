"""The pool: bounded, and able to continue without a thread that hangs."""

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest
from harness.waiting import wait_for
from stoker.conductor.worker.pool import NoThread, PoolJob, ThreadPool, start_thread


class Calls:
    """Calls that wait to be let go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.go = {number: threading.Event() for number in range(20)}

    def __call__(self, number: int) -> None:
        self.begun.append(number)
        self.go[number].wait(600)
        self.ended.append(number)


class Inline:
    """A pool each of whose threads runs when the test says so; the last job shuts the pool down."""

    def __init__(self, threads: int) -> None:
        self.now = 0.0
        self.error: Exception | None = None
        self.threads: list[Callable[[], None]] = []
        self.log: list[object] = []
        self.pool = ThreadPool(threads, start=self._start, monotonic=lambda: self.now)

    def _start(self, function: Callable[[], None]) -> None:
        if self.error is not None:
            raise self.error
        self.threads.append(function)

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            self.pool.submit(self.log.append, number)

    def run(self, thread: int = 0) -> list[object]:
        """Run one of the threads to its end, and return the log."""
        self.pool.submit(self.pool.shutdown)
        self.threads[thread]()
        return self.log


def test_each_job_starts_a_thread_up_to_the_limit() -> None:
    inline = Inline(2)
    inline.pool.restart_threads()
    counts = []
    for number in range(4):
        inline.submit(number)
        inline.pool.restart_threads()
        counts.append(len(inline.threads))
    assert counts == [1, 2, 2, 2]
    assert inline.run() == [0, 1, 2, 3]


def test_a_job_that_has_run_is_no_garbage() -> None:
    """Each step has one, and its claim knows it."""
    inline = Inline(1)
    jobs: set[PoolJob] = set()
    jobs.add(inline.pool.submit(jobs.copy))
    alive = weakref.ref(next(iter(jobs)))
    gc.disable()
    try:
        del jobs
        inline.run()
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_job_that_breaks_ends_its_thread_and_another_one_has_its_place(waiting: int) -> None:
    inline = Inline(1)
    inline.pool.submit(lambda: 1 / 0)
    inline.submit(*range(waiting))
    with pytest.raises(ZeroDivisionError):
        inline.threads[0]()
    assert len(inline.threads) == 1 + waiting
    inline.submit(*range(waiting, 2))
    assert len(inline.threads) == 2
    assert inline.run(1) == [0, 1]


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("waiting", [0, 1])
def test_a_thread_that_is_detached_ends_after_its_job_and_another_one_has_its_place(
    *, waiting: int, breaks: bool
) -> None:
    inline = Inline(1)
    jobs: list[PoolJob] = []

    def detach() -> None:
        inline.log.append((inline.pool.detach(jobs[0]), inline.pool.hung))
        if breaks:
            raise ZeroDivisionError

    jobs.append(inline.pool.submit(detach))
    inline.submit(*range(waiting))
    with pytest.raises(ZeroDivisionError) if breaks else contextlib.nullcontext():
        inline.threads[0]()
    assert (inline.log, inline.pool.hung) == ([(True, 1)], 0)
    assert len(inline.threads) == 1 + waiting
    inline.submit(*range(waiting, 2))
    assert len(inline.threads) == 2
    assert inline.run(1) == [(True, 1), 0, 1]


def test_a_job_that_waits_is_detached_for_good() -> None:
    inline = Inline(1)
    inline.submit(0)
    job = inline.pool.submit(inline.log.append, 1)
    assert inline.pool.detach(job) is False
    assert (inline.run(), inline.pool.hung, len(inline.threads)) == ([0], 0, 1)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_threads_that_cannot_start_are_in_the_log_once_a_minute(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    inline = Inline(2)
    inline.submit(0)
    inline.error = error
    counts = []
    for now in (100.0, 159.9, 160.0, 219.9, 220.0):
        inline.now = now
        inline.submit(1)
        assert inline.pool.short_of_threads
        inline.pool.restart_threads()
        counts.append(len(caplog.records))
    assert counts == [1, 1, 2, 2, 3]
    assert "1 of 2 are there" in caplog.text
    inline.error = None
    inline.pool.restart_threads()
    assert (len(inline.threads), inline.pool.short_of_threads) == (2, False)


def test_threads_are_daemons_and_one_without_a_job_waits_for_the_next_one() -> None:
    threads: list[threading.Thread] = []

    def start(function: Callable[[], None]) -> None:
        def run() -> None:
            threads.append(threading.current_thread())
            function()

        start_thread(run)

    pool = ThreadPool(2, start=start)
    for number in range(3):
        ended = threading.Event()
        pool.submit(ended.set)
        assert ended.wait(10)
        wait_for(lambda: pool._idle == 1, within=5, pause=0.001)
        assert len(threads) == 1, number
    assert threads[0].daemon
    pool.shutdown()
    threads[0].join(10)
    assert not threads[0].is_alive()


@pytest.fixture
def calls() -> Iterator[Calls]:
    recorded = Calls()
    yield recorded
    for event in recorded.go.values():
        event.set()


def test_no_more_jobs_run_than_there_are_threads_and_in_order(calls: Calls) -> None:
    pool = ThreadPool(2)
    for number in range(4):
        pool.submit(calls, number)
    wait_for(lambda: sorted(calls.begun) == [0, 1])
    calls.go[0].set()
    wait_for(lambda: len(calls.begun) == 3)
    assert calls.begun[2] == 2
    for event in calls.go.values():
        event.set()
    wait_for(lambda: sorted(calls.ended) == [0, 1, 2, 3])


def test_a_pool_that_is_filled_has_all_its_threads_or_says_that_it_cannot() -> None:
    started: list[Callable[[], None]] = []
    pool = ThreadPool(3, start=started.append)
    pool.submit(lambda: None)
    assert len(started) == 1
    for _ in range(2):
        pool.fill()
        assert len(started) == 3

    def fail(function: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(NoThread):
        ThreadPool(3, start=fail).fill()


def test_a_thread_that_hangs_is_replaced(calls: Calls) -> None:
    pool = ThreadPool(1)
    hangs: PoolJob = pool.submit(calls, 0)
    pool.submit(calls, 1)
    wait_for(lambda: calls.begun == [0])
    assert pool.detach(hangs)
    wait_for(lambda: calls.begun == [0, 1])
    assert pool.hung == 1


def test_a_thread_that_returns_ends_instead_of_working_beside_its_replacement(calls: Calls) -> None:
    pool = ThreadPool(1)
    hangs = pool.submit(calls, 0)
    wait_for(lambda: calls.begun == [0])
    pool.detach(hangs)
    calls.go[0].set()
    wait_for(lambda: pool.hung == 0)
    pool.submit(calls, 1)
    pool.submit(calls, 2)
    wait_for(lambda: 1 in calls.begun)
    assert calls.begun == [0, 1]


def test_a_job_that_has_not_begun_never_does(calls: Calls) -> None:
    pool = ThreadPool(1)
    pool.submit(calls, 0)
    waits = pool.submit(calls, 1)
    pool.submit(calls, 2)
    assert not pool.detach(waits)
    calls.go[0].set()
    wait_for(lambda: calls.begun == [0, 2])
    assert pool.hung == 0


def test_a_job_that_has_ended_costs_no_thread(calls: Calls) -> None:
    pool = ThreadPool(1)
    calls.go[0].set()
    done = pool.submit(calls, 0)
    wait_for(lambda: calls.ended == [0])
    pool.detach(done)
    assert pool.hung == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_that_breaks_costs_no_thread(calls: Calls) -> None:
    pool = ThreadPool(1)
    pool.submit(lambda: 1 / 0)
    calls.go[0].set()
    pool.submit(calls, 0)
    wait_for(lambda: calls.ended == [0])


def test_after_the_shutdown_nothing_begins(calls: Calls) -> None:
    pool = ThreadPool(1)
    pool.submit(calls, 0)
    pool.submit(calls, 1)
    wait_for(lambda: calls.begun == [0])
    pool.shutdown()
    calls.go[0].set()
    wait_for(lambda: calls.ended == [0])
    with pytest.raises(RuntimeError):
        pool.submit(calls, 2)
    assert calls.begun == [0]


class Threads:
    """Starts threads while it may.

    :ivar left: how many may be started; negative: any number.
    """

    def __init__(self, available: int) -> None:
        self.left = available

    def __call__(self, function: Callable[[], None]) -> None:
        if self.left == 0:
            raise RuntimeError("can't start new thread")
        self.left -= 1
        start_thread(function)


def test_without_a_thread_that_would_run_it_a_job_is_refused(calls: Calls) -> None:
    threads = Threads(0)
    pool = ThreadPool(2, start=threads)
    for number in range(3):
        with pytest.raises(NoThread):
            pool.submit(calls, number)
    assert pool.short_of_threads
    threads.left = -1
    for number in range(3, 6):
        pool.submit(calls, number)
    assert not pool.short_of_threads
    wait_for(lambda: sorted(calls.begun) == [3, 4])


def test_a_job_waits_for_the_threads_that_there_are_and_the_others_are_started_later(calls: Calls) -> None:
    threads = Threads(1)
    pool = ThreadPool(3, start=threads)
    for number in range(3):
        pool.submit(calls, number)
    wait_for(lambda: calls.begun == [0])
    assert pool.short_of_threads
    pool.restart_threads()
    assert calls.begun == [0]
    threads.left = -1
    pool.restart_threads()
    wait_for(lambda: sorted(calls.begun) == [0, 1, 2])


def test_a_hung_thread_that_cannot_be_replaced_is_replaced_when_there_are_threads(calls: Calls) -> None:
    threads = Threads(1)
    pool = ThreadPool(1, start=threads)
    hangs = pool.submit(calls, 0)
    pool.submit(calls, 1)
    wait_for(lambda: calls.begun == [0])
    assert pool.detach(hangs)
    assert pool.short_of_threads
    threads.left = -1
    pool.restart_threads()
    wait_for(lambda: calls.begun == [0, 1])
