"""Updates: what the environment forbids, and what a resource type may decide itself."""

import pathlib
import typing

import pytest
from simulation.helpers import cancel, created, ended, history, on, rows
from simulation.restrictions import restricted, server, state, template, update, volume
from simulation.world import World
from stoker.db import resources
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.signals import set_health
from stoker.engine.stacks import act_on_stack
from stoker.resources.heat.none import NoneResource
from stoker.template.errors import TemplateError

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.mark.parametrize(
    ("word", "definition"),
    [
        ("update", server(value="2")),
        ("replace", server(size=2)),
        ("replace", {"type": "OS::Heat::None"}),
        (["update", "replace"], server(value="2")),
    ],
)
def test_what_the_environment_restricts_fails_and_leaves_the_resource_alone(
    world: World, word: Json, definition: Json
) -> None:
    stack = created(world, template(a=server(), b=server()))
    before = rows(world, stack)["a"]
    count = len(history(world, stack))
    for pattern in ("a", "[a]*"):
        updated = update(world, stack, template(a=definition, b=server()), restricted(**{pattern: word}))
        forbidden = word if isinstance(word, str) else "update"
        assert updated.reason == (
            "Resource UPDATE failed: ResourceActionRestricted: resources.a: "
            f"{forbidden} is restricted for resource."
        )
        assert state(updated) == ("UPDATE", "FAILED")
        after = rows(world, stack)["a"]
        assert (after.id, after.action, after.status, after.properties) == (
            before.id,
            before.action,
            before.status,
            before.properties,
        )
    assert [event for event in history(world, stack)[count:] if event[0] == "a"] == [
        ("a", "UPDATE", "FAILED"),
        ("a", "UPDATE", "FAILED"),
    ]
    assert state(update(world, stack, template(a=definition, b=server()))) == ("UPDATE", "COMPLETE")


@pytest.mark.parametrize(("word", "definition"), [("replace", server(value="2")), ("update", server(size=2))])
def test_what_is_not_restricted_continues(world: World, word: str, definition: Json) -> None:
    stack = created(world, template(a=server()))
    assert state(update(world, stack, template(a=definition), restricted(a=word))) == ("UPDATE", "COMPLETE")


def test_an_unchanged_resource_may_be_restricted(world: World) -> None:
    stack = created(world, template(a=server()))
    updated = update(world, stack, template(a=server(), b=server()), restricted(a=["update", "replace"]))
    assert state(updated) == ("UPDATE", "COMPLETE")


def test_a_failed_resource_is_not_replaced_where_that_is_restricted(world: World) -> None:
    stack = world.create("s", template(a=server(fail=True)))
    assert world.settle(lambda: ended(world, stack), within=60)
    before = rows(world, stack)["a"]
    updated = update(world, stack, template(a=server()), restricted(a="replace"))
    assert "replace is restricted" in updated.reason
    after = rows(world, stack)["a"]
    assert (after.id, after.action, after.status) == (before.id, "CREATE", Status.FAILED)
    assert state(update(world, stack, template(a=server()))) == ("UPDATE", "COMPLETE")


def test_another_type_requested_while_the_first_is_being_made_replaces_it(world: World) -> None:
    stack = world.create("s", template(a=server(endless=True, after=3)))
    world.calm()
    updated = update(world, stack, template(a={"type": "OS::Heat::None"}))
    assert state(updated) == ("UPDATE", "COMPLETE")
    row = rows(world, stack)["a"]
    assert (row.type, row.plugin) == ("OS::Heat::None", "OS::Heat::None")
    assert world.cloud.objects == {}


def test_the_type_that_is_shown_is_the_one_of_the_template(world: World) -> None:
    stack = created(world, template(a={"type": "OS::Heat::None"}))
    mapped = {"resource_registry": {"My::Own": "OS::Heat::None"}}
    update(world, stack, template(a={"type": "My::Own"}), mapped)
    row = rows(world, stack)["a"]
    assert (row.type, row.plugin) == ("My::Own", "OS::Heat::None")
    assert isinstance(world.registry.get(row.plugin), NoneResource)


