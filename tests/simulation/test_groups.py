"""Groups of resources of one definition: how they are made and changed in batches, and what others see."""

import json
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import rows
from simulation.nested import (
    INNER,
    at_work,
    busiest,
    children,
    created,
    group,
    hot,
    inner,
    server,
    settled,
    updated,
    values,
)
from simulation.world import World
from stoker.db import content
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.signals import set_health
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action
from stoker.sealing.stored import RowLookup
from stoker.template.errors import TemplateError
from stoker.template.residual import evaluate

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def rolling(**values: Json) -> Json:
    return {"rolling_update": values}


def test_members_are_numbered_and_their_index_is_in_their_properties(world: World) -> None:
    stack = created(world, hot({"g": group(3, member={"value": "name-%index%"})}))
    assert stack.status == Status.COMPLETE, stack.reason
    assert values(world) == {"0": "name-0", "1": "name-1", "2": "name-2"}
    attributes = rows(world, stack)["g"].attributes
    physical_ids = {item.resource: physical for physical, item in world.cloud.objects.items()}
    assert attributes["refs_map"] == physical_ids
    assert attributes["refs"] == [physical_ids["0"], physical_ids["1"], physical_ids["2"]]
    assert children(world, stack)["g"].depth == 1


SEEN = {
    "address": "[at-0, at-1]",
    "address 0": "[a, a]",
    "attributes address": "{0: at-0, 1: at-1}",
    "attributes address 1": "{0: t, 1: t}",
    "resource.1": "1",
    "resource.1.address": "at-1",
    "resource.1 address": "at-1",
    "refs": "[0, 1]",
    "refs 1": "1",
    "refs_map": "{0: 0, 1: 1}",
    "refs_map 1": "1",
    "resource.7": "None",
    "removed_rsrc_list": "[]",
}
"""Values of attributes with the paths below them, with members' names in the place of their ids."""


def opened(world: World, stack: Stack, value: Json) -> Json:
    sealed = isinstance(value, dict) and "$fn" in value
    return world.context.sealer_of(stack).open(value["args"][0]) if sealed else value


