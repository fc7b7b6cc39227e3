"""Scaling groups: a signal to a policy makes more or fewer members, whatever fails meanwhile."""

import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import history, rows
from simulation.nested import (
    autoscaling_group,
    busiest,
    children,
    created,
    hot,
    server,
    settled,
    updated,
    values,
)
from simulation.world import World
from stoker.db import resources
from stoker.db.errors import NotFound
from stoker.db.notifications import Notification
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.signals import send_signal
from stoker.engine.stacks import delete_stack
from stoker.resources.contract.errors import NotSupported
from stoker.rpc.notifier import event_type, payload
from stoker.sealing.stored import metadata_in_clear
from stoker.template.errors import TemplateError

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def policy(by: float, kind: str = "change_in_capacity", **properties: Json) -> Json:
    body = {"auto_scaling_group_id": {"get_resource": "g"}, "scaling_adjustment": by, "adjustment_type": kind}
    return {"type": "OS::Heat::ScalingPolicy", "properties": {**body, **properties}}


def signal(world: World, stack: Stack, name: str = "up", details: Json = None) -> None:
    send_signal(world.context, world.stack(stack.id), name, details)


def scaled(world: World, stack: Stack, name: str = "up") -> None:
    signal(world, stack, name)
    assert world.settle(lambda: not unfinished(world), within=60)


def unfinished(world: World) -> int:
    t = tables.task.c
    states = ("ready", "running", "parked")
    query = sa.select(sa.func.count()).where(t.state.in_(states), t.kind == TaskKind.SCALE)
    return world.database.read(lambda conn: conn.execute(query).scalar_one())


def metadata_of(world: World, stack: Stack, name: str) -> Json:
    return metadata_in_clear(rows(world, stack)[name], world.sealer.of_stack("p1", stack.id).open)


def test_metadata_that_read_a_scaled_group_follow_for_its_guests(world: World) -> None:
    addresses = {"get_attr": ["g", "outputs_list", "address"]}
    proxy = {**server(), "metadata": {"IPs": {"list_join": [",", addresses]}, "port": 80}}
    stack = created(
        world,
        hot({"g": autoscaling_group(desired_capacity=1), "up": policy(1), "proxy": proxy, "other": server()}),
    )
    assert stack.status == Status.COMPLETE, stack.reason
    generations = {name: row.generation for name, row in rows(world, stack).items()}
    scaled(world, stack)
    scaled(world, stack)
    members = rows(world, stack)["g"].attributes["outputs_list, address"]
    assert len(members) == 3
    assert metadata_of(world, stack, "proxy") == {"IPs": ",".join(members), "port": 80}
    changes = {name: row.generation - generations[name] for name, row in rows(world, stack).items()}
    assert changes == {"g": 0, "up": 0, "proxy": 2, "other": 0}


def test_only_metadata_that_the_scaling_changes_are_stored_and_entries_of_guests_stay(world: World) -> None:
    """A value that cannot be computed any more, and those that only signals change, stay as well."""
    addresses = {"get_attr": ["g", "outputs_list", "address"]}
    first, alone = (
        {"yaql": {"expression": f"$.data.{name}()", "data": addresses}} for name in ("first", "single")
    )
    document = hot(
        {
            "g": autoscaling_group(desired_capacity=1),
            "up": policy(1),
            "changes": {**server(), "metadata": {"of": addresses}},
            "whole": {**server(), "metadata": {"get_attr": ["g", "outputs", "address"]}},
            "first": {**server(), "metadata": {"of": first}},
            "alone": {**server(), "metadata": {"of": alone}},
            "signals": {**policy(2), "metadata": {"of": addresses}},
        }
    )
    stack = created(world, document)
    assert stack.status == Status.COMPLETE, stack.reason
    row = rows(world, stack)["changes"]
    metadata = {**row.metadata, "guest": "own"}
    world.database.write(
        lambda conn: resources.set_metadata(conn, row.id, generation=0, metadata=metadata, now=0.0)
    )
    before = {name: (each.metadata, each.generation) for name, each in rows(world, stack).items()}
    scaled(world, stack)
    group = rows(world, stack)["g"].attributes
    members = group["outputs_list, address"]
    assert len(members) == 2
    expected = {
        **before,
        "changes": ({"of": members, "guest": "own"}, 2),
        "whole": (group["outputs, address"], 1),
    }
    assert {name: (each.metadata, each.generation) for name, each in rows(world, stack).items()} == expected
    document["resources"]["g"]["properties"]["desired_capacity"] = 3
    del document["resources"]["alone"]  # The update of what cannot be computed would fail.
    updated(world, stack, document)
    assert len(rows(world, stack)["changes"].metadata["of"]) == 3
    assert rows(world, stack)["signals"].metadata == before["signals"][0]


