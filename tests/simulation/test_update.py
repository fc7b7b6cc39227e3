"""Updates: what is the same stays, what can be changed is changed, the rest is replaced, at any moment."""

import pathlib
import typing

import pytest
from simulation.cloud import CloudObject
from simulation.helpers import all_rows, created, ended, history, on, previewed, rows, template, updated
from simulation.world import World
from stoker.db.states import Status
from stoker.engine import named_things
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action
from stoker.resources.openstack.names import KINDS, NameNotFound

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def test_an_update_to_the_same_costs_no_message_and_no_task(world: World) -> None:
    document = template(a={}, b={"needs": on("a")}, c={"value": {"get_attr": ["b", "address"]}})
    stack = created(world, document)
    before = history(world, stack)
    sent = world.bus.sent
    world.update(stack, document)
    assert world.stack(stack.id).reason == "Stack UPDATE completed successfully"
    assert world.bus.sent == sent
    more = history(world, stack)[len(before) :]
    assert more == [("s", "UPDATE", "IN_PROGRESS"), ("s", "UPDATE", "COMPLETE")]


def test_what_can_be_changed_is_changed_and_what_refers_to_it_follows(world: World) -> None:
    def template_for(value: str) -> Json:
        return template(
            a={"value": value},
            b={"value": {"get_attr": ["a", "value"]}},
            c={"value": {"get_attr": ["a", "address"]}},
            d={},
        )

    stack = created(world, template_for("one"))
    before = rows(world, stack)
    count = len(history(world, stack))
    updated(world, stack, template_for("two"))
    after = rows(world, stack)
    assert {n: r.physical_id for n, r in after.items()} == {n: r.physical_id for n, r in before.items()}
    assert after["b"].attributes is not None
    assert after["b"].attributes["value"] == "two"
    more = history(world, stack, count)
    assert {name for name, _, _ in more} == {"s", "a", "b"}, "c looked, found nothing to do, and said nothing"
    assert ("a", "UPDATE", "IN_PROGRESS") in more
    assert ("b", "UPDATE", "COMPLETE") in more


def test_what_cannot_be_changed_is_replaced_and_cleaned_up_after_its_dependents_moved(world: World) -> None:
    def template_for(size: int) -> Json:
        return template(a={"size": size}, b={"needs": on("a")}, c={"needs": on("b")})

    stack = created(world, template_for(1))
    before = rows(world, stack)
    updated(world, stack, template_for(2))
    after = rows(world, stack)
    assert after["a"].physical_id != before["a"].physical_id
    assert after["b"].physical_id == before["b"].physical_id, "moved over in place"
    assert world.cloud.objects[str(after["b"].physical_id)].needs == (after["a"].physical_id,)
    assert before["a"].physical_id not in world.cloud.objects
    assert all_rows(world, stack) == 3
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.objects == {}
    assert world.cloud.wrong == []


def test_what_is_new_may_refer_to_what_is_replaced(world: World) -> None:
    stack = created(world, template(a={}, old={}))
    many = {f"n{number}": {"needs": on("a")} for number in range(8)}
    updated(world, stack, template(a={"size": 2}, old={"needs": on("a")}, **many))
    after = rows(world, stack)
    assert all(
        world.cloud.objects[str(after[n].physical_id)].needs == (after["a"].physical_id,) for n in many
    )
    assert len(world.cloud.objects) == all_rows(world, stack) == 10


def test_what_a_lost_creation_has_made_is_found_though_what_it_depends_on_was_to_be_replaced(
    world: World,
) -> None:
    def template_for(size: int) -> Json:
        return template(a={"size": size}, b={"needs": on("a"), "value": {"get_attr": ["a", "address"]}})

    stack = world.create("s", template_for(1))
    maker = world.conductors["host0"]
    while len(world.cloud.objects) < 2:
        while world.bus.hints:
            world.deliver(0, "host0")
        maker.run_once()
        while maker.steps:
            maker.run_step()
    world.kill("host0")
    stop = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    world.update(stack, template_for(2), environment=stop)
    assert world.settle(lambda: bool(world.held(world.stack(stack.id))), within=30)
    updated(world, stack, template(a={"size": 2}))
    assert set(world.cloud.objects) == {row.physical_id for row in rows(world, stack).values()}


