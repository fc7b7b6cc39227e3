"""``make mutate``: plants faults in the kernel, one at a time, and names those that no test notices."""

import argparse
import collections
import dataclasses
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from mutate import notes, servers
from mutate.choosing import tests_of
from mutate.databases import server_of
from mutate.kernel import COMPLETE, ROOT, row_of, sources
from mutate.operators import OF_STATEMENTS, Mutant, mutants
from mutate.results import DEFINITE, Results
from mutate.survivors import KNOWN
from mutate.verdicts import SLOWER, Job, Outcome, Verdict

SECONDS = 10.0
"""Time of all tests of one fault together, as measured without it."""
SERVERS_TIME = 0.5
"""Time of a test on a server, as expected."""
LEAST_TIME = 20.0
LOADING_TIME = 10.0
"""Time in which a fault that needs a process of its own has all modules loaded, and its tests collected."""
LOADING = ("-m", "mutate.loading")
"""Arguments of a process that loads a module with each fault."""
Planned = list[tuple[Mutant, list[str]]]
"""Faults with the tests that shall notice them."""


def main() -> int:
    """Run as the arguments say; return 1 if a fault lives without a reason where each is to be noticed.

    Where only some of the tests are asked, they are no proof: it returns 0 then.
    """
    options = options_of(sys.argv[1:])
    faults = list(_faults(options))
    if not faults:
        print("None of the lines belongs to the kernel.")
        return 0
    tests = options.tests
    recorded = notes.read(tests) if options.table else notes.record(tests, options.processes)
    results = Results(notes.FOLDER / "results.jsonl", recorded, again=options.again)
    planned = [(mutant, tests_of(mutant, recorded, options.seconds, ())) for mutant in faults]
    end = time.monotonic() + (options.budget or float("inf"))
    if not options.table:
        untried = [
            (mutant, tests)
            for mutant, tests in planned
            if results.outcome(mutant, tests) is None and (options.again or mutant.key not in KNOWN)
        ]
        print(f"{len(planned)} faults, {len(untried)} to try", flush=True)
        _try_all(_sql_first(untried), recorded, results, options, end)
    unnoticed = [each for each in _report(planned, results) if {each.path, row_of(each.path)} & COMPLETE]
    return 1 if unnoticed and tuple(tests) == notes.TESTS else 0


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options that arguments set.

    :raises SystemExit: they make no sense; a message on the standard error says why.
    """
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--changed", metavar="REV", help="only in lines that differ from this commit")
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--table", action="store_true", help="only report what earlier runs have found")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the tests of one fault together")
    parser.add_argument("--budget", type=float, help="seconds for faults; none is tried after them")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="only these kinds, or `sql`")
    parser.add_argument(
        "--tests", nargs="+", default=notes.TESTS, metavar="PATH", help="tests that may notice them"
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="modules or folders; default: the kernel")
    options = parser.parse_args(arguments)
    if options.again and options.table:
        parser.error("--again forgets the results that --table reports: use one of them")
    for path in options.tests:
        if not (ROOT / path).exists():
            parser.error(f"--tests {path}: there is no such file or folder, from the root of the repository")
    return options


def planting(tests: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a process that collects tests, and plants each fault in what it has loaded."""
    pytest = ("pytest", "-q", "-s", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
    return ("-m", *pytest, "-p", "mutate.trying", *notes.TIER, *tests, "--mutate-answers")


def _faults(options: argparse.Namespace) -> Iterator[Mutant]:
    lines = _changed_lines(options.changed) if options.changed else None
    kinds = {*(options.operators or ()), *(OF_STATEMENTS if "sql" in (options.operators or ()) else ())}
    paths = [each.rstrip("/") for each in options.paths]
    for path in sources():
        if paths and not any(path == each or path.startswith(f"{each}/") for each in paths):
            continue
        if lines is not None and path not in lines:
            continue
        for mutant in mutants(path, (ROOT / path).read_text()):
            if (lines is None or mutant.line in lines[path]) and (not kinds or mutant.operator in kinds):
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


def _sql_first(planned: Planned) -> Planned:
    return sorted(planned, key=lambda each: each[0].operator not in OF_STATEMENTS)


def _try_all(
    planned: Planned, recorded: notes.Notes, results: Results, options: argparse.Namespace, end: float
) -> None:
    tests_by_key = {mutant.key: tests for mutant, tests in planned}
    jobs: collections.deque[Job] = collections.deque()
    count = 0

    def report(job: Job, verdict: Verdict) -> None:
        nonlocal count
        count += 1
        mutant = job.mutant
        if verdict.outcome is not Outcome.UNDECIDED:
            results.add(mutant, tests_by_key[mutant.key], verdict)
        if verdict.outcome not in DEFINITE and mutant.key not in KNOWN:
            print(f"{count}/{len(planned)} {verdict.outcome}: {mutant.key} {mutant}", flush=True)
        if time.monotonic() > end:
            jobs.clear()

    def prepare(job: Job) -> Job:
        tests = tests_of(job.mutant, recorded, options.seconds, results.killers(job.mutant.path))
        return Job(job.mutant, tests, limit_of(tests, recorded))

    for mutant, tests in planned:
        if tests:
            jobs.append(Job(mutant, tests, LEAST_TIME))
        else:
            report(Job(mutant, tests, LEAST_TIME), Verdict(Outcome.UNTESTED, 0.0))
    not_planted = servers.share(jobs, options.processes, planting(options.tests), report, prepare)
    jobs.extend(loaded(job, recorded) for job in not_planted)
    if time.monotonic() < end:
        servers.share(jobs, options.processes, LOADING, report)


def limit_of(tests: Sequence[str], recorded: notes.Notes, loading: float = 0.0) -> float:
    """Return the seconds after which tests are endless.

    :param loading: seconds that pass before the first of them.
    """
    predicted = sum(recorded.seconds.get(name, SERVERS_TIME) for name in tests)
    return max(LEAST_TIME, SLOWER * (loading + predicted))


def loaded(job: Job, recorded: notes.Notes) -> Job:
    """Return the job for a process of its own, which has no servers, and all modules to load."""
    job = job.only({name for name in recorded.seconds if server_of(name) is None})
    return dataclasses.replace(job, seconds=limit_of(job.tests, recorded, LOADING_TIME))


def _report(planned: Planned, results: Results) -> list[Mutant]:
    """Print a table by module, and store and return the faults that live without a reason."""
    rows: dict[str, collections.Counter[str]] = {}
    unknown: list[Mutant] = []
    for mutant, tests in planned:
        outcome = results.outcome(mutant, tests)
        row = mutant.path if mutant.path in COMPLETE else row_of(mutant.path)
        counts = rows.setdefault(row, collections.Counter())
        counts["all"] += 1
        if outcome in DEFINITE:
            counts["noticed"] += 1
        elif mutant.key in KNOWN:
            counts["known"] += 1
        elif outcome is None:
            counts["not tried"] += 1
        else:
            counts[outcome] += 1
            unknown.append(mutant)
    columns = ("all", "noticed", "known", Outcome.LIVES, Outcome.UNTESTED, "not tried")
    print("\n| module | faults | noticed | known | live | not run by a test | not tried | share |")
    print("|---|---|---|---|---|---|---|---|")
    for name, counts in rows.items():
        share = counts["noticed"] / max(1, counts["all"] - counts["known"] - counts["not tried"])
        print(f"| {name} | " + " | ".join(str(counts[each]) for each in columns) + f" | {share:.1%} |")
    text = "".join(f"{mutant.key}  {mutant}\n" for mutant in unknown)
    (notes.FOLDER / "survivors.txt").write_text(text)
    print(f"\n{len(unknown)} live without a reason: var/mutate/survivors.txt")
    return unknown


if __name__ == "__main__":
    sys.exit(main())
