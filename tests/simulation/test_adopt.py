"""Export, abandon, adopt: a stack's document, and a stack made of it, with what is there left as it is."""

import functools
import json
import pathlib
import typing

import pytest
from simulation.helpers import created, ended, history, on, rows, stored, updated
from simulation.helpers import template as plain_template
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.errors import ActionInProgress, NotUpdatable
from stoker.engine.exports import abandon_stack
from stoker.engine.planning.requests import AdoptedResource, CreateRequest, Goal, UpdateRequest
from stoker.engine.snapshots import take_snapshot
from stoker.engine.stacks import create_stack, delete_stack
from stoker.engine.updates import cancel_action, update_stack
from stoker.features.preview.updates import preview_changes
from stoker.template.residual import retokened

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def template() -> Json:
    document = plain_template(a={"value": "1"}, b={"needs": on("a"), "secret": {"get_param": "word"}}, c={})
    document["parameters"] = {"word": {"type": "string", "hidden": True, "default": "none"}}
    document["resources"]["c"] = {"type": "OS::Heat::RandomString"}
    document["resources"]["b"]["properties"]["value"] = {"get_attr": ["c", "value"]}
    document["resources"]["b"]["metadata"] = {"colour": "red", "word": {"get_param": "word"}}
    document["outputs"] = {"address": {"value": {"get_attr": ["b", "address"]}}}
    return document


def adopted(world: World, document: Json, name: str = "t", **fields: Json) -> Stack:
    stack = world.adopt(name, document, **fields)
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_a_stack_goes_from_one_hand_to_the_other_and_lives_on(world: World) -> None:
    goal = template()
    stack = world.create("s", goal, parameters={"word": "s3cret"})
    assert world.settle(lambda: ended(world, stack), within=60)
    before = rows(world, stack)
    objects = dict(world.cloud.objects)
    exported = world.export(world.stack(stack.id))
    document = json.loads(json.dumps(abandon_stack(world.context, world.stack(stack.id))))
    assert document == exported
    assert document["environment"]["parameters"] == {"word": "s3cret"}
    password = document["resources"]["c"]["resource_data"]["value"]
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("DELETE", Status.COMPLETE)
    assert (world.cloud.objects, rows(world, stack)) == (objects, {})
    assert history(world, stack)[-2:] == [("s", "DELETE", "IN_PROGRESS"), ("s", "DELETE", "COMPLETE")]
    again = adopted(world, document)
    assert (again.action, again.status, again.reason) == (
        "ADOPT",
        Status.COMPLETE,
        "Stack ADOPT completed successfully",
    )
    after = rows(world, again)
    assert world.cloud.objects == objects
    for name, row in after.items():
        old = before[name]
        assert (row.action, row.status) == ("ADOPT", "COMPLETE")
        for column in (
            "physical_id",
            "reference_id",
            "attributes",
            "definition",
            "properties",
            "data",
            "metadata",
        ):
            # Each stack has tokens of its own.
            one, other = (
                retokened(getattr(item, column), world.context.sealer_of(world.stack(of.id)).open)
                for item, of in ((row, again), (old, stack))
            )
            assert one == other, (name, column)
    text = stored(world)
    assert "s3cret" not in text
    assert password not in text
    sent = world.bus.sent
    update_stack(world.context, again, _request(goal, word="s3cret"))
    assert world.bus.sent == sent, "nothing is to be done"
    updated(world, again, {**goal, "resources": {**goal["resources"], "d": {"type": "Sim::Server"}}})
    assert {row.physical_id for row in rows(world, again).values()} >= {
        row.physical_id for row in before.values()
    }
    delete_stack(world.context, world.stack(again.id))
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.cloud.objects == {}


def _request(document: Json, **parameters: Json) -> Json:
    return UpdateRequest(Goal(document, parameters=parameters))


