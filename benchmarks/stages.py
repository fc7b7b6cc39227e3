"""Where the processor time of a request goes: a create of a stack of one resource, and a show.

Usage:
    python benchmarks/stages.py     options: --requests 300

The application answers in this process, without the HTTP server, with policy and with the headers that
Keystone's middleware sets.  The database is SQLite, whose own work is in the row of the statements.  Each
stage has the time that it takes itself, without that of the stages which it calls.
"""

import argparse
import collections
import functools
import pathlib
import statistics
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import pytest
import sqlalchemy as sa
from harness import templates
from simulation.console import Callers
from simulation.world import World
from stoker.api import app, reply
from stoker.api.keystone import KeystoneAuthentication
from stoker.engine import stacks
from stoker.engine.compile import GoalCompiler
from stoker.template.sandbox import pool

Json = typing.Any
REST = "routing, checks, rows, and the test's client"
STAGES: dict[str, list[tuple[object, str]]] = {
    "reading the body": [(app, "read_body")],
    "authentication": [(KeystoneAuthentication, "identify")],
    "policy": [(KeystoneAuthentication, "authorize")],
    "compiling": [(GoalCompiler, "compile")],
    "planning": [(stacks, "plan_create")],
    "SQL statements": [
        (sa.Connection, "execute"),
        (sa.Connection, "exec_driver_sql"),
        (sa.Connection, "commit"),
    ],
    "text of the answer": [(reply, "json_text")],
}
"""The functions of each stage."""


class Stages:
    """Adds up the time of each stage of the requests."""

    def __init__(self) -> None:
        self._seconds: collections.Counter[str] = collections.Counter()
        self._stack: list[str] = []
        self._since = time.thread_time()

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Put a watch around the functions of all stages."""
        for stage, functions in STAGES.items():
            for owner, name in functions:
                patch.setattr(owner, name, self._watched(stage, getattr(owner, name)))

    def of_request(self, request: Callable[[], None]) -> dict[str, float]:
        """Return the seconds of a request by stage."""
        self._seconds.clear()
        self._enter(REST)
        request()
        self._leave()
        return dict(self._seconds)

    def _watched(self, stage: str, function: Callable[..., Json]) -> Callable[..., Json]:
        @functools.wraps(function)
        def watched(*arguments: Json, **keywords: Json) -> Json:
            self._enter(stage)
            try:
                return function(*arguments, **keywords)
            finally:
                self._leave()

        return watched

    def _enter(self, stage: str) -> None:
        self._count()
        self._stack.append(stage)

    def _leave(self) -> None:
        self._count()
        self._stack.pop()

    def _count(self) -> None:
        now = time.thread_time()
        if self._stack:
            self._seconds[self._stack[-1]] += now - self._since
        self._since = now


def requests(world: World, count: int, stages: Stages) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the kind and the seconds by stage of each request."""
    owner = Callers(world).owner
    for number in range(count):
        body = {"stack_name": f"s{number}", "template": templates.flat(1)}
        answers: list[Json] = []

        def create(body: Json = body, answers: list[Json] = answers) -> None:
            answers.append(owner.call("POST", "/v1/tenant/stacks", body))

        yield "create", stages.of_request(create)
        assert answers[0].status_code == 201, answers[0].json
        path = f"/v1/tenant/stacks/s{number}/{answers[0].json['stack']['id']}"

        def show(path: str = path, answers: list[Json] = answers) -> None:
            answers.append(owner.call("GET", path))

        yield "show", stages.of_request(show)
        assert answers[1].status_code == 200, answers[1].json


def main() -> int:
    """Measure, and print the medians in milliseconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    pool.install()
    stages = Stages()
    seconds: dict[str, list[dict[str, float]]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder, pytest.MonkeyPatch.context() as patch:
        stages.watch(patch)
        world = World(pathlib.Path(folder), hosts=1, threads=1, seed=0)
        for kind, of_request in requests(world, options.requests, stages):
            seconds[kind].append(of_request)
        world.database.close()
    print(f"{'stage':<46}{'create, ms':>12}{'show, ms':>12}")
    for stage in (*STAGES, REST):
        medians = [1000 * _median(seconds[kind], stage) for kind in ("create", "show")]
        print(f"{stage:<46}{medians[0]:>12.2f}{medians[1]:>12.2f}")
    totals = [
        1000 * statistics.median(sum(one.values()) for one in seconds[kind]) for kind in ("create", "show")
    ]
    print(f"{'all':<46}{totals[0]:>12.2f}{totals[1]:>12.2f}")
    return 0


def _median(measured: list[dict[str, float]], stage: str) -> float:
    return statistics.median(one.get(stage, 0.0) for one in measured)


if __name__ == "__main__":
    sys.exit(main())