def test_attributes_of_the_members(world: World) -> None:
    def reader(calls: str) -> Json:
        path = [int(part) if part.isdigit() else part for part in calls.split()]
        return {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["g", *path]}}}

    readers = {f"r{index}": reader(path) for index, path in enumerate(SEEN)}
    stack = created(world, hot({"g": group(2), **readers}))
    assert stack.status == Status.COMPLETE, stack.reason
    resource_rows = rows(world, stack)
    for (calls, expected), name in zip(SEEN.items(), readers, strict=True):
        text = str(opened(world, stack, resource_rows[name].attributes["value"])).replace("'", "")
        for physical, item in world.cloud.objects.items():
            text = text.replace(physical, item.resource)
        assert text == expected, calls


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (hot({"g": group(1, member={"vlaue": "x"})}), "resources.g.resources.0.properties.*vlaue"),
        (hot({"g": group(-1)}), "count"),
        (hot({"g": group(1, member={"value": {"get_attr": ["s", "nothing"]}}), "s": server()}), "nothing"),
        (hot({"g": group(1)}, outputs={"o": {"value": {"get_attr": ["g", "nothing"]}}}), "nothing"),
        (hot({"g": group(1), "s": server(value={"get_attr": ["g", "attributes"]})}), "needs the name"),
        (hot({"g": group(20000)}), "more than 10000 resources"),
        (
            hot({"g": group(1), "s": server(value={"get_attr": ["g", "address", {"get_resource": "t"}]}),
                 "t": server()}),
            "must be known",
        ),
        (
            hot({"g": {"type": "OS::Heat::ResourceGroup",
                       "properties": {"resource_def": {"type": INNER, "properties": {"vlaue": 1}}}}}),
            "resources.g.resources.0.*vlaue",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_member_is_reported_before_anything_is_made(
    world: World, template: Json, message: str
) -> None:
    with pytest.raises(TemplateError, match=message):
        world.create("s", template, files={INNER: inner()})
    assert world.database.read(lambda conn: conn.execute(sa.select(tables.stack)).all()) == []


def test_an_output_that_names_no_attribute_of_the_members_is_an_error_of_its_own(world: World) -> None:
    outputs = {
        "o": {"value": {"list_join": [",", {"get_attr": ["g", "attributes"]}]}},
        "refs": {"value": {"get_attr": ["g", "refs"]}},
    }
    stack = created(world, hot({"g": group(1)}, outputs=outputs))
    lookup = RowLookup(rows(world, stack), lambda token: token)
    with pytest.raises(TemplateError, match=r"\(g attributes\) is incorrect. attributes needs the name"):
        evaluate(stack.outputs["o"]["value"], lookup)
    assert len(evaluate(stack.outputs["refs"]["value"], lookup)) == 1


def test_of_a_group_without_members_nothing_is_checked_and_nothing_is_made(world: World) -> None:
    stack = created(world, hot({"g": group(0, member={"vlaue": "x"})}))
    assert (stack.status, world.cloud.objects) == (Status.COMPLETE, {})


def test_another_count_makes_and_removes_the_last_ones_and_leaves_the_others(world: World) -> None:
    stack = created(world, hot({"g": group(2)}))
    first = dict(world.cloud.objects)
    updated(world, stack, hot({"g": group(4)}))
    assert sorted(values(world)) == ["0", "1", "2", "3"]
    updated(world, stack, hot({"g": group(2)}))
    assert dict(world.cloud.objects) == first
    assert len(rows(world, stack)["g"].attributes["refs"]) == 2


OUTER = "outer.yaml"
DEPTHS: dict[str, tuple[str, typing.Callable[[Json], Json]]] = {
    "at the root": ("", lambda template: template),
    "in a provider template": (
        "resources.o.",
        lambda template: hot({"o": {"type": OUTER, "properties": {}}}),
    ),
    "in a member of a group": (
        "resources.o.resources.0.",
        lambda template: hot(
            {
                "o": {
                    "type": "OS::Heat::ResourceGroup",
                    "properties": {"count": 2, "resource_def": {"type": OUTER}},
                }
            }
        ),
    ),
}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_group_is_judged_by_its_first_member_that_was_not_removed_earlier(world: World, depth: str) -> None:
    above_zero = {"type": "number", "constraints": [{"range": {"min": 1}}]}
    inside = json.dumps(hot({"s": server()}, parameters={"value": above_zero}))
    path, around = DEPTHS[depth]

    def goal(index: str, **more: Json) -> tuple[Json, Json]:
        definition = {"type": INNER, "properties": {"value": index}}
        properties = {"count": 2, "resource_def": definition, **more}
        template = hot({"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}})
        return around(template), {INNER: inside, OUTER: json.dumps(template)}

    template, files = goal("%index%", removal_policies=[{"resource_list": ["0"]}])
    stack = created(world, template, files=files)
    assert stack.status == Status.COMPLETE, stack.reason
    template, files = goal("%index%", count=3)
    updated(world, stack, template, files=files)
    for index, more, member in (("0", {}, 1), ("%index%", {"removal_policies_mode": "update"}, 0)):
        template, files = goal(index, **more)
        with pytest.raises(TemplateError, match=f"{path}resources.g.resources.{member}"):
            world.update(stack, template, files=files)


def test_equal_nested_stacks_are_judged_by_what_each_remembers(world: World) -> None:
    """The groups of both have removed other members."""

    def goal(removed: Json, allowed: list[str]) -> tuple[Json, Json]:
        value = {"type": "string", "constraints": [{"allowed_values": allowed}]}
        properties = {
            "count": 1,
            "resource_def": {"type": INNER, "properties": {"value": "%index%"}},
            "removal_policies": [{"resource_list": {"get_param": "removed"}}],
        }
        members = {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}}
        outer = hot(members, parameters={"removed": {"type": "json", "default": []}})
        files = {
            INNER: json.dumps(hot({"s": server()}, parameters={"value": value})),
            OUTER: json.dumps(outer),
        }
        both = {name: {"type": OUTER, "properties": {"removed": names}} for name, names in removed.items()}
        return hot(both), files

    template, files = goal({"a": ["0"], "b": ["0", "1"]}, ["1", "2"])
    stack = created(world, template, files=files)
    assert stack.status == Status.COMPLETE, stack.reason
    template, files = goal({"a": [], "b": []}, ["1"])
    with pytest.raises(TemplateError, match="^resources.b.resources.g.resources.2"):
        world.update(stack, template, files=files)
    template, files = goal({"a": [], "b": []}, ["1", "2"])
    updated(world, stack, template, files=files)


def test_a_removed_member_is_named_by_name_or_reference_and_its_name_is_not_used_again(world: World) -> None:
    def removing(*names: str, **more: Json) -> Json:
        return hot({"g": group(3, removal_policies=[{"resource_list": list(names)}], **more)})

    stack = created(world, hot({"g": group(3)}))
    physical_ids = {item.resource: physical for physical, item in world.cloud.objects.items()}
    updated(world, stack, removing("1"))
    assert sorted(values(world)) == ["0", "2", "3"]
    updated(world, stack, removing(physical_ids["2"]))
    assert sorted(values(world)) == ["0", "3", "4"]
    assert rows(world, stack)["g"].attributes["removed_rsrc_list"] == ["1", "2"]
    updated(world, stack, removing(removal_policies_mode="update"))
    assert sorted(values(world)) == ["0", "1", "2"]


def nested_members(count: int, *removed: str) -> Json:
    definition = group(count, removal_policies=[{"resource_list": list(removed)}])
    definition["properties"]["resource_def"] = {"type": "member.yaml"}
    return hot({"g": definition})


@pytest.mark.parametrize("kind", ["name", "stack", "server"])
def test_a_member_that_is_a_nested_stack_is_removed_by_its_servers_id_too(world: World, kind: str) -> None:
    member = hot({"s": server()}, outputs={"OS::stack_id": {"value": {"get_resource": "s"}}})
    files = {"member.yaml": json.dumps(member)}
    stack = created(world, nested_members(3), files=files)
    inside = rows(world, world.stack(rows(world, stack)["g"].physical_id))
    one = inside["1"]
    assert one.reference_id in world.cloud.objects
    assert one.physical_id != one.reference_id
    named = {"name": "1", "stack": one.physical_id, "server": one.reference_id}[kind]
    updated(world, stack, nested_members(2, named), files=files)
    assert one.reference_id not in world.cloud.objects
    assert rows(world, stack)["g"].attributes["removed_rsrc_list"] == ["1"]
    assert sorted(rows(world, world.stack(rows(world, stack)["g"].physical_id))) == ["0", "2"]


@pytest.mark.parametrize("group_type", ["OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup"])
def test_a_member_that_is_marked_unhealthy_by_its_servers_id_is_replaced(
    world: World, group_type: str
) -> None:
    """So Tacker heals: the group's nested stack gets the mark, and the stack an update."""
    member = hot({"s": server()}, outputs={"OS::stack_id": {"value": {"get_resource": "s"}}})
    body = nested_members(2)
    if group_type == "OS::Heat::AutoScalingGroup":
        properties = {
            "resource": {"type": "member.yaml"},
            "min_size": 2,
            "max_size": 3,
            "desired_capacity": 2,
        }
        body = hot({"g": {"type": group_type, "properties": properties}})
    files = {"member.yaml": json.dumps(member)}
    stack = created(world, body, files=files)
    child = world.stack(rows(world, stack)["g"].physical_id)
    before = {row.name: row.reference_id for row in rows(world, child).values()}
    sick = sorted(before)[0]
    set_health(world.context, child, before[sick], unhealthy=True, reason="it is sick")
    assert rows(world, child)[sick].reason == "it is sick"
    updated(world, stack, body, files=files)
    after = {row.reference_id for row in rows(world, child).values()}
    assert before[sick] not in world.cloud.objects
    assert len(after) == len(world.cloud.objects) == 2
    assert after - {before[sick]} > {before[name] for name in before if name != sick}


def test_a_failed_update_forgets_no_removal(world: World) -> None:
    stack = created(world, hot({"g": group(2)}))
    world.update(
        stack, hot({"g": group(2, removal_policies=[{"resource_list": ["0"]}], member={"fail": True})})
    )
    assert settled(world, stack).status == Status.FAILED
    updated(world, stack, hot({"g": group(2)}))
    assert sorted(values(world)) == ["1", "2"]


def test_members_of_a_template_are_stacks_and_the_environment_reaches_them(world: World) -> None:
    body = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": 2,
            "resource_def": {"type": "My::CloudObject", "properties": {"value": "v%index%"}},
        },
    }
    registry = {
        "My::CloudObject": INNER,
        "resources": {"g": {"1": {"My::CloudObject": "Sim::Server"}}},
    }
    stack = created(
        world,
        hot({"g": body}, outputs={"o": {"value": {"get_attr": ["g", "address"]}}}),
        environment={"resource_registry": registry},
    )
    assert stack.status == Status.COMPLETE, stack.reason
    assert values(world) == {"s": "v0", "1": "v1"}
    assert len(rows(world, stack)["g"].attributes["address"]) == 2


