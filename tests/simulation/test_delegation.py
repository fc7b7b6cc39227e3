"""A delegation of users is at Keystone exactly as long as a stack has it, whatever fails in between."""

import dataclasses
import pathlib
import typing
from collections.abc import Callable, Sequence

import pytest
import sqlalchemy as sa
from harness.duties import duty_context
from simulation.world import World
from stoker.conductor.duties.credentials import Credentials
from stoker.db import credentials, stacks
from stoker.db.errors import NameTaken, NotFound, Unavailable
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.context import Compiled
from stoker.engine.errors import NotUpdatable
from stoker.engine.planning.requests import CreateRequest, Goal, UpdateRequest
from stoker.engine.stacks import act_on_stack, create_stack, delete_stack
from stoker.engine.updates import update_stack
from stoker.keystone.delegated_auth import (
    CredentialGone,
    DelegationRefused,
    KeystoneUnavailable,
    NoAnswer,
)
from stoker.keystone.delegations import LATER, LOST_AFTER
from stoker.resources.contract.cloud import Trustor
from stoker.template.errors import TemplateError

Json = typing.Any
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {"r": {"type": "OS::Heat::TestResource"}},
}
WHO = Trustor("user", "project", ("member",), "token")


class Killed(BaseException):
    """The process ends here."""


class FakeKeystone:
    """Implements TrustProvider in memory.

    :ivar made: marks by the number of what was made.
    :ivar answers: what becomes of the next delegations: an error, which is raised before or, with NoAnswer,
        after the credential was made.
    :ivar bad: numbers that are not taken any more.
    :ivar tried: numbers of the credentials that were tried.
    """

    enabled = True

    def __init__(self) -> None:
        self.credentials: dict[int, str] = {}
        self.answers: list[BaseException] = []
        self.bad: set[int] = set()
        self.tried: list[int] = []
        self.away = False
        self.before_answer: Callable[[], None] = lambda: None
        self._count = 0

    def delegate(self, who: Trustor, mark: str) -> Json:
        error = self.answers.pop(0) if self.answers else None
        if error is not None and not isinstance(error, NoAnswer | Killed):
            raise error
        self._count += 1
        number = self._count
        self.credentials[number] = mark
        if error is not None:
            raise error
        self.before_answer()
        return {"number": number}

    def marked(self, mark: str) -> Sequence[Json]:
        self._check()
        return [{"number": number} for number, made_for in self.credentials.items() if made_for == mark]

    def session(self, credential: Json) -> typing.Any:
        return f"session of {credential['number']}"

    def is_good(self, credential: Json) -> bool:
        self.tried.append(credential["number"])
        return credential["number"] not in self.bad

    def revoke(self, credential: Json) -> None:
        self._check()
        self.credentials.pop(credential["number"], None)

    def _check(self) -> None:
        if self.away:
            raise KeystoneUnavailable("no answer")


class Scene:
    """A world whose stacks need a credential."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.keystone = FakeKeystone()
        self.context = dataclasses.replace(world.context, delegations=world.delegations(self.keystone))
        revoke = world.revoke = self.context.delegations.revoke
        self.duty = Credentials(duty_context(world.database, self, clock=world.clock, revoke=revoke))

    def owns(self, shard: int) -> bool:
        return True

    def create(self, name: str = "s") -> Stack:
        return create_stack(self.context, CreateRequest("t", name, Goal(TEMPLATE), trustor=WHO))

    def update(self, stack: Stack) -> None:
        now = self.world.stack(stack.id)
        update_stack(self.context, now, UpdateRequest(Goal(TEMPLATE), trustor=WHO))

    def let_pass(self, seconds: float) -> None:
        self.world.clock.now += seconds
        self.duty.run()

    def stack_ids(self) -> set[int]:
        """Numbers of the credentials that stacks have."""
        ids = self.world.database.read(
            lambda conn: {
                stack_id: credentials.of_stack(conn, stack_id)
                for stack_id in conn.execute(sa.select(tables.stack.c.id)).scalars()
            }
        )
        opened = [self.context.delegations._open(key, body) for key, body in ids.items() if body]
        return {credential["number"] for credential in opened}

    def rows(self) -> int:
        count = sa.select(sa.func.count()).select_from(tables.credential)
        return int(self.world.database.read(lambda conn: conn.execute(count).scalar_one()))

    def settled(self) -> set[int]:
        """Return the trusts of Keystone, which must be those of stacks, with nothing else stored."""
        assert set(self.keystone.credentials) == self.stack_ids()
        assert self.rows() == len(self.stack_ids())
        return self.stack_ids()


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    return Scene(World(tmp_path, hosts=1, threads=4))


def stumbling(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the next stack be impossible to store."""

    def insert(conn: Json, stack: Stack, others: Json) -> None:
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(stacks, "insert", insert)