def test_update_policy_is_judged_by_the_type_and_given_to_its_steps(world: World) -> None:
    stack = created(world, template(a=volume({"batch": 2})))
    update(world, stack, template(a=volume({"batch": 3}, value="x")))
    update(world, stack, template(a=volume(value="y")))
    assert world.cloud.calls == ["update 3", "update 1"]
    for policy, complaint in (
        ({"bach": 1}, 'resources.a.update_policy: Unknown Property bach; did you mean "batch"'),
        ({"batch": "many"}, r"resources.a.update_policy.batch: .*many"),
    ):
        with pytest.raises(TemplateError, match=complaint):
            update(world, stack, template(a=volume(policy)))
    with pytest.raises(TemplateError, match="Unknown Property batch"):
        update(world, stack, template(a={**server(), "update_policy": {"batch": 1}}))


def test_a_type_may_keep_what_failed(world: World) -> None:
    stack = created(world, template(a=volume()))
    before = rows(world, stack)["a"]
    update(world, stack, template(a=volume(value="1", fail=True)))
    assert rows(world, stack)["a"].status == Status.FAILED
    updated = update(world, stack, template(a=volume(value="2")))
    assert state(updated) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert world.cloud.calls == ["update 1", "failed?", "update 1"]
    update(world, stack, template(a=volume(value="3", fail=True)))
    assert state(update(world, stack, template(a=volume(value="2")))) == ("UPDATE", "COMPLETE")
    row = rows(world, stack)["a"]
    assert (row.status, row.reason) == (
        Status.COMPLETE,
        "Update status to COMPLETE for FAILED resource neither update nor replace.",
    )
    entries = [entry for entry in history(world, stack) if entry[0] == "a"]
    assert entries[-2:] == [("a", "UPDATE", "FAILED"), ("a", "UPDATE", "COMPLETE")]


def machine(**properties: Json) -> Json:
    return {**volume(**properties), "type": "Sim::Machine"}


def checked(world: World, stack: Stack) -> None:
    """Check the stack, to the end."""
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: world.stack(stack.id).status != Status.IN_PROGRESS, within=60)


def test_what_a_check_has_found_is_repaired_before_it_is_updated(world: World) -> None:
    stack = created(world, template(a=machine(), b=server(value={"get_attr": ["a", "address"]})))
    before = rows(world, stack)["a"]
    physical_id = str(before.physical_id)
    for document, calls in (
        (template(a=machine(), b=server()), ["failed?", "repair"]),
        (template(a=machine(value="2"), b=server()), ["failed?", "repair", "update 1"]),
    ):
        world.cloud.sick[physical_id] = True
        checked(world, stack)
        assert state(world.stack(stack.id)) == ("CHECK", "FAILED")
        world.cloud.calls.clear()
        assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
        assert world.cloud.calls == calls
        row = rows(world, stack)["a"]
        assert (row.physical_id, row.data, row.status) == (
            physical_id,
            {"address": "another"},
            Status.COMPLETE,
        )


def test_a_repair_that_fails_is_tried_again_by_the_next_update(world: World) -> None:
    document = template(a=machine())
    stack = created(world, document)
    physical_id = str(rows(world, stack)["a"].physical_id)
    world.cloud.sick[physical_id] = False
    checked(world, stack)
    failed = update(world, stack, document)
    assert state(failed) == ("UPDATE", "FAILED")
    assert "it cannot be repaired" in failed.reason
    world.cloud.sick[physical_id] = True
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    assert world.cloud.sick == {}


