"""Trees of stacks on three conductors: parents hold no thread, all take part, and a death changes nothing."""

import collections
import json
import pathlib
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment, Servers
from harness.waiting import wait_for

Json = typing.Any
HOSTS = ("one", "two", "three")
THREADS = 4
LEAF = "file:///leaf.yaml"
LEVEL = "file:///level{}.yaml"
OTHER_THREADS = 25
"""Threads of a conductor besides those of its pool: duties, membership, message bus, work loop."""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Iterator[Deployment]:
    started = servers.deployment(tmp_path_factory.mktemp("nested"), f"[conductor]\nthreads = {THREADS}\n")
    started.start_api()
    started.start_conductors(*HOSTS)
    yield started
    started.stop()


def leaf(**properties: Json) -> str:
    """A template of one resource."""
    return json.dumps(
        templates.template(
            {"r": templates.one(**properties)}, outputs={"said": {"value": {"get_attr": ["r", "output"]}}}
        )
    )


def many(count: int, kind: str) -> Json:
    return templates.template({f"n{index}": {"type": kind} for index in range(count)})


def tree(depth: int, width: int, **properties: Json) -> tuple[Json, dict[str, str]]:
    """A template with so many levels of children below it, and its files."""
    files = {LEAF: leaf(**properties)}
    below = LEAF
    for level in range(1, depth):
        files[LEVEL.format(level)] = json.dumps(many(width, below))
        below = LEVEL.format(level)
    return many(width, below), files


def query(deployment: Deployment, sql: str, **values: Json) -> list[Json]:
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        return list(conn.execute(sa.text(sql), values).all())


def statuses(deployment: Deployment, root: str) -> dict[tuple[str, str], int]:
    """How many stacks of a tree are in which state."""
    rows = query(deployment, "SELECT action, status FROM stack WHERE root_id = :root", root=root)
    return dict(collections.Counter((action, status) for action, status in rows))


def threads(deployment: Deployment, host: str) -> int:
    status = pathlib.Path(f"/proc/{deployment.conductors[host].pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Threads:")).split()[1])


def id_of(path: str) -> str:
    return path.rsplit("/", 1)[1]


def test_64_waiting_parents_take_no_thread_of_a_pool_of_four(deployment: Deployment) -> None:
    held = {"resource_registry": {"resources": {"*": {"r": {"hooks": "pre-create"}}}}}
    path = deployment.create("wide", many(64, LEAF), files={LEAF: leaf(wait_secs=1)}, environment=held)

    def all_wait() -> bool:
        waiting = "SELECT count(*) FROM task WHERE state = 'parked' AND waits_on LIKE 'stack:%'"
        return bool(query(deployment, waiting)[0][0] == 64)

    wait_for(all_wait, 60)
    assert max(threads(deployment, host) for host in HOSTS) <= THREADS + OTHER_THREADS
    wait_for(lambda: len(deployment.show(path)["breakpoints"]) == 64, 60)
    assert deployment.call("POST", f"{path}/actions", {"continue": None})[0] == 200
    assert deployment.wait_final(path, 60)["stack_status"] == "CREATE_COMPLETE"
    done = query(
        deployment,
        "SELECT conductor, count(*) FROM event e JOIN stack s ON s.id = e.stack_id "
        "WHERE s.root_id = :root AND e.status = 'COMPLETE' AND conductor IS NOT NULL GROUP BY conductor",
        root=id_of(path),
    )
    shares = dict(done)
    assert set(shares) == set(HOSTS)
    assert min(shares.values()) >= sum(shares.values()) / len(HOSTS) / 3, shares


