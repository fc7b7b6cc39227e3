"""Quotas under the project's lock: who counts, counts all that others have stored before them."""

import threading
import typing
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, a_stack, new_id, on, raised, together
from services.db.servers import SERVERS
from stoker.db import projects, snapshots, software, stacks
from stoker.db.engine import Database
from stoker.db.ids import SnapshotId, TraversalId
from stoker.db.rows import Snapshot
from stoker.db.software import StoredConfig, StoredDeployment
from stoker.engine.quotas import UNLIMITED, QuotaName, Quotas, SoftwareLimits
from stoker.features.quotas.operations import QuotaOperations
from stoker.template.errors import LimitExceeded

RACERS = 4
PROJECT = "tenant"
Json = typing.Any
Store = Callable[[sa.Connection], None]


def _stack(conn: sa.Connection) -> None:
    stacks.insert(conn, a_stack(name=new_id(), tree_resources=1, goal_size=1))


def _snapshot(conn: sa.Connection) -> None:
    stack = a_stack(name=new_id())
    stacks.insert(conn, stack)
    goal = {"template": stack.template_id, "environment": stack.environment_id, "files": stack.files_id}
    row: Json = {"name": None, "action": "CREATE", "status": "COMPLETE", "reason": "", "tags": []}
    row |= {"stack_id": stack.id, "traversal": TraversalId(new_id()), "goal": goal, "created_at": NOW}
    snapshots.insert(conn, stack, Snapshot(id=SnapshotId(new_id()), **row))


def _config(conn: sa.Connection) -> None:
    row: Json = {"name": "c", "tool": "t", "body": "b", "size": 1, "created_at": NOW}
    software.insert_config(conn, StoredConfig(id=new_id(), project_id=PROJECT, **row))


def _deployment(conn: sa.Connection) -> None:
    row: Json = {"action": None, "status": None, "reason": "", "created_at": NOW, "config_id": new_id()}
    deployment = StoredDeployment(id=new_id(), project_id=PROJECT, server_id=new_id(), **row)
    software.insert_deployment(conn, deployment)


def _deployed(conn: sa.Connection, *, size: int) -> StoredDeployment:
    """Store a config and a deployment of it; return the deployment."""
    row: Json = {"name": "c", "tool": "t", "body": "b", "size": size, "created_at": NOW}
    config = StoredConfig(id=new_id(), project_id=PROJECT, **row)
    software.insert_config(conn, config)
    row = {"action": None, "status": None, "reason": "", "created_at": NOW, "config_id": config.id}
    deployment = StoredDeployment(id=new_id(), project_id=PROJECT, server_id="s", **row)
    software.insert_deployment(conn, deployment)
    return deployment


MAKERS: dict[QuotaName, Store] = {
    QuotaName.STACKS: _stack,
    QuotaName.RESOURCES: _stack,
    QuotaName.GOAL_BYTES: _stack,
    QuotaName.SNAPSHOTS: _snapshot,
    QuotaName.SOFTWARE_CONFIGS: _config,
    QuotaName.SOFTWARE_BYTES: _config,
    QuotaName.SOFTWARE_DEPLOYMENTS: _deployment,
}
"""Stores one more of each kind of things."""


def quotas(**limits: int) -> Quotas:
    return Quotas({**Quotas().defaults, **limits})


@on(*SERVERS)
@pytest.mark.parametrize("name", QuotaName)
def test_of_transactions_that_store_the_last_one_of_a_project_one_is_committed(
    database: Database, name: QuotaName
) -> None:
    # SQLite has one writer at a time: there the others would wait here for the first one's end.
    stored = threading.Barrier(1 if database.dialect == "sqlite" else RACERS)
    limits = quotas(**{name: 2})
    make = MAKERS[name]

    def create() -> bool:
        def store(conn: sa.Connection) -> None:
            make(conn)
            stored.wait(60)
            limits.check(conn, PROJECT, name)

        database.write(store)
        return True

    def first(conn: sa.Connection) -> None:
        stacks.insert(conn, a_stack(name="other", project_id="elsewhere", tree_resources=9, goal_size=9))
        make(conn)
        limits.check(conn, PROJECT, name)

    database.write(first)
    results = together(*([create] * RACERS))
    errors = raised(results)
    assert [type(error) for error in errors] == [LimitExceeded] * (RACERS - 1), errors
    assert [result for result in results if result is True] == [True]
    usage = {item.name: item.used for item in QuotaOperations(database, limits).usage(PROJECT)}
    assert usage[name] == 2