def test_what_a_user_marks_unhealthy_is_replaced_and_not_repaired(world: World) -> None:
    document = template(a=machine())
    stack = created(world, document)
    before = rows(world, stack)["a"]
    set_health(world.context, world.stack(stack.id), "a", unhealthy=True, reason="")
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    after = rows(world, stack)["a"]
    assert after.physical_id != before.physical_id
    assert "repair" not in world.cloud.calls

    # A check since then has found something else.
    set_health(world.context, world.stack(stack.id), "a", unhealthy=True, reason="")
    world.cloud.sick[str(after.physical_id)] = True
    checked(world, stack)
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == after.physical_id


def halfway(world: World, document: Json) -> Stack:
    """A stack whose creation was cancelled while the cloud still worked on the volume ``a``."""
    stack = world.create("s", document)
    assert world.settle(lambda: rows(world, stack)["a"].physical_id is not None, within=60)
    cancel(world, stack)
    assert world.settle(lambda: rows(world, stack)["a"].status == Status.FAILED, within=60)
    return stack


def test_an_update_completes_a_creation_that_failed_halfway(world: World) -> None:
    references = {"value": {"get_resource": "a"}, "secret": {"get_attr": ["a", "address"]}}
    document = template(a=volume(looks=3, after=1), b=server(**references))
    stack = halfway(world, document)
    before = rows(world, stack)["a"]
    count = len(history(world, stack))
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    after = rows(world, stack)
    assert after["a"].physical_id == before.physical_id
    assert world.cloud.objects[str(after["b"].physical_id)].value == before.physical_id
    assert after["b"].properties["secret"] == f"at-{before.physical_id}"
    assert [event for event in history(world, stack)[count:] if event[0] == "a"] == [
        ("a", "UPDATE", "IN_PROGRESS"),
        ("a", "UPDATE", "COMPLETE"),
    ]
    assert len(world.cloud.objects) == 2


def test_a_type_may_have_what_failed_replaced(world: World) -> None:
    stack = created(world, template(a=volume()))
    before = rows(world, stack)["a"]
    update(world, stack, template(a=volume(fail=True)))
    del world.cloud.objects[str(before.physical_id)]
    assert state(update(world, stack, template(a=volume()))) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id != before.physical_id
    assert f"prepare {before.physical_id}" in world.cloud.calls


def test_a_step_may_find_that_its_resource_has_to_be_replaced(world: World) -> None:
    stack = created(world, template(a=volume(), b=server(needs=on("a"))))
    before = rows(world, stack)["a"]
    document = template(a=volume(value="elsewhere"), b=server(needs=on("a")))
    updated = update(world, stack, document, restricted(a="replace"))
    assert "resources.a: replace is restricted" in updated.reason
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert state(update(world, stack, document)) == ("UPDATE", "COMPLETE")
    after = rows(world, stack)
    assert after["a"].physical_id != before.physical_id
    assert set(world.cloud.objects) == {after["a"].physical_id, after["b"].physical_id}


@pytest.mark.parametrize("word", ["size", "type"])
def test_a_rollback_takes_again_what_was_replaced_and_is_still_there(world: World, word: str) -> None:
    old = template(a=volume(), b=server(needs=on("a")))
    stack = created(world, old)
    before = rows(world, stack)
    other = volume(size=2) if word == "size" else server()
    broken = template(a=other, b=server(needs=on("a"), fail=True))
    updated = update(world, stack, broken, disable_rollback=False)
    assert world.settle(lambda: state(world.stack(stack.id)) == ("ROLLBACK", "COMPLETE"), within=60), updated
    after = rows(world, stack)
    assert {n: r.physical_id for n, r in after.items() if n == "a"} == {"a": before["a"].physical_id}
    assert after["a"].replaces is None
    everything = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert len(everything) == 2
    assert set(world.cloud.objects) == {row.physical_id for row in after.values()}
    needs = world.cloud.objects[str(after["b"].physical_id)].needs
    assert needs == (before["a"].physical_id,)
    physical = before["a"].physical_id
    assert world.cloud.calls == [f"prepare {physical}", f"restore {physical}"]
    assert world.cloud.wrong == []
