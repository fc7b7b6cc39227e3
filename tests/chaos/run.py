"""Chaos: ``python -m chaos.run --set NAME --seconds N --seed N``.

Clients drive stacks on real processes while a nemesis lets faults happen.  Then the faults stop, the clients
bring their stacks to a last goal, and the checker compares what was answered, stored and made.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import pathlib
import random
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence

from chaos import checker
from chaos.backends import EMBEDDED, SETS
from chaos.client import Client, Stacks, read_stack
from chaos.database import Rows
from chaos.fleet import Daemon, EmbeddedFleet, Fleet, ServedFleet
from chaos.history import History, Unsettled, load
from chaos.http import Http
from chaos.ledger import journal
from chaos.nemesis import FaultyLedger, Nemesis
from chaos.report import summary, write_report
from chaos.settling import WITHIN, settle
from harness.fault_proxy import Fault, FaultProxy
from harness.ports import HOST, free_port
from harness.tcp_link import Links
from harness.waiting import wait_for

TESTS = pathlib.Path(__file__).parents[1]
LEDGER = "ledger.sqlite"
ROOT = TESTS.parent
CLIENTS = 4
READERS = 2
SHARE = 0.4
"""Share of the requests to the ledger that meet a fault, while it is faulty."""
HANGS = 4.0
"""Seconds for which a request to the ledger hangs: more than its clients wait."""


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a run.

    :ivar text: the report.
    """

    text: str
    violations: Sequence[str]
    history: History


def run(name: str, *, seconds: float, seed: int, folder: pathlib.Path) -> Result:
    """Run chaos on a set of back ends.

    :param seconds: for which faults happen.
    :param folder: an empty one, which keeps all records.
    """
    history = History()
    with contextlib.ExitStack() as stack:
        backends = SETS[name](folder)
        stack.callback(backends.close)
        ledger = stack.enter_context(_ledger(folder, seed))
        links = Links()
        stack.callback(links.close)
        fleet: Fleet
        if name == EMBEDDED:
            fleet = EmbeddedFleet(folder, ledger=ledger.proxy.url)
        else:
            fleet = ServedFleet(folder, backends, links, ledger=ledger.proxy.url)
        stack.callback(fleet.stop)
        fleet.start()
        stage = Stage(fleet, Nemesis(fleet, backends, ledger, history, seed=seed), history, seed)
        try:
            _drive(stage, seconds)
            rows = Rows(fleet.database_url)
            history.add(*rows.events(), *rows.stacks(), *rows.resources(), *rows.copies())
        finally:
            history.save(folder / "history.jsonl")
    violations = checker.violations(history, journal(folder / LEDGER))
    text = summary(name, seed, history, violations)
    write_report(folder, f"Chaos: {name}, seed {seed}", text, history)
    return Result(text, violations, history)


@dataclasses.dataclass(frozen=True)
class Stage:
    """The installation, and those who act on it."""

    fleet: Fleet
    nemesis: Nemesis
    history: History
    seed: int


def _drive(stage: Stage, seconds: float) -> None:
    """Let clients and faults act; then settle without faults."""
    stacks = Stacks()
    rows = Rows(stage.fleet.database_url)
    clients = [
        Client(number, stage.fleet.urls, stage.history, stacks, seed=stage.seed) for number in range(CLIENTS)
    ]
    http = Http(stage.fleet.urls, random.Random(stage.seed))
    is_over = threading.Event()
    is_settled = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS + READERS + 2) as pool:
        try:
            jobs = [pool.submit(client.run, is_over) for client in clients]
            jobs.append(pool.submit(stage.nemesis.run, is_over))
            watchers = [pool.submit(_read, stage, stacks, number, is_settled) for number in range(READERS)]
            watchers.append(pool.submit(rows.sample, stage.history, is_settled))
            concurrent.futures.wait(jobs, seconds, concurrent.futures.FIRST_EXCEPTION)
            is_over.set()
            for job in jobs:
                job.result()
            stage.nemesis.heal()
            settle(clients, http, stage.history)
            _wait_for_tasks(rows, stage.history)
        finally:
            is_over.set()
            is_settled.set()
        for job in watchers:
            job.result()


def _read(stage: Stage, stacks: Stacks, number: int, stop: threading.Event) -> None:
    """Read the latest stacks again and again."""
    chosen_by = random.Random(f"{stage.seed} reader {number}")
    http = Http(stage.fleet.urls, random.Random(f"{stage.seed} reader {number} api"))
    while not stop.wait(chosen_by.uniform(0.02, 0.2)):
        if paths := stacks.recent(3 * CLIENTS):
            read_stack(http, stage.history, chosen_by.choice(paths))


def _wait_for_tasks(rows: Rows, history: History) -> None:
    try:
        wait_for(
            lambda: not rows.open_tasks(), WITHIN, lambda: f"open tasks: {rows.open_tasks()[:10]}", pause=0.5
        )
    except TimeoutError as error:
        history.add(Unsettled(str(error)))


@contextlib.contextmanager
def _ledger(folder: pathlib.Path, seed: int) -> Iterator[FaultyLedger]:
    port = free_port()
    command = [sys.executable, "-m", "chaos.ledger", folder / LEDGER, str(port)]
    env = {"PYTHONPATH": str(TESTS)}
    daemon = Daemon("ledger", command, folder / "ledger.log", env)
    daemon.start()
    proxy = FaultProxy(f"http://{HOST}:{port}", seed=seed, share=SHARE, hangs=HANGS, faults=tuple(Fault))
    try:
        daemon.process.wait_for_port(port)
        yield FaultyLedger(daemon, proxy)
    finally:
        proxy.close()
        daemon.kill()


def _check(folder: pathlib.Path) -> int:
    """Apply the rules to the records of a run."""
    violations = checker.violations(load(folder / "history.jsonl"), journal(folder / LEDGER))
    print(*violations, f"{len(violations)} violations", sep="\n")
    return 1 if violations else 0


def main() -> int:
    """Run chaos on each set; return 1 where a rule was violated."""
    parser = argparse.ArgumentParser(prog="chaos")
    parser.add_argument(
        "--set", choices=SETS, action="append", help="the back ends; all, one after the other"
    )
    parser.add_argument("--seconds", type=float, default=1200.0, help="for which faults happen, for each set")
    parser.add_argument("--seed", type=int, default=None, help="of the load and the faults; by chance")
    parser.add_argument(
        "--check", type=pathlib.Path, metavar="FOLDER", help="check a run again, and run none"
    )
    options = parser.parse_args()
    if options.check is not None:
        return _check(options.check)
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    is_green = True
    for name in options.set or SETS:
        folder = ROOT / "var" / "chaos" / f"{name}-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"chaos on {name} for {options.seconds:g} s, seed {seed} …", flush=True)
        result = run(name, seconds=options.seconds, seed=seed, folder=folder)
        print(f"{result.text}{folder / 'report.html'}", flush=True)
        is_green &= not result.violations
    return 0 if is_green else 1


if __name__ == "__main__":
    sys.exit(main())
