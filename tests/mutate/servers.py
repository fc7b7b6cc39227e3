"""Processes that try faults, one after the other."""

import collections
import concurrent.futures
import os
import subprocess
import sys
import typing

from mutate import notes
from mutate.kernel import ROOT
from mutate.verdicts import Job, Outcome, Verdict


class _Server:
    """A process that tries faults."""

    def __init__(self, *arguments: str) -> None:
        answers, descriptor = os.pipe()
        with (notes.FOLDER / "servers.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, *arguments, str(descriptor)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": "tests"},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[descriptor],
                text=True,
            )
        os.close(descriptor)
        self._answers = os.fdopen(answers)

    def attempt(self, job: Job) -> Verdict:
        """Have a fault tried."""
        assert self._process.stdin is not None
        self._process.stdin.write(job.line())
        self._process.stdin.flush()
        line = self._answers.readline()
        if not line:
            raise RuntimeError(f"the process that tries faults has ended; see {notes.FOLDER}/servers.log")
        return Verdict.parse(line)

    def stop(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()


def share(
    jobs: collections.deque[Job],
    processes: int,
    arguments: tuple[str, ...],
    report: typing.Callable[[Job, Verdict], None],
    prepare: typing.Callable[[Job], Job] = lambda job: job,
) -> list[Job]:
    """Try faults in some processes, and return those that could not be planted.

    :param prepare: chooses the tests of a fault that is tried next.
    :param report: is called for each of the others, by one thread for each process.
    """
    not_planted: list[Job] = []

    def work() -> None:
        server = _Server(*arguments)
        try:
            while jobs:
                try:
                    job = jobs.popleft()
                except IndexError:
                    break
                job = prepare(job)
                verdict = server.attempt(job)
                if verdict.outcome is Outcome.NOT_PLANTED:
                    not_planted.append(job)
                else:
                    report(job, verdict)
        finally:
            server.stop()

    if jobs:
        count = min(processes, len(jobs))
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            for future in [pool.submit(work) for _ in range(count)]:
                future.result()
    return not_planted
