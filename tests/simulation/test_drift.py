"""Drift: what users change behind their stacks is seen, shown, and healed where that is asked for."""

import functools
import json
import pathlib
import typing

import pytest
from harness.duties import duty_context
from simulation.helpers import created, ended, history, rows
from simulation.nested import children
from simulation.restrictions import server, template, update, volume
from simulation.test_life import api_of
from simulation.world import World
from sqlalchemy.engine import Connection
from stoker.db import credentials
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.updates import heal_stack
from stoker.features.drift import rows as drift
from stoker.features.drift.context import DriftServices
from stoker.features.drift.duty import Drift, Observing
from stoker.features.drift.observer import ProjectObserver
from stoker.features.drift.records import DETECTED, DriftRecords
from stoker.features.drift.rows import DriftKind, DriftState, DueProject, TreeDrift
from stoker.resources.contract.errors import PermanentError, RetryableError, StepError
from stoker.sealing.stored import MASK

Json = typing.Any
INTERVAL = 600.0
HEAL = {"heal": True}


class Watch:
    """The observation of the stacks of one project in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.services = DriftServices(
            database=world.database,
            registry=world.registry,
            sealer=world.sealer,
            clock=lambda: world.clock(),
            session=world.context.delegations.session,
            host="a",
        )
        records = DriftRecords(
            self.services, interval=INTERVAL, heal=functools.partial(heal_stack, world.context)
        )
        self.observer = ProjectObserver(self.services, records)

    def look(self, stack: Stack) -> TreeDrift:
        """Observe the stack's project once, let a healing end, and return the drift of the stack."""
        self.observer.observe(stack.project_id)
        seen = self.drift(stack)
        assert self.world.settle(lambda: ended(self.world, stack), within=60)
        return seen

    def drift(self, stack: Stack) -> TreeDrift:
        read = lambda conn: drift.of_tree(conn, stack.id, stack.project_id)  # noqa: E731
        return self.world.database.read(read)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.fixture
def watch(world: World) -> Watch:
    return Watch(world)


def policy(**settings: Json) -> Json:
    return {"resource_registry": {"resources": {"*": {"stoker": {"drift": settings}}}}}


def events_of_drift(world: World, stack: Stack) -> list[tuple[str, str]]:
    return [(name, status) for name, action, status in history(world, stack) if action == "DRIFT"]


def test_what_is_gone_or_changed_is_recorded_until_it_is_right_again(world: World, watch: Watch) -> None:
    stack = created(world, template(a=server(), b=volume(value="x"), n={"type": "OS::Heat::None"}))
    assert watch.drift(stack).state is DriftState.NOT_CHECKED
    assert watch.look(stack).state is DriftState.IN_SYNC
    things = rows(world, stack)
    lost = world.cloud.objects.pop(str(things["a"].physical_id))
    world.cloud.live[str(things["b"].physical_id)] = {"value": "y"}
    for _ in range(2):
        seen = watch.look(stack)
        assert seen.state is DriftState.DRIFTED
        assert [(one.name, one.kind, one.properties) for one in seen.resources] == [
            ("a", DriftKind.GONE, {}),
            ("b", DriftKind.CHANGED, {"value": {"template": "x", "cloud": "y"}}),
        ]
    assert events_of_drift(world, stack) == [("a", DETECTED), ("b", DETECTED)], "once each"
    [listed] = api_of(world).simulate_get(f"/v1/{stack.project_id}/stacks").json["stacks"]
    assert (listed["drift_status"], listed["drifted_resources"]) == ("DRIFTED", 2)
    assert ended(world, stack), "nobody has asked for a healing"
    world.cloud.objects[str(things["a"].physical_id)] = lost
    world.cloud.live.clear()
    assert watch.look(stack).state is DriftState.IN_SYNC
    assert events_of_drift(world, stack)[2:] == [("a", "RESOLVED"), ("b", "RESOLVED")]


