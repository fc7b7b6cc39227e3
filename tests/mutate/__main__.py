"""``make mutate``: plants faults in the kernel, one at a time, and names those that no test notices."""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence

from mutate.kernel import ROOT, row_of, sources
from mutate.operators import Mutant, mutants
from mutate.recording import Coverage
from mutate.survivors import KNOWN
from mutate.trying import Job, Outcome

FOLDER = ROOT / "var" / "mutate"
TESTS = ("tests/unit", "tests/simulation", "tests/property", "tests/services/db")
"""Folders whose tests run in the process that has the fault; the others start daemons."""
SECONDS = 20.0
"""Time of all tests of one fault together, as measured without it; the cheapest are taken first."""
SLOWER = 10
"""How many times as long tests may take with a fault: it may be endless, or the machine busy."""
LEAST_TIME = 20.0
MOST_LOADED = 25
"""Tests of a fault that needs a process of its own."""
PYTEST = ("-q", "-s", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
TIER = ("--tier", "test", "--seeds", "4")


def main() -> int:
    """Run as the arguments say; return 1 if a fault lives that is not known to change nothing."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--changed", metavar="REV", help="only in lines that differ from this commit")
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, metavar="PATH", help="tests that may notice them"
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="modules or folders; default: the kernel")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    planned = list(_planned(options.paths, options.changed))
    if not planned:
        print("None of the lines belongs to the kernel.")
        return 0
    noted = _recorded(options.tests, options.processes)
    results = Results(FOLDER / "results.jsonl", again=options.again)
    untried = [mutant for mutant in planned if results.outcome(mutant) is None]
    print(f"{len(planned)} faults, {len(untried)} to try", flush=True)
    _try_all(untried, noted, results, options)
    return _report(planned, results)


def _planned(paths: list[str], changed: str | None) -> Iterator[Mutant]:
    lines = _changed_lines(changed) if changed else None
    for path in sources():
        if paths and not any(path == each or path.startswith(each.rstrip("/") + "/") for each in paths):
            continue
        if lines is not None and path not in lines:
            continue
        for mutant in mutants(path, (ROOT / path).read_text()):
            if lines is None or mutant.line in lines[path]:
                yield mutant


def _changed_lines(revision: str) -> dict[str, set[int]]:
    command = ["git", "diff", "--unified=0", "--no-color", revision, "--", *sources()]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines: dict[str, set[int]] = {}
    path = ""
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + count))
    return lines


def _recorded(tests: Sequence[str], processes: int) -> Coverage:
    """Return which tests run which lines; it is noted again when the code or a test has changed."""
    state = hashlib.sha256()
    for path in sorted([*map(pathlib.Path, sources()), *_files(tests)]):
        state.update((ROOT / path).read_bytes())
    folder = FOLDER / f"coverage-{state.hexdigest()[:16]}"
    if not (folder / "done").exists():
        for former in FOLDER.glob("coverage-*"):
            shutil.rmtree(former)
        folder.mkdir()
        print("Noting which tests run which lines …", flush=True)
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", str(processes), *TIER]
            + ["-p", "mutate.recording", "--mutate-folder", str(folder), *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "tests"},
            stdout=(FOLDER / "recording.log").open("w"),
            check=False,
        )
        (folder / "done").touch()
    return Coverage.read(folder)


def _files(tests: Sequence[str]) -> Iterator[pathlib.Path]:
    for name in tests:
        for path in (ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name]:
            yield path.relative_to(ROOT)


class Results:
    """The outcome of each fault, also in runs that were stopped; a module that changes is tried again."""

    def __init__(self, path: pathlib.Path, *, again: bool) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._hashes: dict[str, str] = {}
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        if again:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self._outcomes[row["key"], row["text"]] = Outcome(row["outcome"])

    def outcome(self, mutant: Mutant) -> Outcome | None:
        """Return what became of it; None: it was not tried yet."""
        return self._outcomes.get((mutant.key, self._hash(mutant.path)))

    def add(self, mutant: Mutant, outcome: Outcome, seconds: float) -> None:
        """Store a result at once."""
        text = self._hash(mutant.path)
        row = {
            "key": mutant.key,
            "text": text,
            "outcome": outcome,
            "seconds": round(seconds, 2),
            "what": str(mutant),
        }
        with self._lock, self._path.open("a") as file:
            self._outcomes[mutant.key, text] = outcome
            file.write(json.dumps({**row, "fault": str(mutant)}) + "\n")

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:12]
        return self._hashes[path]


class _Server:
    """A process that tries faults."""

    def __init__(self, *arguments: str) -> None:
        answers, descriptor = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, *arguments, str(descriptor)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "tests"},
            stdin=subprocess.PIPE,
            stdout=(FOLDER / f"server-{os.getpid()}.log").open("a"),
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
            text=True,
        )
        os.close(descriptor)
        self._answers = os.fdopen(answers)

    def attempt(self, job: Job) -> tuple[Outcome, float]:
        """Have a fault tried."""
        assert self._process.stdin is not None
        self._process.stdin.write(job.line())
        self._process.stdin.flush()
        line = self._answers.readline()
        if not line:
            raise RuntimeError(f"the process that tries faults has ended; see {FOLDER}/server-*.log")
        answer = json.loads(line)
        return Outcome(answer["outcome"]), answer["seconds"]

    def stop(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()


def _try_all(faults: list[Mutant], noted: Coverage, results: Results, options: argparse.Namespace) -> None:
    waiting: collections.deque[Job] = collections.deque()
    for mutant in faults:
        tests = _tests_of(mutant, noted)
        if tests:
            predicted = sum(noted.seconds[name] for name in tests)
            waiting.append(Job(mutant, tests, max(LEAST_TIME, SLOWER * predicted)))
        else:
            results.add(mutant, Outcome.UNTESTED, 0.0)
    planting = ("-m", "pytest", "-p", "mutate.trying", *PYTEST, *TIER, *options.tests, "--mutate-answers")
    not_planted = _share(waiting, results, options.processes, planting)
    # Each loads all that it needs, so a few tests must do.
    few = [dataclasses.replace(job, tests=job.tests[:MOST_LOADED]) for job in not_planted]
    _share(collections.deque(few), results, options.processes, ("-m", "mutate.loading"))


def _share(
    jobs: collections.deque[Job], results: Results, processes: int, arguments: tuple[str, ...]
) -> list[Job]:
    """Try faults in some processes, and return those that could not be planted."""
    not_planted: list[Job] = []
    total = len(jobs)

    def work() -> None:
        server = _Server(*arguments)
        try:
            while jobs:
                try:
                    job = jobs.popleft()
                except IndexError:
                    break
                outcome, seconds = server.attempt(job)
                if outcome is Outcome.NOT_PLANTED:
                    not_planted.append(job)
                    continue
                results.add(job.mutant, outcome, seconds)
                if outcome is Outcome.LIVES and job.mutant.key not in KNOWN:
                    print(f"{total - len(jobs)}/{total} lives: {job.mutant}", flush=True)
        finally:
            server.stop()

    if jobs:
        with concurrent.futures.ThreadPoolExecutor(processes) as pool:
            for future in [pool.submit(work) for _ in range(min(processes, total))]:
                future.result()
    return not_planted


def _tests_of(mutant: Mutant, noted: Coverage) -> list[str]:
    """Return the tests that run the line: by turns of each file the cheapest that is left, as time allows."""
    lines = noted.lines.get(mutant.path, {})
    # What runs when a module is loaded decides what each function of it does.
    names = set().union(*lines.values()) if mutant.is_loaded else lines.get(mutant.line, set())
    by_file: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: noted.seconds.get(name, float("inf"))):
        if noted.seconds.get(name, float("inf")) < SECONDS:
            by_file.setdefault(name.split("::")[0], []).append(name)
    chosen: list[str] = []
    seconds = 0.0
    for name in _by_turns(by_file.values()):
        seconds += noted.seconds[name]
        if chosen and seconds > SECONDS:
            break
        chosen.append(name)
    return sorted(chosen, key=lambda name: noted.seconds[name])


def _by_turns(rows: Iterable[list[str]]) -> Iterator[str]:
    waiting = [iter(row) for row in rows]
    while waiting:
        for row in list(waiting):
            try:
                yield next(row)
            except StopIteration:
                waiting.remove(row)


def _report(planned: list[Mutant], results: Results) -> int:
    """Print a table by module, and the faults that live without a reason."""
    rows: dict[str, collections.Counter[str]] = {}
    unknown: list[Mutant] = []
    for mutant in planned:
        outcome = results.outcome(mutant)
        counts = rows.setdefault(row_of(mutant.path), collections.Counter())
        counts["all"] += 1
        if outcome in (Outcome.NOTICED, Outcome.ENDLESS):
            counts["noticed"] += 1
        elif KNOWN.get(mutant.key) is not None:
            counts["known"] += 1
        else:
            counts[Outcome.UNTESTED if outcome is Outcome.UNTESTED else Outcome.LIVES] += 1
            unknown.append(mutant)
    print("\n| module | faults | noticed | known | live | not run by a test | share |")
    print("|---|---|---|---|---|---|---|")
    for name, counts in rows.items():
        share = counts["noticed"] / max(1, counts["all"] - counts["known"])
        columns = (counts[each] for each in ("all", "noticed", "known", Outcome.LIVES, Outcome.UNTESTED))
        print(f"| {name} | " + " | ".join(map(str, columns)) + f" | {share:.1%} |")
    text = "".join(f"{mutant.key}  {mutant}\n" for mutant in unknown)
    (FOLDER / "survivors.txt").write_text(text)
    print(f"\n{len(unknown)} live without a reason: {FOLDER.relative_to(ROOT)}/survivors.txt")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