def test_a_result_that_arrives_again_after_its_stack_was_abandoned_removes_nothing(world: World) -> None:
    stack = world.create("s", plain_template(a={}))
    [(traversal, task_ids)] = world.bus.hints
    maker = world.awake()[0]
    maker.loop.enqueue({traversal: task_ids})
    maker.run_once()
    while not ended(world, stack):
        while maker.steps:
            maker.run_step()
        world.database.planned = ["after"]
        maker.run_once()
        if not ended(world, stack):
            maker.run_once()
    assert world.stack(stack.id).status == Status.COMPLETE
    abandon_stack(world.context, world.stack(stack.id))
    objects = dict(world.cloud.objects)
    assert len(objects) == 1
    world.settle(lambda: False, within=30)
    assert world.cloud.objects == objects


def test_data_that_is_no_secret_is_kept_as_that_of_every_other_stack(world: World) -> None:
    stack = created(world, plain_template(a={}))
    again = adopted(world, abandon_stack(world.context, world.stack(stack.id)))
    assert rows(world, again)["a"].data == {"address": "at-thing-1"}
    assert rows(world, again)["a"].attributes == {"address": "at-thing-1", "value": ""}


def test_what_is_not_there_cannot_be_adopted_and_the_rest_is_left_as_it_is(world: World) -> None:
    stack = created(world, plain_template(a={}, b={"needs": on("a")}))
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = dict(world.cloud.objects)
    document["resources"]["a"]["resource_id"] = "thing-77"
    again = adopted(world, document)
    assert (again.action, again.status) == ("ADOPT", Status.FAILED)
    assert again.reason == "Resource ADOPT failed: ResourceFailure: resources.a: it is gone"
    assert rows(world, again)["b"].action == "INIT", "it stands on what is not there"
    assert rows(world, again)["b"].physical_id == document["resources"]["b"]["resource_id"]
    assert world.cloud.objects == objects
    delete_stack(world.context, again)
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.cloud.objects == objects, "nothing was ever taken over"


def test_an_update_continues_with_an_adoption_that_was_cancelled(world: World) -> None:
    text = plain_template(a={}, b={}, c={"needs": on("b")})
    stack = created(world, text)
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = set(world.cloud.objects)
    goal = Goal(text)
    entries = document["resources"]
    again = create_stack(
        world.context,
        CreateRequest(
            "tenant", "t", goal, adopted={n: AdoptedResource(r["resource_id"]) for n, r in entries.items()}
        ),
    )
    updated(world, again, text)
    assert set(world.cloud.objects) == objects
    assert {row.physical_id for row in rows(world, again).values()} == objects
    assert world.cloud.wrong == []


def test_what_refers_to_something_that_is_changed_is_adopted_before_and_updated_after(world: World) -> None:
    goal = plain_template(a={}, b={"needs": on("a")}, c={"needs": on("b")})
    stack = created(world, goal)
    document = abandon_stack(world.context, world.stack(stack.id))
    ids = {name: entry["resource_id"] for name, entry in document["resources"].items()}
    again = world.adopt("t", document)
    world.deliver(0, "host0")
    conductor = world.conductors["host0"]
    conductor.run_once()
    conductor.run_step()
    conductor.run_once()
    cancel_action(world.context, world.stack(again.id), rollback=False)
    world.calm()
    states = {name: f"{row.action}_{row.status}" for name, row in rows(world, again).items()}
    assert states == {"a": "ADOPT_COMPLETE", "b": "ADOPT_FAILED", "c": "INIT_COMPLETE"}
    changed = plain_template(a={"size": 2}, b={"needs": on("a")}, c={"needs": on("b")})
    updated(world, again, changed)
    resource_rows = rows(world, again)
    assert resource_rows["a"].physical_id != ids["a"]
    assert {name: resource_rows[name].physical_id for name in ("b", "c")} == {n: ids[n] for n in ("b", "c")}
    assert world.cloud.objects[ids["b"]].needs == (resource_rows["a"].physical_id,)
    assert ids["a"] not in world.cloud.objects