def test_lists_are_read_once_for_all_stacks_of_a_project(world: World, watch: Watch) -> None:
    stacks = [world.create(f"s{n}", template(a=server(), b=server())) for n in range(3)]
    assert world.settle(lambda: all(ended(world, stack) for stack in stacks), within=60)
    watch.look(stacks[0])
    assert world.cloud.lists == 1


@pytest.mark.parametrize("error", [RetryableError("no answer"), PermanentError("refused", kind="Forbidden")])
def test_a_service_that_does_not_answer_makes_no_stack_drifted(
    world: World, watch: Watch, error: StepError
) -> None:
    stack = created(world, template(a=volume()))
    world.cloud.unlistable = error
    seen = watch.look(stack)
    assert (seen.state, seen.reasons, seen.resources) == (DriftState.UNKNOWN, [str(error)], [])
    world.cloud.unlistable = None
    world.cloud.live[str(rows(world, stack)["a"].physical_id)] = {"value": "y"}
    assert watch.look(stack).state is DriftState.DRIFTED
    world.cloud.unlistable = error
    assert watch.look(stack).state is DriftState.DRIFTED, "as the service has said before"


def test_a_thing_that_no_list_has_is_read_alone(world: World, watch: Watch) -> None:
    stack = created(world, template(a=server()))
    world.cloud.unlisted.add(str(rows(world, stack)["a"].physical_id))
    assert watch.look(stack).state is DriftState.IN_SYNC


def test_an_outcome_is_out_of_date_after_the_next_action(world: World, watch: Watch) -> None:
    stack = created(world, template(a=server()))
    watch.look(stack)
    update(world, stack, template(a=volume(value="z")))
    assert watch.drift(stack).state is DriftState.NOT_CHECKED
    assert not world.database.read(lambda conn: drift.summaries(conn, [stack.id]))


def test_secrets_are_masked_on_both_sides(world: World, watch: Watch) -> None:
    document = template(a=volume(value={"get_param": "key"}))
    document["parameters"] = {"key": {"type": "string", "hidden": True, "default": "hunter2"}}
    stack = created(world, document)
    world.cloud.live[str(rows(world, stack)["a"].physical_id)] = {"value": "hunter3"}
    assert watch.look(stack).resources[0].properties == {"value": {"template": MASK, "cloud": MASK}}


def test_a_stack_heals_itself_once_in_an_interval(world: World, watch: Watch) -> None:
    stack = created(world, template(a=volume(value="x")))
    update(world, stack, template(a=volume(value="x")), policy(**HEAL))
    physical_id = str(rows(world, stack)["a"].physical_id)
    world.cloud.live[physical_id] = {"value": "y"}
    traversals = {world.stack(stack.id).traversal}
    for _ in range(3):
        watch.look(stack)
        traversals.add(world.stack(stack.id).traversal)
    assert len(traversals) == 2, "one healing"
    assert world.stack(stack.id).status == Status.COMPLETE
    assert rows(world, stack)["a"].physical_id == physical_id
    world.clock.now += INTERVAL + 1
    watch.look(stack)
    assert world.stack(stack.id).traversal not in traversals


def test_a_healing_replaces_only_where_that_is_allowed(world: World, watch: Watch) -> None:
    document = template(a=server(), b=volume(size=1))
    stack = created(world, document)
    update(world, stack, document, policy(**HEAL))
    before = rows(world, stack)
    del world.cloud.objects[str(before["a"].physical_id)]
    traversal = world.stack(stack.id).traversal
    watch.look(stack)
    assert world.stack(stack.id).traversal == traversal
    update(world, stack, document, policy(**HEAL, allow_replace=True))
    watch.look(stack)
    after = rows(world, stack)
    assert after["a"].physical_id != before["a"].physical_id
    assert after["b"].physical_id == before["b"].physical_id


