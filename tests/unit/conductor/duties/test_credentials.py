"""Users' trusts are returned when their stacks are gone, however long Keystone is unavailable."""

import pathlib
import threading
import types
import typing

import pytest
from harness.duties import duty_context
from harness.waiting import wait_for
from stoker.conductor.background import BackgroundPool
from stoker.conductor.duties.credentials import RETRY_AFTER, Credentials
from stoker.conductor.scheduler import Scheduler
from stoker.db import credentials
from stoker.db.engine import Database
from stoker.db.ids import StackId
from stoker.db.schema import upgrade
from stoker.keystone.delegated_auth import KeystoneUnavailable

Json = typing.Any
NOW = 1_800_000_000.0


class Scene:
    """One credential whose stack is gone, a Keystone, and the duty."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOW
        self.away = False
        self.is_ours = True
        self.revoked: list[Json] = []
        self.duty = Credentials(duty_context(database, self, clock=lambda: self.now, revoke=self._revoke))

        def release(conn: Json) -> None:
            credentials.put(conn, StackId("1"), {"sealed": "body"}, NOW)
            credentials.release(conn, [StackId("1")], NOW)

        database.write(release)

    def owns(self, shard: int) -> bool:
        return self.is_ours

    def _revoke(self, root_id: StackId, body: Json) -> None:
        if self.away:
            raise KeystoneUnavailable("no answer")
        self.revoked.append(body)


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    database = Database(f"sqlite:///{tmp_path}/stoker.sqlite")
    upgrade.upgrade(database)
    return Scene(database)


def test_it_is_revoked_once(scene: Scene) -> None:
    scene.duty.run()
    scene.duty.run()
    assert scene.revoked == [{"sealed": "body"}]


def test_while_keystone_is_unavailable_it_is_tried_again_and_again(scene: Scene) -> None:
    scene.away = True
    scene.duty.run()
    scene.away = False
    scene.duty.run()
    assert scene.revoked == [], "not at once"
    scene.now += RETRY_AFTER
    scene.duty.run()
    assert scene.revoked == [{"sealed": "body"}]


class Other:
    """A duty beside it."""

    interval = 0.02
    rounds = 0

    def run(self) -> None:
        self.rounds += 1


def test_a_keystone_that_hangs_holds_no_thread_of_the_duties(tmp_path: pathlib.Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/stoker.sqlite")
    upgrade.upgrade(database)

    def release(conn: Json) -> None:
        for stack_id in map(StackId, "12345"):
            credentials.put(conn, stack_id, {"sealed": "body"}, NOW)
            credentials.release(conn, [stack_id], NOW)

    database.write(release)
    let_go = threading.Event()
    calls = []

    def hang(stack_id: StackId, body: Json) -> None:
        calls.append(stack_id)
        let_go.wait(300)

    pool = BackgroundPool("The revocation", threads=2, waiting=10)
    neighbour = Other()
    ring = types.SimpleNamespace(owns=lambda shard: True)
    duty = Credentials(
        duty_context(database, ring, clock=lambda: NOW, revoke=hang, background=lambda name: pool)
    )
    duty.interval = 0.02  # type: ignore[misc]
    scheduler = Scheduler({"Credentials": duty, "other": neighbour}, may_run=lambda: True)
    scheduler.start()
    try:
        wait_for(lambda: len(calls) == 2)
        before = neighbour.rounds
        first = scheduler.rounds()["Credentials"]
        wait_for(lambda: neighbour.rounds > before + 20 and scheduler.rounds()["Credentials"] != first)
        assert len(calls) == len(set(calls)) == 2, "so many threads hang, and each with a stack of its own"
    finally:
        let_go.set()
        scheduler.stop()
        pool.stop()


def test_one_conductor_does_it(scene: Scene) -> None:
    scene.is_ours = False
    scene.duty.run()
    assert scene.revoked == []