def test_a_signal_scales_the_group_and_its_attributes_follow(world: World) -> None:
    outputs = {
        "size": ["g", "current_size"], "refs": ["g", "refs"], "list": ["g", "outputs_list", "address"],
        "map": ["g", "outputs", "address"], "first": ["g", "resource.0.address"], "one": ["g", "resource.0"],
    }  # fmt: skip
    outputs_of = {name: {"value": {"get_attr": path}} for name, path in outputs.items()}
    stack = created(
        world,
        hot(
            {"g": autoscaling_group(desired_capacity=2), "up": policy(2), "down": policy(-1)},
            outputs=outputs_of,
        ),
    )
    assert stack.status == Status.COMPLETE, stack.reason
    before = set(world.cloud.objects)
    scaled(world, stack)
    assert len(world.cloud.objects) == 4
    attributes = rows(world, stack)["g"].attributes
    assert (attributes["current_size"], set(attributes["refs"])) == (4, set(world.cloud.objects))
    assert attributes["outputs_list, address"] == [f"at-{ref}" for ref in attributes["refs"]]
    assert sorted(attributes["outputs, address"].values()) == sorted(attributes["outputs_list, address"])
    assert (attributes["resource.0"], attributes["resource.0.address"]) == (
        attributes["refs"][0],
        f"at-{attributes['refs'][0]}",
    )
    scaled(world, stack, "down")
    left = set(world.cloud.objects)
    assert (len(left), len(left & before)) == (3, 1), "the oldest goes first"
    assert rows(world, stack)["g"].attributes["current_size"] == 3
    assert world.stack(stack.id).action == "CREATE", "the stack itself does nothing"
    assert [event for event in history(world, stack) if event[1] == "SIGNAL"] == [
        ("up", "SIGNAL", "COMPLETE"), ("down", "SIGNAL", "COMPLETE"),
    ]  # fmt: skip


def test_a_later_update_of_the_stack_keeps_the_size_unless_one_is_requested(world: World) -> None:
    document = hot({"g": autoscaling_group(), "up": policy(2)})
    stack = created(world, document)
    scaled(world, stack)
    assert len(world.cloud.objects) == 3
    before = dict(world.cloud.objects)
    updated(world, stack, document)
    assert dict(world.cloud.objects) == before
    updated(world, stack, hot({"g": autoscaling_group(desired_capacity=2), "up": policy(2)}))
    assert len(world.cloud.objects) == 2


def test_the_bounds_hold_and_what_changes_nothing_is_passed_over(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(most=2), "up": policy(5)}))
    scaled(world, stack)
    assert len(world.cloud.objects) == 2
    signal(world, stack)
    assert unfinished(world) == 0
    assert [event[1] for event in history(world, stack)].count("SIGNAL") == 1


def test_a_cooldown_begins_when_a_change_has_ended(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(cooldown=60), "up": policy(1, cooldown=100)}))
    signal(world, stack)
    assert unfinished(world) == 0, "the creation was a change"
    world.clock.now += 61
    scaled(world, stack)
    world.clock.now += 90
    signal(world, stack)
    assert unfinished(world) == 0
    world.clock.now += 15
    scaled(world, stack)
    assert len(world.cloud.objects) == 3


def test_two_signals_at_once_are_one_change(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(values={"looks": 2, "after": 2}), "up": policy(1)}))
    signal(world, stack)
    signal(world, stack)
    assert unfinished(world) == 1
    assert world.settle(lambda: not unfinished(world), within=60)
    assert len(world.cloud.objects) == 2


def test_a_killed_conductor_loses_no_scaling(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(values={"looks": 2, "after": 2}), "up": policy(3)}))
    signal(world, stack)
    assert world.settle(lambda: children(world, stack)["g"].action == "UPDATE", within=10)
    for host in ("host0", "host1"):
        world.kill(host)
    assert world.settle(lambda: not unfinished(world), within=120)
    assert (len(world.cloud.objects), world.cloud.wrong) == (4, [])
    assert rows(world, stack)["g"].attributes["current_size"] == 4


@pytest.mark.parametrize("delete", [True, False])
def test_what_is_begun_with_the_stack_supersedes_the_scaling(world: World, *, delete: bool) -> None:
    document = hot({"g": autoscaling_group(values={"looks": 50, "after": 5}), "up": policy(1)})
    at_once = {"desired_capacity": 3, "rolling_updates": {"max_batch_size": 5}}
    quick = hot({"g": autoscaling_group(values={"value": "new"}, **at_once), "up": policy(1)})
    stack = world.create("s", document)
    assert settled(world, stack, within=290).status == Status.COMPLETE
    signal(world, stack)
    assert world.settle(lambda: children(world, stack)["g"].action == "UPDATE", within=10)
    if delete:
        delete_stack(world.context, world.stack(stack.id))
    else:
        world.update(stack, quick)
    assert settled(world, stack, within=120).status == Status.COMPLETE
    assert unfinished(world) == 0
    assert [item.value for item in world.cloud.objects.values()] == ([] if delete else ["new"] * 3)