def test_a_nested_stack_heals_itself_and_counts_for_its_root(world: World, watch: Watch) -> None:
    inside = json.dumps(template(v=volume(value="x")))
    document = template(n={"type": "inner.yaml"})
    settings = {"resource_registry": {"resources": {"n": {"v": {"stoker": {"drift": HEAL}}}}}}
    stack = world.create("s", document, files={"inner.yaml": inside}, environment=settings)
    assert world.settle(lambda: ended(world, stack), within=60)
    nested = children(world, stack)["n"]
    physical_id = str(rows(world, world.stack(nested.id))["v"].physical_id)
    world.cloud.live[physical_id] = {"value": "y"}
    watch.observer.observe(stack.project_id)
    summary = world.database.read(lambda conn: drift.summaries(conn, [stack.id]))
    assert not summary, "the healing has begun, so that the outcome is out of date"
    assert world.settle(lambda: ended(world, world.stack(nested.id)), within=60)
    healed = world.stack(nested.id)
    assert (healed.action, healed.status) == ("UPDATE", Status.COMPLETE), healed.reason
    assert "update 1" in world.cloud.calls
    watch.observer.observe(stack.project_id)
    summary = world.database.read(lambda conn: drift.summaries(conn, [stack.id]))
    assert (summary[stack.id].state, summary[stack.id].resources) == (DriftState.DRIFTED, 1)
    assert [one.path for one in watch.drift(stack).resources] == ["n/v"]


def test_properties_that_others_manage_are_left_alone(world: World, watch: Watch) -> None:
    document = template(a=volume(value="x"))
    stack = created(world, document)
    update(world, stack, document, policy(heal=True, ignore=["value"]))
    world.cloud.live[str(rows(world, stack)["a"].physical_id)] = {"value": "y"}
    assert watch.look(stack).state is DriftState.IN_SYNC
    calls = len(world.cloud.calls)
    update(world, stack, document, policy(heal=True, ignore=["value"]), converge=True)
    assert not [call for call in world.cloud.calls[calls:] if call.startswith("update")]


def test_a_project_without_stacks_is_forgotten(world: World, watch: Watch) -> None:
    stack = created(world, template(a=server()))
    projects = [DueProject(name, 3, world.clock()) for name in (stack.project_id, "empty")]
    world.database.write(lambda conn: drift.add_projects(conn, projects))
    for project in projects:
        watch.observer.observe(project.project_id)
    due = world.database.read(lambda conn: drift.due(conn, world.clock(), limit=9, after=(0.0, "")))
    assert [project.project_id for project in due] == [stack.project_id]


def test_each_project_is_taken_once_in_an_interval_by_one_conductor(world: World) -> None:
    stack = created(world, template(a=server()))
    observed: list[tuple[str, float]] = []
    start = world.clock()

    class Everything:
        def owns(self, shard: int) -> bool:
            return True

    observing = Observing(
        INTERVAL, lambda project: observed.append((project, world.clock() - start)), lambda project: 3
    )
    context = duty_context(world.database, Everything(), clock=lambda: world.clock())
    duties = [Drift(context, observing=observing) for _ in range(2)]
    for _ in range(60):
        for duty in duties:
            duty.run()
        world.clock.now += INTERVAL / 20
    moments = [moment for project, moment in observed if project == stack.project_id]
    assert len(moments) in (2, 3)
    assert [round(second - first) for first, second in zip(moments, moments[1:], strict=False)] == [
        round(INTERVAL)
    ] * (len(moments) - 1)


def test_users_of_one_name_share_no_list(world: World, watch: Watch) -> None:
    """A user's name is unique in one domain only: what one of them sees may be hidden from the other."""
    readers = {"s0": "u1", "s1": "u2", "s2": "u1", "s3": None, "s4": None}
    stacks = [world.create(name, template(a=server()), owner="anna") for name in readers]
    assert world.settle(lambda: all(ended(world, stack) for stack in stacks), within=60)

    def give_rights(conn: Connection) -> None:
        for stack in stacks:
            credentials.put(conn, stack.id, {}, world.clock.now, user_id=readers[stack.name])

    world.database.write(give_rights)
    page = world.database.read(lambda conn: drift.quiet_stacks(conn, "tenant", limit=9, after=(0.0, "")))
    unknown = {stack.name: stack.id for stack in stacks if readers[stack.name] is None}
    assert {stack.name: stack.reader for stack in page} == {**readers, **unknown}
    watch.look(stacks[0])
    assert world.cloud.lists == 4
