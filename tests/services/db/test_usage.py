"""The counters of projects equal the sums after each change; `db recount` sets wrong ones right."""

import threading
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, a_snapshot, a_stack, delete_stack, new_id, on, together
from services.db.servers import SERVERS
from stoker.cli.commands.recount import projects as all_projects
from stoker.db import projects, snapshots, software, stacks, trees, usage
from stoker.db.engine import Database
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.software import StoredConfig, StoredDeployment
from stoker.db.trees import TreeSize
from stoker.db.work import stack_transitions

PROJECT = "tenant"
Json = typing.Any
FIRST = a_stack(name="first", tree_resources=3, excess_resources=2, goal_size=100)
CONFIG = StoredConfig(id=new_id(), project_id=PROJECT, name="c", tool="t", body="b", size=7, created_at=NOW)
DEPLOYMENT = StoredDeployment(
    id=new_id(),
    project_id=PROJECT,
    server_id="s",
    config_id=CONFIG.id,
    action=None,
    status=None,
    reason="",
    created_at=NOW,
    input_size=2,
)


def delete_snapshot(conn: sa.Connection, stack: Stack) -> None:
    deletion = a_snapshot(stack, action="DELETE", status="IN_PROGRESS", goal_size=5)
    snapshots.insert(conn, stack, deletion)
    snapshots.end(conn, [deletion.traversal], reason="", failed=False)


def grow(conn: sa.Connection, stack: Stack) -> None:
    projects.lock(conn, PROJECT)
    trees.store_growth(conn, stack.id, PROJECT, TreeSize(resources=9, counted=3, excess=2))


CHANGES: dict[str, tuple[Callable[[sa.Connection], object], dict[str, int]]] = {
    "a stack": (
        lambda conn: stacks.insert(conn, a_stack(tree_resources=4, goal_size=10)),
        {"stacks": 2, "resources": 9, "goal_bytes": 110},
    ),
    "a nested stack": (
        lambda conn: stacks.insert_many(conn, [a_stack(live_name=None, tree_resources=4)]),
        {},
    ),
    "an update": (
        lambda conn: stack_transitions.begin(
            conn, FIRST, new_id(), action="UPDATE", tree_resources=1, goal_size=40
        ),
        {"resources": 3, "goal_bytes": 40},
    ),
    "an update that comes too late": (
        lambda conn: stack_transitions.begin(
            conn, a_stack(id=FIRST.id), new_id(), action="UPDATE", tree_resources=1
        ),
        {},
    ),
    "a tree's growth": (lambda conn: grow(conn, FIRST), {"resources": 9}),
    "a deletion": (
        lambda conn: delete_stack(conn, FIRST, NOW),
        {"stacks": 0, "resources": 0, "goal_bytes": 0},
    ),
    "a snapshot": (
        lambda conn: snapshots.insert(conn, FIRST, a_snapshot(FIRST, goal_size=5)),
        {"snapshots": 1, "goal_bytes": 105},
    ),
    "a snapshot and its deletion": (lambda conn: delete_snapshot(conn, FIRST), {}),
    "a deployment of a config": (
        lambda conn: [software.insert_config(conn, CONFIG), software.insert_deployment(conn, DEPLOYMENT)],
        {"software_configs": 1, "software_deployments": 1, "software_bytes": 9},
    ),
    "its outputs": (
        lambda conn: software.change_deployment(conn, DEPLOYMENT, {"output_size": 30}, NOW),
        {"software_configs": 1, "software_deployments": 1, "software_bytes": 39},
    ),
    "its deletion": (
        lambda conn: [
            software.delete_deployment(conn, software.get_deployment(conn, DEPLOYMENT.id, PROJECT), NOW),
            software.delete_config(conn, CONFIG),
            software.delete_config(conn, CONFIG),
        ],
        {},
    ),
}
SOFTWARE = ("a deployment of a config", "its outputs", "its deletion")
"""They follow each other."""


def used(database: Database) -> dict[str, int]:
    return dict(database.read(lambda conn: projects.get(conn, PROJECT)).usage)


@on(*SERVERS)
@pytest.mark.parametrize("name", [name for name in CHANGES if name not in SOFTWARE[1:]])
def test_the_counters_are_the_sums_after(database: Database, name: str) -> None:
    database.write(lambda conn: stacks.insert(conn, FIRST))
    first = {**dict.fromkeys(usage.COUNTERS, 0), "stacks": 1, "resources": 5, "goal_bytes": 100}
    assert used(database) == first
    for each in SOFTWARE if name in SOFTWARE else (name,):
        change, expected = CHANGES[each]
        database.write(change)
        assert used(database) == first | expected, each
        assert database.read(lambda conn: usage.summed(conn, PROJECT)) == first | expected, each


def test_the_row_of_the_project_is_locked_last(database: Database) -> None:
    texts: list[str] = []

    def note(conn: object, cursor: object, statement: str, *unused: object) -> None:
        texts.append(statement)

    def change(conn: sa.Connection) -> None:
        sa.event.listen(conn, "before_cursor_execute", note)
        stacks.insert(conn, a_stack(name="one", tags=("t",)))
        stacks.insert(conn, a_stack(name="two", tree_resources=1))

    database.write(lambda conn: stacks.insert(conn, FIRST))
    database.write(change)
    changed = [text.split()[1] for text in texts if text.startswith("UPDATE")]
    assert (changed, texts[-1].split()[1]) == (["project"], "project"), texts


@on(*SERVERS)
def test_a_wrong_counter_is_set_right_beside_transactions_that_change_it(database: Database) -> None:
    changed = threading.Barrier(1 if database.dialect == "sqlite" else 2)

    def create() -> None:
        def store(conn: sa.Connection) -> None:
            stacks.insert(conn, a_stack(name=new_id(), tree_resources=1))
            changed.wait(60)

        database.write(store)

    def recount() -> list[usage.Recount]:
        changed.wait(60)
        return database.write(lambda conn: usage.recount(conn, PROJECT))

    p = tables.project
    database.write(lambda conn: stacks.insert(conn, FIRST))
    database.write(lambda conn: conn.execute(sa.update(p).values(stacks=7, goal_bytes=-1)))
    [_, wrong] = together(create, recount)
    assert {(each.counter, each.stored - each.counted) for each in typing.cast(Json, wrong)} == {
        ("stacks", 6),
        ("goal_bytes", -101),
    }
    assert database.write(lambda conn: usage.differences(conn, PROJECT)) == []
    assert used(database)["stacks"] == 2


def test_all_projects_are_counted_again(database: Database) -> None:
    names = [f"p{number:03d}" for number in range(250)]
    database.write(lambda conn: [stacks.insert(conn, a_stack(project_id=name)) for name in names[:120]])
    for name in names[120:]:
        database.write(lambda conn: projects.lock(conn, name))  # noqa: B023
    database.write(lambda conn: conn.execute(sa.delete(tables.project).where(tables.project.c.id == "p007")))
    assert list(all_projects(database)) == names
    assert database.read(lambda conn: usage.has_any(conn, "p007"))
    assert not database.read(lambda conn: usage.has_any(conn, "p07"))
    [wrong] = database.write(lambda conn: usage.recount(conn, "p007"))[:1]
    assert (wrong.counter, wrong.stored, wrong.counted) == ("stacks", 0, 1)