def test_a_stack_that_is_stored_has_its_credential(scene: Scene) -> None:
    scene.create()
    assert scene.settled() == {1}
    scene.let_pass(2 * LOST_AFTER)
    assert scene.settled() == {1}


@pytest.mark.parametrize("error", [NameTaken("s"), Unavailable("full"), ValueError("a bug"), SystemExit(1)])
def test_what_cannot_be_stored_leaves_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    stumbling(monkeypatch, error)
    with pytest.raises(type(error)):
        scene.create()
    assert scene.settled() == set()


def test_what_cannot_be_stored_while_keystone_is_unavailable_is_revoked_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stumbling(monkeypatch, ValueError("a bug"))
    scene.keystone.away = True
    with pytest.raises(ValueError, match="a bug"):
        scene.create()
    scene.let_pass(LATER)
    assert list(scene.keystone.credentials) == [1]
    scene.keystone.away = False
    scene.let_pass(LATER)
    assert scene.settled() == set()


def test_what_a_request_failed_to_revoke_is_revoked_a_minute_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stumbling(monkeypatch, ValueError("a bug"))
    scene.keystone.away = True
    with pytest.raises(ValueError, match="a bug"):
        scene.create()
    scene.keystone.away = False
    scene.let_pass(LATER - 1)
    assert list(scene.keystone.credentials) == [1]
    scene.let_pass(1)
    assert scene.settled() == set()


@pytest.mark.parametrize("error", [Killed(), NoAnswer("timeout")])
def test_what_keystone_has_made_without_our_knowing_is_found_and_revoked(
    scene: Scene, error: BaseException
) -> None:
    """The process dies between Keystone's answer and the commit, or the answer is lost."""
    scene.keystone.answers = [error]
    with pytest.raises(type(error)):
        scene.create()
    assert list(scene.keystone.credentials) == [1]
    scene.create("living")
    scene.let_pass(LOST_AFTER - 1)
    assert set(scene.keystone.credentials) == {1, 2}, "it may still be confirmed"
    scene.let_pass(1)
    assert scene.settled() == {2}


@pytest.mark.parametrize("credential", ["a mark", ["mark"], {"number": 7}, None])
def test_a_credential_is_revoked_whatever_json_it_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, credential: Json
) -> None:
    revoked: list[Json] = []
    monkeypatch.setattr(scene.keystone, "delegate", lambda who, mark: credential)
    monkeypatch.setattr(scene.keystone, "revoke", revoked.append)
    stack = scene.create()
    body = scene.world.database.read(lambda conn: credentials.of_root(conn, stack.id))
    scene.context.delegations.revoke(stack.id, body)
    assert revoked == [credential]


def test_a_process_that_dies_before_it_can_revoke_leaves_nothing(scene: Scene) -> None:
    """All transactions fail from the one on that was to store the stack."""
    scene.world.database.planned = ["", "before", "before"]
    with pytest.raises(Unavailable):
        scene.create()
    scene.world.database.planned = []
    assert list(scene.keystone.credentials) == [1]
    assert scene.rows() == 1
    scene.let_pass(LOST_AFTER)
    assert scene.settled() == set()


@pytest.mark.parametrize("error", [DelegationRefused("no"), KeystoneUnavailable("no account")])
def test_what_keystone_did_not_make_is_not_looked_for(scene: Scene, error: BaseException) -> None:
    scene.keystone.answers = [error]
    with pytest.raises(type(error)):
        scene.create()
    assert scene.rows() == 0


def test_a_commit_that_took_place_although_it_ended_in_an_error_keeps_its_credential(scene: Scene) -> None:
    scene.world.database.planned = ["", "after"]
    with pytest.raises(Unavailable):
        scene.create()
    assert scene.settled() == {1}


def test_a_request_that_returns_too_late_stores_nothing(scene: Scene) -> None:
    """A duty has searched for what it made, before Keystone had made it."""
    created = scene.keystone.credentials

    def wait() -> None:
        hidden = dict(created)
        created.clear()
        scene.let_pass(LOST_AFTER + 1)
        created.update(hidden)

    scene.keystone.before_answer = wait
    with pytest.raises(KeystoneUnavailable, match="too late"):
        scene.create()
    assert scene.settled() == set()
    stored = scene.world.database.read(lambda conn: conn.execute(sa.select(tables.stack.c.id)).all())
    assert stored == []


def test_two_updates_that_renew_at_once_leave_one_credential(scene: Scene) -> None:
    stack = scene.create()
    scene.keystone.bad = {1}
    scene.keystone.credentials.pop(1)

    def another() -> None:
        scene.keystone.before_answer = lambda: None
        scene.update(stack)

    scene.keystone.before_answer = another
    scene.update(stack)
    assert scene.settled() == {3}