def test_a_changed_file_reaches_members_whose_definition_is_the_same(world: World) -> None:
    document = hot({"n": {"type": INNER}, "g": group(1)})
    document["resources"]["g"]["properties"]["resource_def"] = {"type": INNER}
    stack = created(world, document, files={INNER: inner()})
    changed = inner().replace('"default": "d"', '"default": "other"')
    updated(world, stack, document, files={INNER: changed})
    assert [item.value for item in world.cloud.objects.values()] == ["other", "other"]


def test_a_secret_of_the_template_is_not_in_the_childs_template(world: World) -> None:
    document = hot(
        {"g": group(1, member={"value": {"get_param": "p"}})},
        parameters={"p": {"type": "string", "hidden": True}},
    )
    stack = created(world, document, parameters={"p": "s3cret-word"})
    assert (stack.status, values(world)) == (Status.COMPLETE, {"0": "s3cret-word"})
    updated(world, stack, {**document, "resources": {"g": group(2, member={"value": {"get_param": "p"}})}},
            parameters={"p": "s3cret-word"})  # fmt: skip
    assert values(world) == {"0": "s3cret-word", "1": "s3cret-word"}
    stored = world.database.read(
        lambda conn: [conn.execute(sa.select(table)).all() for table in tables.metadata.sorted_tables]
    )
    assert "s3cret-word" not in str(stored)