@pytest.mark.commit
def test_killing_a_conductor_in_the_middle_of_a_tree_changes_nothing_in_the_result(
    deployment: Deployment,
) -> None:
    template, files = tree(3, 3, wait_secs=2)
    path = deployment.create("tall", template, files=files)
    wait_for(lambda: len(statuses(deployment, id_of(path))) > 0, 60)
    wait_for(lambda: sum(statuses(deployment, id_of(path)).values()) > 12, 180)
    deployment.conductors["two"].kill()
    assert deployment.wait_final(path, 180)["stack_status"] == "CREATE_COMPLETE"
    assert statuses(deployment, id_of(path)) == {("CREATE", "COMPLETE"): 1 + 3 + 9 + 27}
    counts = query(
        deployment,
        "SELECT count(*), count(DISTINCT r.physical_id) FROM resource r JOIN stack s ON s.id = r.stack_id "
        "WHERE s.root_id = :root",
        root=id_of(path),
    )
    assert counts == [(39 + 27, 39 + 27)]
    daemon = deployment.launch_conductor("two")
    daemon.wait_for_text("is in the ring and serves")
    assert deployment.call("DELETE", path)[0] == 204
    wait_for(lambda: set(statuses(deployment, id_of(path))) == {("DELETE", "COMPLETE")}, 180)


def test_a_root_that_is_deleted_or_updated_in_the_middle_converges(deployment: Deployment) -> None:
    template, files = tree(2, 4, action_wait_secs={"create": 300})
    path = deployment.create("middle", template, files=files)
    wait_for(lambda: sum(statuses(deployment, id_of(path)).values()) == 1 + 4 + 16, 180)
    quick, nested = tree(2, 3, wait_secs=0)
    assert deployment.call("PUT", path, {"template": quick, "files": nested})[0] == 202
    assert deployment.wait_final(path, 180)["stack_status"] == "UPDATE_COMPLETE"
    alive = "SELECT count(*) FROM stack WHERE root_id = :root AND deleted_at IS NULL"
    assert query(deployment, alive, root=id_of(path)) == [(1 + 3 + 9,)]
    slow, nested = tree(2, 5, action_wait_secs={"create": 300})
    assert deployment.call("PUT", path, {"template": slow, "files": nested})[0] == 202
    wait_for(lambda: query(deployment, alive, root=id_of(path))[0][0] > 1 + 3 + 9, 180)
    assert deployment.call("DELETE", path)[0] == 204
    wait_for(lambda: set(statuses(deployment, id_of(path))) == {("DELETE", "COMPLETE")}, 180)
    running = "SELECT count(*) FROM task WHERE state = 'running'"
    wait_for(lambda: query(deployment, running) == [(0,)], 60)


def test_a_group_of_stacks_grows_and_shrinks_while_a_conductor_dies(deployment: Deployment) -> None:
    def group(count: int) -> Json:
        properties = {"count": count, "resource_def": {"type": LEAF}}
        return templates.template({"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}})

    alive = "SELECT count(*) FROM stack WHERE root_id = :root AND deleted_at IS NULL"
    files = {LEAF: leaf(wait_secs=1)}
    path = deployment.create("group", group(8), files=files)
    assert deployment.wait_final(path, 180)["stack_status"] == "CREATE_COMPLETE"
    assert query(deployment, alive, root=id_of(path)) == [(1 + 1 + 8,)]
    assert deployment.call("PUT", path, {"template": group(16), "files": files})[0] == 202
    wait_for(lambda: query(deployment, alive, root=id_of(path))[0][0] > 1 + 1 + 8, 180)
    deployment.conductors["three"].kill()
    assert deployment.wait_final(path, 180)["stack_status"] == "UPDATE_COMPLETE"
    assert query(deployment, alive, root=id_of(path)) == [(1 + 1 + 16,)]
    deployment.launch_conductor("three").wait_for_text("is in the ring and serves")
    assert deployment.call("PUT", path, {"template": group(3), "files": files})[0] == 202
    assert deployment.wait_final(path, 180)["stack_status"] == "UPDATE_COMPLETE"
    assert query(deployment, alive, root=id_of(path)) == [(1 + 1 + 3,)]
    assert deployment.call("DELETE", path)[0] == 204
    wait_for(lambda: query(deployment, alive, root=id_of(path)) == [(0,)], 180)