class Refused(Exception):
    """A review says no."""


def refuse(compiled: Compiled) -> str:
    """A review that says no."""
    raise Refused


@pytest.mark.parametrize(
    ("goal", "error"), [(TEMPLATE, Refused), ({**TEMPLATE, "resources": {"r": {}}}, TemplateError)]
)
def test_an_update_that_is_not_begun_asks_keystone_nothing(
    scene: Scene, goal: Json, error: type[Exception]
) -> None:
    stack = scene.create()
    scene.keystone.bad = {1}
    request = UpdateRequest(Goal(goal), trustor=WHO)
    with pytest.raises(error):
        update_stack(scene.context, scene.world.stack(stack.id), request, refuse)
    assert scene.keystone.tried == []
    assert scene.settled() == {1}


def test_an_update_of_a_suspended_stack_asks_keystone_nothing(scene: Scene) -> None:
    stack = scene.create()
    world = scene.world
    assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
    act_on_stack(scene.context, world.stack(stack.id), TaskKind.SUSPEND)
    scene.keystone.bad = {1}
    with pytest.raises(NotUpdatable):
        scene.update(stack)
    assert scene.keystone.tried == []


def test_an_update_that_others_overtake_asks_keystone_once(scene: Scene) -> None:
    stack = scene.create()
    scene.keystone.bad = {1}
    scene.keystone.before_answer = lambda: update_stack(
        scene.context, scene.world.stack(stack.id), UpdateRequest(Goal(TEMPLATE))
    )
    scene.update(stack)
    assert scene.keystone.tried == [1]


def test_an_update_of_a_stack_that_is_deleted_meanwhile_leaves_no_credential(scene: Scene) -> None:
    stack = scene.create()
    scene.keystone.bad = {1}
    world = scene.world

    def delete() -> None:
        delete_stack(world.context, world.stack(stack.id))
        assert world.settle(lambda: world.stack(stack.id).deleted_at is not None, within=60)
        scene.duty.run()

    scene.keystone.before_answer = delete
    with pytest.raises(Exception, match="deleting"):
        scene.update(stack)
    assert scene.settled() == set()


def without_credential(scene: Scene, name: str = "s") -> Stack:
    """A stack that has no credential, as one that was imported."""
    stack = scene.create(name)
    scene.world.database.write(lambda conn: credentials.forget(conn, stack.id))
    scene.keystone.credentials.clear()
    return stack


def test_a_stack_acts_with_the_rights_of_its_credential(scene: Scene) -> None:
    stack = scene.create()
    assert scene.context.delegations.session(stack.id) == "session of 1"
    other = without_credential(scene, "other")
    with pytest.raises(CredentialGone, match="no credential"):
        scene.context.delegations.session(other.id)


def test_a_stack_is_given_a_credential_if_it_has_none_and_the_user_is_of_its_project(scene: Scene) -> None:
    delegations = scene.context.delegations
    stack = scene.create()
    delegations.provide(stack.id, "project", WHO)
    assert (scene.settled(), scene.keystone.tried) == ({1}, [])
    scene.world.database.write(lambda conn: credentials.forget(conn, stack.id))
    scene.keystone.credentials.clear()
    delegations.provide(stack.id, "other", WHO)
    delegations.provide(stack.id, "project", None)
    scene.keystone.enabled = False
    delegations.provide(stack.id, "project", WHO)
    assert scene.settled() == set()
    scene.keystone.enabled = True
    delegations.provide(stack.id, "project", WHO)
    assert scene.settled() == {2}


def test_where_users_delegate_nothing_keystone_is_not_called(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = scene.create()
    scene.keystone.enabled = False
    scene.update(stack)
    scene.context.delegations.renew(stack.id, WHO)
    assert (scene.settled(), scene.keystone.tried) == ({1}, [])
    stumbling(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        scene.create("other")


def test_a_stack_that_is_deleted_while_it_is_given_a_credential_gets_none(scene: Scene) -> None:
    stack = without_credential(scene)
    world = scene.world

    def delete() -> None:
        delete_stack(world.context, world.stack(stack.id))
        assert world.settle(lambda: world.stack(stack.id).deleted_at is not None, within=60)

    scene.keystone.before_answer = delete
    scene.context.delegations.provide(stack.id, "project", WHO)
    assert scene.settled() == set()


def test_a_stack_that_is_purged_while_it_is_given_a_credential_gets_none(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = without_credential(scene)

    def lock(conn: sa.Connection, stack_id: str) -> Stack:
        raise NotFound("Stack", stack_id)

    monkeypatch.setattr(stacks, "lock", lock)
    scene.context.delegations.provide(stack.id, "project", WHO)
    assert scene.settled() == set()