@pytest.mark.parametrize("attribute", ["value", "size"], ids=["changed", "replaced"])
@pytest.mark.parametrize("ended_by", ["cancel", "failure", "update"])
def test_what_could_not_follow_before_the_update_ended_follows_in_the_next_one(
    world: World, attribute: str, ended_by: str
) -> None:
    """Although what it refers to is not changed any more by that."""

    def template_for(number: int, **other: Json) -> Json:
        name = "value" if attribute == "value" else "address"
        follower = {"needs": on("a"), "value": {"get_attr": ["a", name]}}
        return template(
            a={attribute: number}, b=follower, c={"needs": on("b")}, d={"needs": on("a"), **other}
        )

    def item(name: str) -> CloudObject:
        return world.cloud.objects[str(rows(world, stack)[name].physical_id)]

    stack = created(world, template_for(1))
    before = rows(world, stack)
    stop = {"resource_registry": {"resources": {"b": {"hooks": "pre-update"}}}}
    world.update(stack, template_for(2, value="other", fail=ended_by == "failure"), environment=stop)
    world.calm()
    if ended_by == "cancel":
        cancel_action(world.context, world.stack(stack.id), rollback=False, by="alice")
    if ended_by != "update":
        assert world.settle(lambda: ended(world, stack), within=60)
        assert world.stack(stack.id).status == Status.FAILED
    updated(world, stack, template_for(2))
    a = str(rows(world, stack)["a"].physical_id)
    assert (a == before["a"].physical_id) == (attribute == "value")
    assert rows(world, stack)["b"].physical_id == before["b"].physical_id
    assert item("b").needs == (a,)
    assert item("b").value == ("2" if attribute == "value" else f"at-{a}")
    sent = world.bus.sent
    updated(world, stack, template_for(2))
    assert world.bus.sent == sent, "now all is as it shall be"


def test_a_chain_of_replacements_is_cleaned_up_in_order(world: World) -> None:
    def template_for(size: int) -> Json:
        return template(
            a={"size": size}, b={"needs": on("a"), "size": size}, c={"needs": on("b"), "size": size}
        )

    stack = created(world, template_for(1))
    updated(world, stack, template_for(2))
    assert all_rows(world, stack) == 3
    assert len(world.cloud.objects) == 3


def test_resources_come_and_go(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}, c={"needs": on("b")}))
    updated(world, stack, template(a={}, d={"needs": on("a")}))
    assert set(rows(world, stack)) == {"a", "d"}
    assert len(world.cloud.objects) == 2


def test_a_dependency_can_be_turned_round(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}))
    updated(world, stack, template(b={}, a={"needs": on("b")}))
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.objects == {}
    assert world.cloud.wrong == []


def test_a_failed_resource_is_replaced_by_the_next_update_and_only_it(world: World) -> None:
    stack = world.create("s", template(a={}, b={"needs": on("a"), "fail": True}, c={"needs": on("b")}))
    assert world.settle(lambda: ended(world, stack), within=60)
    before = rows(world, stack)
    updated(world, stack, template(a={}, b={"needs": on("a")}, c={"needs": on("b")}))
    after = rows(world, stack)
    assert after["a"].physical_id == before["a"].physical_id
    assert after["b"].id != before["b"].id
    assert all_rows(world, stack) == 3


