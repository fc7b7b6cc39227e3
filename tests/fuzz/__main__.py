"""``make fuzz``: gives random inputs to the parts of the product, and prints which of them break the law."""

import argparse
import contextlib
import logging
import pathlib
import resource
import signal
import sys
import tempfile
import time
import warnings

from stoker.cli.daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from fuzz.laws import examine, prepare  # isort: skip
from fuzz.running import CASES, Report, Subject, keep, try_inputs  # isort: skip
from fuzz.subjects import SUBJECTS  # isort: skip
from stoker.template.sandbox import pool  # isort: skip

MEMORY = 4 << 30
"""Bytes of address space: an input that needs too much shall not fell the machine."""
LINE = "{:<10} {:>9} {:>8} {:>9} {:>9} {:>8}  {}"


def main() -> int:
    """Run as the arguments say; return 1 if an input has broken the law."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs, for all subjects together")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run; it is printed")
    parser.add_argument("--cases", type=pathlib.Path, default=CASES, help="folder for inputs that fail")
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; default: all"
    )
    options = parser.parse_args()
    unknown = set(options.subjects) - SUBJECTS.keys()
    if unknown:
        parser.error(f"there is no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    names = options.subjects or list(SUBJECTS)
    seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
    # A shell lets commands in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.disable(logging.CRITICAL)
    pool.install()
    print(f"seed {seed}", flush=True)
    print(
        LINE.format("subject", "inputs", "seconds", "inputs/s", "slowest", "most MB", "failures"), flush=True
    )
    options.cases.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            subject = SUBJECTS[name](pathlib.Path(folder))
            failures += _run(subject, options.inputs // len(names) // subject.cost, seed, options.cases)
    return 1 if failures else 0


def _run(subject: Subject, inputs: int, seed: int, folder: pathlib.Path) -> int:
    """Try inputs of a subject, print a line, and return how many kinds of failures there are."""
    # What is loaded when it is first needed is no part of an input.
    try_inputs(subject, 20, 0, Report())
    prepare()
    examine(lambda: None)
    report = Report()
    began = time.monotonic()
    # Ctrl-C ends a subject early; what it has found until then is printed and kept.
    with contextlib.suppress(KeyboardInterrupt):
        try_inputs(subject, inputs, seed, report)
    seconds = time.monotonic() - began
    rate = f"{report.inputs / seconds:.0f}"
    slowest = f"{report.slowest:.2f} s"
    line = (
        subject.name,
        report.inputs,
        f"{seconds:.0f}",
        rate,
        slowest,
        report.largest >> 20,
        len(report.failures),
    )
    print(LINE.format(*map(str, line)), flush=True)
    for path, (failure, _) in zip(keep(subject, report, folder), report.failures.values(), strict=True):
        print(f"  {path}\n    " + str(failure).strip().replace("\n", "\n    "), flush=True)
    return len(report.failures)


if __name__ == "__main__":
    sys.exit(main())