def test_what_depends_on_something_that_was_not_there_is_adopted_and_moved_over(world: World) -> None:
    goal = plain_template(a={}, b={"needs": on("a")}, c={"needs": on("b")})
    stack = created(world, goal)
    document = abandon_stack(world.context, world.stack(stack.id))
    ids = {name: entry["resource_id"] for name, entry in document["resources"].items()}
    document["resources"]["a"]["resource_id"] = "thing-77"
    again = adopted(world, document)
    assert (again.action, again.status) == ("ADOPT", Status.FAILED)
    updated(world, again, goal)
    resource_rows = rows(world, again)
    assert {name: resource_rows[name].physical_id for name in ("b", "c")} == {n: ids[n] for n in ("b", "c")}
    assert world.cloud.objects[ids["b"]].needs == (resource_rows["a"].physical_id,)
    assert resource_rows["a"].physical_id in world.cloud.objects


def test_what_is_still_to_be_adopted_is_not_brought_to_something_else(world: World) -> None:
    """Nobody knows yet what it is."""
    stack = created(world, plain_template(a={"value": "1"}, b={}))
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = dict(world.cloud.objects)
    again = world.adopt("t", document)
    changed = plain_template(a={"value": "2"}, b={})
    for wish in (functools.partial(use_case, world.context) for use_case in (preview_changes, update_stack)):
        with pytest.raises(
            NotUpdatable, match="Resource a is still to be adopted.*or leave the resource out"
        ):
            wish(world.stack(again.id), UpdateRequest(Goal(changed)))
    assert world.stack(again.id) == again
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.cloud.objects == objects
    updated(world, again, changed)
    assert [item.value for item in world.cloud.objects.values()] == ["2", ""]


def test_an_update_lets_an_adoption_that_runs_come_to_its_end(world: World) -> None:
    stack = created(world, plain_template(a={"value": "1"}))
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = set(world.cloud.objects)
    again = create_stack(
        world.context,
        CreateRequest(
            "tenant",
            "t",
            Goal(document["template"]),
            adopted={"a": AdoptedResource(document["resources"]["a"]["resource_id"])},
        ),
    )
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1
    updated(world, again, plain_template(a={"value": "2"}))
    assert set(world.cloud.objects) == objects
    assert [item.value for item in world.cloud.objects.values()] == ["2"]


def test_an_adoption_whose_conductor_died_continues_under_an_update(world: World) -> None:
    stack = created(world, plain_template(a={"value": "1"}))
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = set(world.cloud.objects)
    again = world.adopt("t", document)
    world.bus.hints[:-1] = []
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert rows(world, again)["a"].status == Status.IN_PROGRESS
    changed = plain_template(a={"value": "2"})
    world.update(again, changed)
    world.kill("host0")
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE
    assert {name: item.value for name, item in world.cloud.objects.items()} == dict.fromkeys(objects, "2")