def test_a_scaling_that_fails_is_an_event_and_the_next_one_repairs_it(world: World) -> None:
    world.cloud.pictures["p"] = "x"
    stack = created(world, hot({"g": autoscaling_group(values={"picture": "p"}), "up": policy(1)}))
    del world.cloud.pictures["p"]
    scaled(world, stack)
    assert ("g", "SIGNAL", "FAILED") in history(world, stack)
    assert (world.stack(stack.id).status, rows(world, stack)["g"].status) == (Status.COMPLETE,) * 2
    world.cloud.pictures["p"] = "x"
    scaled(world, stack)
    assert [item.value for item in world.cloud.objects.values()] == ["x", "x"]
    assert rows(world, stack)["g"].attributes["current_size"] == 2


def test_a_scaling_is_notified_at_its_start_and_its_end(tmp_path: pathlib.Path) -> None:
    heard: list[Notification] = []
    world = World(tmp_path, hosts=1, listener=heard.extend)
    world.cloud.pictures["p"] = "x"
    group = autoscaling_group(desired_capacity=2, max_size=9, values={"picture": "p"})
    percent = policy(50, "percent_change_in_capacity")
    stack = created(world, hot({"g": group, "up": policy(2), "more": percent, "none": policy(0)}))
    reference = rows(world, stack)["g"].reference_id

    def sizes() -> list[Json]:
        notifications = [(event_type(one), payload(one)) for one in heard if one.scaling is not None]
        heard.clear()
        keys = ("adjustment", "adjustment_type", "capacity", "message")
        assert all(
            (body["groupname"], body["stack_name"], body["state"]) == (reference, "s", "CREATE_COMPLETE")
            for _, body in notifications
        )
        assert all(name.startswith("orchestration.autoscaling.") for name, _ in notifications)
        return [(name.rpartition(".")[2], *(body[key] for key in keys)) for name, body in notifications]

    assert sizes() == []
    scaled(world, stack)
    start = f"Start resizing the group {reference}"
    end = f"End resizing the group {reference}"
    assert sizes() == [
        ("start", 2, "ChangeInCapacity", 2, start),
        ("end", 2, "ChangeInCapacity", 4, end),
    ]
    scaled(world, stack, "none")
    assert sizes() == []
    del world.cloud.pictures["p"]
    scaled(world, stack, "more")
    begun, (ending, by, kind, capacity, message) = sizes()
    assert begun == ("start", 50, "PercentChangeInCapacity", 4, start)
    assert (ending, by, kind, capacity) == ("error", 50, "PercentChangeInCapacity", 4)
    assert message
    assert rows(world, stack)["g"].metadata in (None, {}), "what was asked for is the task's alone"


def test_a_new_definition_reaches_the_members_one_after_the_other(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(desired_capacity=3)}))
    names = set(values(world))
    world.update(
        stack,
        hot({"g": autoscaling_group(desired_capacity=4, values={"value": "new", "looks": 1, "after": 1})}),
    )
    assert busiest(world, stack) == 1
    assert world.stack(stack.id).status == Status.COMPLETE
    assert set(values(world).values()) == {"new"}
    assert len(values(world)) == 4
    assert names < set(values(world)), "they were changed in place"


def test_what_is_no_group_or_not_there_is_refused(world: World) -> None:
    document = hot({"g": autoscaling_group(), "other": {"type": "OS::Heat::ResourceGroup",
                "properties": {"count": 0, "resource_def": {"type": "Sim::Server"}}},
                "a": policy(1, auto_scaling_group_id="x"),
                "b": policy(1, auto_scaling_group_id={"get_resource": "other"})})  # fmt: skip
    stack = created(world, document)
    with pytest.raises(NotFound, match=r"Scaling group \(x\)"):
        signal(world, stack, "a")
    with pytest.raises(NotSupported, match="cannot be scaled"):
        signal(world, stack, "b")


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (autoscaling_group(3, 2), "min_size can not be greater"),
        (autoscaling_group(1, 2, desired_capacity=3), "must be between"),
        (autoscaling_group(values={"vlaue": "x"}), "resources.g.resources.member.properties.*vlaue"),
        (policy(1, min_adjustment_step=1), "percent_change_in_capacity"),
    ],
)
def test_what_is_wrong_is_reported_before_anything_is_made(
    world: World, resource: Json, message: str
) -> None:
    with pytest.raises(TemplateError, match=message):
        world.create(
            "s", hot({"g": autoscaling_group(), **{"p" if "Policy" in resource["type"] else "g": resource}})
        )
    asking = server(value={"get_attr": ["g", "address"]})
    with pytest.raises(TemplateError, match="current_size"):
        world.create("s", hot({"g": autoscaling_group(), "asking": asking}))