def test_what_looks_like_a_function_in_a_value_is_none(world: World) -> None:
    value = {"get_file": "file:///etc/passwd"}
    body = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}, "type": "json"}}
    document = hot(
        {"g": {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": body}}},
        parameters={"p": {"type": "json"}},
        outputs={"o": {"value": {"get_attr": ["g", "value"]}}},
    )
    stack = created(world, document, parameters={"p": value})
    assert stack.status == Status.COMPLETE, stack.reason
    assert opened(world, stack, rows(world, stack)["g"].attributes["value"]) == [value]


def test_members_are_made_in_batches_with_a_pause_between_them(world: World) -> None:
    begun = world.clock.now
    policy = {"batch_create": {"max_batch_size": 2, "pause_time": 7}}
    stack = world.create("s", hot({"g": group(5, policy, member={"looks": 1, "after": 1})}))
    assert busiest(world, stack) == 2
    assert world.stack(stack.id).status == Status.COMPLETE
    assert 17 <= world.clock.now - begun <= 40
    assert sorted(values(world)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(("before", "after"), [(5, 5), (3, 5), (5, 3)])
def test_a_rolling_update_changes_few_members_at_once_and_all_in_the_end(
    world: World, before: int, after: int
) -> None:
    policy = rolling(max_batch_size=2, min_in_service=1)
    stack = created(world, hot({"g": group(before, policy)}))
    world.update(stack, hot({"g": group(after, policy, member={"value": "new", "looks": 1, "after": 1})}))
    assert busiest(world, stack) <= 2
    assert world.stack(stack.id).status == Status.COMPLETE
    assert values(world) == {str(index): "new" for index in range(after)}


def test_members_keep_their_old_template_until_their_batch(world: World) -> None:
    policy = rolling(max_batch_size=1, pause_time=5)

    def members(template: str) -> Json:
        definition = group(3, policy)
        definition["properties"]["resource_def"] = {"type": template}
        return hot({"g": definition})

    deep = json.dumps(hot({"s": server(value="old")}))
    before = {"old.yaml": json.dumps(hot({"n": {"type": "deep.yaml"}})), "deep.yaml": deep}
    after = {"new.yaml": json.dumps(hot({"s": server(value="new")}))}
    stack = created(world, members("old.yaml"), files=before)
    assert stack.status == Status.COMPLETE, stack.reason
    world.update(stack, members("new.yaml"), files=after)
    ended = settled(world, stack, within=120)
    assert ended.status == Status.COMPLETE, ended.reason
    assert [item.value for item in world.cloud.objects.values()] == ["new"] * 3
    # What only the old members needed is not kept any longer than they are.
    inside = children(world, stack)["g"]
    files = world.database.read(lambda conn: content.get(conn, inside.files_id))
    assert set(files) == {"new.yaml"}


def test_without_a_changed_definition_there_are_no_batches(world: World) -> None:
    policy = rolling(max_batch_size=1, pause_time=100)
    stack = created(world, hot({"g": group(2, policy)}))
    updated(world, stack, hot({"g": group(4, policy)}))
    assert len(values(world)) == 4


def test_an_update_during_a_batch_brings_all_members_to_the_newest_goal(world: World) -> None:
    policy = rolling(max_batch_size=1, pause_time=5)
    stack = created(world, hot({"g": group(4, policy)}))
    world.update(stack, hot({"g": group(4, policy, member={"value": "one", "looks": 2, "after": 2})}))
    assert world.settle(lambda: "one" in values(world).values(), within=60)
    world.update(stack, hot({"g": group(3, policy, member={"value": "two"})}))
    assert settled(world, stack, within=120).status == Status.COMPLETE
    assert values(world) == {"0": "two", "1": "two", "2": "two"}


def test_a_cancel_between_two_batches_ends_the_update_and_the_next_one_continues(world: World) -> None:
    policy = rolling(max_batch_size=1, pause_time=50)
    stack = created(world, hot({"g": group(3, policy)}))
    world.update(stack, hot({"g": group(3, policy, member={"value": "new"})}))
    assert world.settle(lambda: "new" in values(world).values(), within=60)
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    world.calm()
    assert world.stack(stack.id).status == Status.FAILED
    assert sorted(values(world).values()) == ["d", "d", "new"] or len(set(values(world).values())) == 2
    updated(world, stack, hot({"g": group(3, policy, member={"value": "new"})}))
    assert set(values(world).values()) == {"new"}


def test_a_killed_conductor_changes_nothing_in_what_the_batches_come_to(world: World) -> None:
    policy = rolling(max_batch_size=2)
    stack = created(world, hot({"g": group(6, policy)}))
    world.update(stack, hot({"g": group(6, policy, member={"value": "new", "looks": 1, "after": 3})}))
    most = 0
    for host in ("host0", "host1"):
        assert world.settle(lambda: "new" in values(world).values(), within=60)
        world.kill(host)
        most = max(most, at_work(world, stack))
    most = max(most, busiest(world, stack))
    assert world.stack(stack.id).status == Status.COMPLETE
    assert set(values(world).values()) == {"new"}
    assert (most <= 2, len(world.cloud.objects), world.cloud.wrong) == (True, 6, [])


def test_a_failed_batch_fails_the_stack_with_its_cause_and_stops_the_rest(world: World) -> None:
    policy = rolling(max_batch_size=1)
    stack = created(world, hot({"g": group(3, policy)}))
    bad = {"value": "new", "fail": True}
    world.update(stack, hot({"g": group(3, policy, member=bad)}))
    ended = settled(world, stack)
    assert ended.status == Status.FAILED
    assert "resources.g.resources.2: told to fail" in ended.reason
    assert len(world.cloud.objects) >= 2


def test_suspend_keeps_what_the_group_remembers_and_the_deletion_leaves_nothing(world: World) -> None:
    stack = created(world, hot({"g": group(2, removal_policies=[{"resource_list": ["0"]}])}))
    assert sorted(values(world)) == ["1", "2"]
    for kind in (TaskKind.SUSPEND, TaskKind.RESUME, TaskKind.CHECK):
        act_on_stack(world.context, world.stack(stack.id), kind)
        assert settled(world, stack).status == Status.COMPLETE
    assert rows(world, stack)["g"].attributes["removed_rsrc_list"] == ["0"]
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE
    assert world.cloud.objects == {}


def test_a_group_of_groups_hands_attributes_through(world: World) -> None:
    outer = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": 2,
            "resource_def": group(2, member={"value": "%index%-%in%"}, index_var="%in%"),
        },
    }
    document = hot({"g": outer}, outputs={"o": {"value": {"get_attr": ["g", "resource.1", "address", 0]}}})
    stack = created(world, json.loads(json.dumps(document)))
    assert stack.status == Status.COMPLETE, stack.reason
    assert sorted(item.value for item in world.cloud.objects.values()) == ["0-0", "0-1", "1-0", "1-1"]
    assert rows(world, stack)["g"].attributes["resource.1, address, 0"] == ["a", "a"]


def chain(*types: str, **properties: Json) -> Json:
    return {"type": "OS::Heat::ResourceChain", "properties": {"resources": list(types), **properties}}


def test_a_chain_makes_its_members_one_after_the_other_with_the_same_properties(world: World) -> None:
    properties = {"value": "all", "looks": 1, "after": 1}
    document = hot(
        {"c": chain("Sim::Server", "My::Other", "Sim::Server", resource_properties=properties)},
        outputs={"o": {"value": {"get_attr": ["c", "resource.2.address"]}}},
    )
    stack = world.create("s", document, environment={"resource_registry": {"My::Other": "Sim::Server"}})
    assert busiest(world, stack) == 1
    assert world.stack(stack.id).status == Status.COMPLETE
    assert values(world) == {"0": "all", "1": "all", "2": "all"}
    attributes = rows(world, stack)["c"].attributes
    assert [world.cloud.objects[ref].resource for ref in attributes["refs"]] == ["0", "1", "2"]
    assert attributes["resource.2.address"] == f"at-{attributes['refs'][2]}"
    updated(world, stack, hot({"c": chain("Sim::Server", resource_properties=properties)}))
    assert list(values(world)) == ["0"]


def test_a_concurrent_chain_makes_them_at_once_and_what_is_wrong_is_reported_before(world: World) -> None:
    properties = {"looks": 1, "after": 1}
    stack = world.create(
        "s", hot({"c": chain(*["Sim::Server"] * 3, concurrent=True, resource_properties=properties)})
    )
    assert busiest(world, stack) == 3
    with pytest.raises(TemplateError, match=r"No::Such.*\(resources.c.resources.1.type\)"):
        world.create("t", hot({"c": chain("Sim::Server", "No::Such")}))


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ({"type": "number"}, ["free"]),
        ({"type": "string", "constraints": [{"allowed_values": ["a"]}]}, ["free", "word"]),
        ({"type": "json"}, ["free", "map"]),
        ({"type": "boolean"}, ["free", "on"]),
    ],
)
def test_members_that_are_nested_stacks_get_values_of_other_resources(
    world: World, declared: Json, path: list[str]
) -> None:
    """Nothing is known of such a value when the group is checked, not even that it is a text."""
    value = {"word": "a", "map": {"k": 1}, "on": True} if len(path) > 1 else 3
    source = {"type": "OS::Heat::Value", "properties": {"value": value}}
    reference = {"get_attr": ["source", "value", *path[1:]]}
    members = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": {"type": INNER, "properties": {"given": reference}}},
    }
    below = hot(
        {"s": server()}, parameters={"given": declared}, outputs={"o": {"value": {"get_param": "given"}}}
    )
    template = hot({"g": members, "source": source})
    stack = created(world, template, files={INNER: json.dumps(below)})
    assert stack.status == Status.COMPLETE, stack.reason