def test_a_quota_of_a_projects_own_takes_the_defaults_place(database: Database) -> None:
    operations = QuotaOperations(database, quotas(stacks=1))
    limits = quotas(stacks=1)
    database.write(lambda conn: stacks.insert(conn, a_stack(name="old")))

    def check() -> None:
        database.write(lambda conn: limits.check(conn, PROJECT, QuotaName.STACKS))

    def check_room() -> None:
        database.read(lambda conn: limits.check_room(conn, PROJECT, QuotaName.STACKS))

    check()
    with pytest.raises(LimitExceeded, match="You have reached the maximum stacks per tenant, 1"):
        check_room()
    operations.change(PROJECT, {"stacks": 0, "snapshots": 7})
    with pytest.raises(LimitExceeded, match="maximum stacks per tenant, 0"):
        check()
    operations.change(PROJECT, {"stacks": 2})
    check_room()
    operations.change(PROJECT, {"stacks": UNLIMITED})
    check()
    check_room()
    assert database.read(lambda conn: projects.get(conn, PROJECT)).quotas == {"stacks": -1, "snapshots": 7}
    operations.change(PROJECT, {"stacks": None})
    usage = {item.name: (item.limit, item.default, item.used) for item in operations.usage(PROJECT)}
    assert (usage[QuotaName.STACKS], usage[QuotaName.SNAPSHOTS]) == ((1, 1, 1), (7, UNLIMITED, 0))
    operations.reset(PROJECT)
    assert database.read(lambda conn: projects.get(conn, PROJECT)).quotas == {}
    check()


def test_a_goal_that_needs_no_more_than_before_is_never_refused(database: Database) -> None:
    before = a_stack(name="s", tree_resources=5, goal_size=50)
    database.write(lambda conn: stacks.insert(conn, before))
    limits = quotas(resources=3, goal_bytes=30)

    def check(**after: int) -> None:
        stack = a_stack(name="s", **{"tree_resources": 5, "goal_size": 50, **after})
        database.write(lambda conn: limits.check_growth(conn, before, stack))

    check()
    check(tree_resources=4, goal_size=49)
    with pytest.raises(LimitExceeded, match="would have 5 resources, above its quota of 3"):
        check(tree_resources=6)
    with pytest.raises(LimitExceeded, match="would have 50 bytes, above its quota of 30"):
        check(goal_size=51)


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        ({"software_configs": 0}, ["maximum software configs per tenant, 0", "", ""]),
        ({"software_deployments": 0}, ["", "maximum software deployments per tenant, 0", ""]),
        ({"software_bytes": 2}, ["would have 3 bytes, above its quota of 2"] * 3),
        ({}, ["", "", ""]),
    ],
)
def test_a_config_and_a_deployment_need_room_in_their_quotas(
    database: Database, quota: dict[str, int], words: list[str]
) -> None:
    limits = SoftwareLimits(quotas=quotas(**quota))
    deployment = database.write(lambda conn: _deployed(conn, size=3))
    checks: list[Store] = [
        lambda conn: limits.check_config(conn, PROJECT),
        lambda conn: limits.check_deployment(conn, deployment, QuotaName.SOFTWARE_DEPLOYMENTS),
        lambda conn: limits.check_deployment(conn, deployment),
    ]
    for check, text in zip(checks, words, strict=True):
        if text:
            with pytest.raises(LimitExceeded, match=text):
                database.write(check)
        else:
            database.write(check)


@pytest.mark.parametrize(("most", "allowed"), [(0, True), (2, False), (3, True)])
def test_a_server_reads_no_more_bytes_of_configs_than_it_may(
    database: Database, most: int, *, allowed: bool
) -> None:
    limits = SoftwareLimits(server_bytes=most)
    deployment = database.write(lambda conn: _deployed(conn, size=3))
    if allowed:
        database.read(lambda conn: limits.check_deployment(conn, deployment))
    else:
        with pytest.raises(LimitExceeded, match="would have 3 bytes; .* max_software_of_server is 2"):
            database.read(lambda conn: limits.check_deployment(conn, deployment))