def test_a_failed_adoption_that_is_rolled_back_leaves_everything_alone(world: World) -> None:
    stack = created(world, plain_template(a={}, b={"needs": on("a")}, c={}))
    document = abandon_stack(world.context, world.stack(stack.id))
    objects = dict(world.cloud.objects)
    document["resources"]["b"]["resource_id"] = None
    again = adopted(world, document, disable_rollback=False)
    assert world.settle(lambda: world.stack(again.id).action == "ROLLBACK" and ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE
    assert rows(world, again) == {}
    assert world.cloud.objects == objects


def test_a_rollback_after_a_failed_adoption_keeps_what_was_adopted_and_changed_since(world: World) -> None:
    """The update that is cancelled had changed one of them, and nothing of the stack was ever complete."""
    goal = plain_template(a={"value": "old"}, b={}, lost={})
    stack = created(world, goal)
    document = abandon_stack(world.context, world.stack(stack.id))
    document["resources"]["lost"]["resource_id"] = None
    again = adopted(world, document)
    assert (again.action, again.status) == ("ADOPT", Status.FAILED)
    before = {name: row.physical_id for name, row in rows(world, again).items()}
    world.update(again, plain_template(a={"value": "new"}, b={"endless": True, "after": 20}))
    assert world.settle(lambda: rows(world, again)["a"].action == "UPDATE", within=60)
    world.calm()
    cancel_action(world.context, world.stack(again.id), rollback=True)
    assert world.settle(lambda: ended(world, again), within=60)
    assert world.stack(again.id).status == Status.COMPLETE
    after = rows(world, again)
    assert after["a"].physical_id == before["a"]
    assert [world.cloud.objects[str(row.physical_id)].value for row in after.values()].count("old") == 1
    assert set(after) == {"a", "b", "lost"}
    assert world.cloud.wrong == []


def test_a_rollback_takes_what_was_adopted_and_is_still_there(world: World) -> None:
    stack = created(world, plain_template(a={}))
    again = adopted(world, abandon_stack(world.context, world.stack(stack.id)))
    before = rows(world, again)["a"]
    bad = plain_template(a={"size": 2}, b={"needs": on("a"), "fail": True})
    world.update(again, bad, disable_rollback=False)
    assert world.settle(lambda: world.stack(again.id).action == "ROLLBACK" and ended(world, again), within=60)
    assert rows(world, again)["a"].physical_id == before.physical_id
    assert set(world.cloud.objects) == {before.physical_id}


def test_nothing_is_abandoned_while_it_still_changes(world: World) -> None:
    stack = world.create("s", plain_template(a={"after": 5}))
    for _ in range(2):
        with pytest.raises(ActionInProgress):
            abandon_stack(world.context, world.stack(stack.id))
        assert world.export(world.stack(stack.id))["status"] == "IN_PROGRESS"
        world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    with pytest.raises(ActionInProgress):
        abandon_stack(world.context, world.stack(stack.id))
    world.calm()
    document = abandon_stack(world.context, world.stack(stack.id))
    assert document["resources"]["a"]["resource_id"] in world.cloud.objects


def test_abandoning_deletes_the_snapshots_which_nobody_could_find_again(world: World) -> None:
    stack = created(world, plain_template(a={}))
    take_snapshot(world.context, world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.pictures
    abandon_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).action == "DELETE"
    assert world.cloud.pictures == {}
    assert len(world.cloud.objects) == 1


def test_an_adoption_stops_at_no_breakpoint(world: World) -> None:
    goal = plain_template(a={})
    hooks = {"resource_registry": {"resources": {"*": {"hooks": ["pre-create", "post-create"]}}}}
    stack = created(world, goal)
    document = abandon_stack(world.context, world.stack(stack.id))
    again = adopted(world, {**document, "environment": hooks})
    assert (again.action, again.status) == ("ADOPT", Status.COMPLETE)


def test_secrets_are_sealed_from_the_first_moment_on(world: World) -> None:
    stack = world.create("s", template(), parameters={"word": "s3cret"})
    assert world.settle(lambda: ended(world, stack), within=60)
    document = abandon_stack(world.context, world.stack(stack.id))
    password = document["resources"]["c"]["resource_data"]["value"]
    assert document["resources"]["b"]["metadata"] == {"colour": "red", "word": "s3cret"}
    world.adopt("t", document)
    text = stored(world)
    assert "s3cret" not in text
    assert password not in text


def test_changed_metadata_is_adopted_as_it_is_and_sealed_where_it_tells_a_secret(
    world: World,
) -> None:
    stack = world.create("s", template(), parameters={"word": "s3cret"})
    assert world.settle(lambda: ended(world, stack), within=60)
    document = abandon_stack(world.context, world.stack(stack.id))
    document["resources"]["b"]["metadata"] = {"note": {"word": "s3cret", "count": 1}}
    again = adopted(world, document)
    assert "s3cret" not in stored(world)
    assert world.export(again)["resources"]["b"]["metadata"] == {"note": {"word": "s3cret", "count": 1}}