def test_an_update_that_fails_keeps_what_was_and_the_next_one_repairs_it(world: World) -> None:
    stack = created(world, template(a={"value": "1"}, b={"needs": on("a")}))
    world.update(stack, template(a={"value": "2", "fail": True}, b={"needs": on("a"), "value": "new"}))
    assert world.settle(lambda: ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("UPDATE", Status.FAILED)
    assert current.reason == "Resource UPDATE failed: ResourceFailure: resources.a: told to fail"
    updated(world, stack, template(a={"value": "3"}, b={"needs": on("a"), "value": "new"}))
    assert len(world.cloud.objects) == 2


def test_an_update_during_a_creation_continues_what_stays_the_same(world: World) -> None:
    slow = {"after": 5, "looks": 3}
    stack = world.create("s", template(a=slow, b=slow))
    world.calm()
    before = rows(world, stack)
    updated(world, stack, template(a=slow, b={**slow, "size": 2}, c={"needs": on("a")}))
    after = rows(world, stack)
    assert after["a"].physical_id == before["a"].physical_id, "its creation was not disturbed"
    assert after["b"].physical_id != before["b"].physical_id
    assert ("a", "CREATE", "FAILED") not in history(world, stack)
    assert set(world.cloud.objects) == {row.physical_id for row in after.values()}


def test_an_update_ends_what_never_ends(world: World) -> None:
    stack = world.create("s", template(a={"endless": True, "after": 3}))
    world.calm()
    updated(world, stack, template(a={}))
    assert len(world.cloud.objects) == 1


def test_the_last_of_many_updates_wins(world: World) -> None:
    stack = world.create("s", template(a={"after": 3}))
    for number in range(5):
        world.update(stack, template(a={"after": 3, "value": str(number)}, **{f"x{number}": {"after": 1}}))
        world.calm_once()
    assert world.settle(lambda: ended(world, stack), within=120)
    assert set(rows(world, stack)) == {"a", "x4"}
    assert len(world.cloud.objects) == 2
    assert world.cloud.wrong == []


def test_metadata_follow_the_attributes_that_they_read(world: World) -> None:
    def template_for(value: str) -> Json:
        document = template(a={"value": value}, b={})
        document["resources"]["b"]["metadata"] = {"of_a": {"get_attr": ["a", "value"]}, "own": 1}
        return document

    stack = created(world, template_for("x"))
    updated(world, stack, template_for("y"))
    b = rows(world, stack)["b"]
    assert (b.metadata, b.generation) == ({"of_a": "y", "own": 1}, 1)


def test_a_deletion_during_an_update_takes_old_and_new_away(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}))
    world.update(stack, template(a={"size": 2, "after": 9}, b={"needs": on("a")}))
    world.calm()
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).action == "DELETE"
    assert world.cloud.objects == {}
    assert world.cloud.wrong == []


def test_a_name_that_leads_nowhere_fails_the_step_before_it_calls_a_service(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(context: object, kind: str, value: str) -> str:
        raise NameNotFound(KINDS[kind], value)

    monkeypatch.setattr(named_things, "resolve", resolve)
    stack = world.create("s", template(a={"network": "nowhere"}))
    assert world.settle(lambda: ended(world, stack), within=60)
    reason = "Resource CREATE failed: EntityNotFound: resources.a: The network (nowhere) could not be found."
    assert world.stack(stack.id).reason == reason
    assert world.cloud.objects == {}


NETWORKS = {"public": "0a0b0c0d-0000-4000-8000-000000000001", "inner": "0a0b0c0d-0000-4000-8000-000000000002"}


def test_another_word_for_the_same_thing_replaces_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_things, "resolve", lambda context, kind, value: NETWORKS.get(value, value))
    stack = created(world, template(a={"network": "public"}))
    (thing,) = world.cloud.objects
    by_id = template(a={"network": NETWORKS["public"]})
    assert previewed(world, stack, by_id)["a"] == (
        "updated",
        f"may be replaced: depends on whether they are the same: public and {NETWORKS['public']}",
    )
    updated(world, stack, by_id)
    assert list(world.cloud.objects) == [thing]
    updated(world, stack, template(a={"network": "public"}))
    assert list(world.cloud.objects) == [thing]
    updated(world, stack, template(a={"network": "inner"}))
    assert list(world.cloud.objects) != [thing]
