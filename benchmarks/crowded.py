"""Cost of a request in a project of many stacks, as a ratio to the same request in a small one.

Usage:
    python benchmarks/crowded.py [--stacks 100000] [--runs 40]

`stoker serve` runs on SQLite, with raised quotas.  Most stacks are copies of the row of one that a request
has made.  The two projects take turns, so both meet whatever else the machine does.  The exit code is 1 where
the fastest create or first page takes more than 1.2 times the fastest one in the small project.
"""

import argparse
import functools
import os
import pathlib
import sqlite3
import sys
import tempfile
import time
import typing
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from client.serving import Service
from harness import templates
from stoker.db import usage
from stoker.db.engine import Database

MOST = 1.2
FEW = 60
"""Stacks of the small project."""
PAGE = 20
"""Stacks in an answer, and in each project failed ones, which have a tag of their own."""
QUOTAS = ("max_stacks_per_project", "max_resources_per_project", "max_goals_of_project")
COPY = """
WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
INSERT INTO stack ({columns}) SELECT {values} FROM stack, number
WHERE stack.name = 'first' AND stack.tenant = :project
"""
TAGS = """
INSERT INTO stack_tag (stack_id, tag, position, project_id, created_at)
SELECT id, CASE WHEN status = 'FAILED' THEN 'rare' ELSE 'common' END, 0, tenant, created_at FROM stack
WHERE name <> 'first'
"""
Json = typing.Any


def main() -> int:
    """Measure, as the text of the module describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=100000)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder)
        config = directory / "quotas.conf"
        config.write_text("\n".join(["[stacks]", *(f"{name} = {10**12}" for name in QUOTAS)]))
        service = Service(directory, conductors=1, config=config, env=dict(os.environ))
        try:
            return measure(service, options.stacks, options.runs)
        finally:
            service.stop()


def measure(service: Service, count: int, runs: int) -> int:
    """Print the table; return the exit code."""
    for project in ("large", "small"):
        service.created(project, "first", templates.flat(1))
    fill(service.data / "stoker.sqlite", count)
    numbers = iter(range(10**9))
    requests: dict[str, Callable[[str], object]] = {
        "create": lambda project: service.create(project, f"new{next(numbers)}", templates.flat(1)),
        "list": lambda project: service.get(f"/v1/{project}/stacks?limit={PAGE}"),
        "list of a later page": lambda project: service.get(
            f"/v1/{project}/stacks?limit={PAGE}&marker={middle(project, count)}"
        ),
        "list by name": lambda project: service.get(f"/v1/{project}/stacks?limit={PAGE}&name=s30"),
        "list by status": lambda project: service.get(f"/v1/{project}/stacks?limit={PAGE}&status=FAILED"),
        "list by tag": lambda project: service.get(f"/v1/{project}/stacks?limit={PAGE}&tags=rare"),
    }
    print(f"| request | of {FEW} stacks, ms | of {count:,}, ms | ratio |\n|---|---|---|---|")
    ratios = {name: row(name, request, runs) for name, request in requests.items()}
    return int(max(ratios["create"], ratios["list"]) > MOST)


def row(name: str, request: Callable[[str], object], runs: int) -> float:
    """Measure a request in both projects by turns, print the row, and return the ratio."""
    seconds: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(runs):
        for project, measured in seconds.items():
            began = time.perf_counter()
            request(project)
            measured.append(time.perf_counter() - began)
    small, large = (min(seconds[project]) for project in ("small", "large"))
    print(f"| {name} | {small * 1000:.1f} | {large * 1000:.1f} | {large / small:.2f} |")
    return large / small


def middle(project: str, count: int) -> str:
    """Return the id of a stack in the middle of a project's list."""
    return copied(project, (count if project == "large" else FEW) // 2)


def copied(project: str, number: int) -> str:
    """Return the id of a copy."""
    return f"{'large small'.index(project)}{number:07d}-0000-4000-8000-000000000000"


def fill(path: pathlib.Path, count: int) -> None:
    """Copy the first stacks."""
    with sqlite3.connect(path, timeout=60) as conn:
        columns = [name for _, name, *_ in conn.execute("PRAGMA table_info(stack)")]
        for project, number in (("large", count), ("small", FEW)):
            new_id = f"printf('{'large small'.index(project)}%07d-0000-4000-8000-000000000000', n)"
            values: Json = {name: f"stack.{name}" for name in columns}
            values |= {"id": new_id, "root_id": new_id, "name": "'s' || n", "live_name": "'s' || n"}
            values |= {"created_at": "stack.created_at - 1 + n / 1e7"}
            values |= {"status": f"CASE WHEN n % {number // PAGE} = 0 THEN 'FAILED' ELSE stack.status END"}
            text = COPY.format(columns=", ".join(columns), values=", ".join(values.values()))
            conn.execute(text, {"count": number, "project": project})
        conn.execute(TAGS)
    conn.close()
    database = Database(f"sqlite:///{path}")
    for project in ("large", "small"):
        database.write(functools.partial(usage.recount, project_id=project))
    database.close()


if __name__ == "__main__":
    sys.exit(main())
