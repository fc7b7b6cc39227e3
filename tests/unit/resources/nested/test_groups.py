"""Groups: their batches, the templates of their children, and what a repeated step does."""

import itertools

import pytest
from harness.fake_context import FakeContext, after, target_of
from stoker.resources.contract.children import ChildGoal, GroupMember, in_order
from stoker.resources.contract.steps import Done, Park, Poll
from stoker.resources.heat.resource_group import ResourceGroup
from stoker.resources.heat.scaling_policy import Bounds, new_size
from stoker.resources.nested.groups import Batch, batches
from stoker.resources.nested.members import next_members, values_of
from stoker.resources.nested.parameterize import parameterize, restore_values

SIZES = range(7)


@pytest.mark.parametrize("surplus_counts", [True, False])
def test_batches_reach_the_goal_and_never_touch_too_many(surplus_counts):
    for goal, current, most, safe in itertools.product(SIZES, SIZES, range(1, 5), range(5)):
        size = current
        updated = 0
        for step in batches(goal, current, most=most, in_service=safe, surplus_counts=surplus_counts):
            case = (goal, current, most, safe, step)
            assert step.updates <= most, case
            untouched = min(size, step.size) - max(0, step.updates - max(0, step.size - size))
            assert untouched >= min(safe, goal, size), case
            size = step.size
            updated = updated + step.updates
        assert size == goal
        assert updated >= goal or current == goal == 0


@pytest.mark.parametrize(
    ("goal", "current", "most", "safe", "steps"),
    [
        (3, 0, 2, 0, [(2, 2), (3, 1)]),
        (3, 3, 1, 0, [(3, 1), (3, 1), (3, 1)]),
        (3, 3, 2, 3, [(5, 2), (5, 2), (4, 1), (3, 0)]),
        (2, 4, 1, 1, [(2, 1), (2, 1)]),
    ],
)
def test_batches_are_those_of_heat(goal, current, most, safe, steps):
    rolling_steps = batches(goal, current, most=most, in_service=safe, surplus_counts=False)
    assert [(step.size, step.updates) for step in rolling_steps] == steps


def test_the_next_members_are_changed_from_the_front_and_removed_from_the_front():
    old = [GroupMember(name, {"v": 1}) for name in "abc"]

    def after_batch(size, updates):
        members = next_members(old, lambda name: {"v": 2}, iter("xyz"), size=size, updates=updates)
        return "".join(f"{name}{body['v']}" for name, body in members.items())

    assert after_batch(3, 1) == "a2b1c1"
    assert after_batch(2, 1) == "b2c1"
    assert after_batch(4, 2) == "a2b1c1x2"
    assert after_batch(5, 1) == "a1b1c1x2y2"
    assert after_batch(0, 0) == ""


def test_outputs_are_made_only_for_what_is_named():
    requested = [
        ["ip"],
        ["ip", 0],
        ["attributes", "ip"],
        ["resource.1.ip"],
        ["resource.1"],
        ["resource.9.ip"],
    ]
    assert values_of(["0", "1"], requested, "attributes") == {
        "ip": [{"get_attr": ["0", "ip"]}, {"get_attr": ["1", "ip"]}],
        "ip, 0": [{"get_attr": ["0", "ip", 0]}, {"get_attr": ["1", "ip", 0]}],
        "attributes, ip": {"0": {"get_attr": ["0", "ip"]}, "1": {"get_attr": ["1", "ip"]}},
        "resource.1.ip": {"get_attr": ["1", "ip"]},
        "resource.1": {"get_resource": "1"},
    }


def test_secrets_and_what_looks_like_functions_are_lifted_out_of_a_template_and_return():
    properties = {
        "a": "x-s3cret",
        "b": {"get_param": "p"},
        "c": [1, {"k": "s3cret", "n": 1.5}],
        "d": {"s3cret": 1},
        "e": True,
    }
    goal = ChildGoal({"resources": {"0": {"type": "T", "properties": properties}}}, generated=True)
    parameterized = parameterize(goal, lambda value: "s3cret" in str(value))
    assert "s3cret" not in str(parameterized.template)
    hidden = {name for name, declared in parameterized.template["parameters"].items() if declared["hidden"]}
    assert {name for name, value in parameterized.parameters.items() if "s3cret" in str(value)} == hidden
    assert len(parameterized.parameters) == 4
    assert restore_values(parameterized.template, parameterized.parameters)["0"]["properties"] == properties
    assert parameterize(goal, lambda value: False).template["resources"]["0"]["properties"]["e"] is True


@pytest.mark.parametrize("blank", ["", [], {}, True])
def test_a_value_with_nothing_in_it_is_lifted_out_where_it_is_hidden(blank):
    properties = {"a": blank, "b": {"c": [blank]}, "d": "x"}
    goal = ChildGoal({"resources": {"0": {"type": "T", "properties": properties}}}, generated=True)
    parameterized = parameterize(goal, lambda value: False, lambda value: value == blank)
    [name] = parameterized.template["parameters"]
    shown = {"get_param": name}
    assert parameterized.template["resources"]["0"]["properties"] == {
        "a": shown,
        "b": {"c": [shown]},
        "d": "x",
    }
    assert parameterized.parameters == {name: blank}


def test_a_map_that_is_a_secret_is_lifted_out_with_its_keys():
    properties = {"a": {"a-token": True, "user": "s3cret"}, "b": {"user": "s3cret"}}
    goal = ChildGoal({"resources": {"0": {"type": "T", "properties": properties}}}, generated=True)
    parameterized = parameterize(goal, lambda value: "s3cret" in str(value), lambda value: "a-token" in value)
    assert "a-token" not in str(parameterized.template)
    assert list(parameterized.template["resources"]["0"]["properties"]["b"]) == ["user"]
    assert restore_values(parameterized.template, parameterized.parameters)["0"]["properties"] == properties


def test_a_list_or_a_boolean_that_is_a_secret_is_lifted_out_as_a_whole():
    properties = {"a": ["x", "y"], "b": True, "c": [], "d": ["x"]}
    goal = ChildGoal({"resources": {"0": {"type": "T", "properties": properties}}}, generated=True)
    parameterized = parameterize(
        goal, lambda value: value in ("x", "y"), lambda value: value in (["x", "y"], True)
    )
    member = parameterized.template["resources"]["0"]["properties"]
    assert [list(member[name]) for name in "ab"] == [["get_param"], ["get_param"]]
    assert [len(member[name]) for name in "cd"] == [0, 1]
    assert [declared["type"] for declared in parameterized.template["parameters"].values()] == [
        *("json", "boolean", "string")
    ]
    assert restore_values(parameterized.template, parameterized.parameters)["0"]["properties"] == properties


def group(**properties):
    definition = {"type": "T", "properties": {"v": "%index%"}}
    return {"resource_def": definition, **properties}


def test_a_lost_step_of_a_rolling_update_is_not_done_twice():
    context = FakeContext()
    plugin = ResourceGroup()
    policy = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0, "pause_time": 3}}
    old = target_of(plugin, group(count=2))
    child = plugin.handle_create(old, context).physical_id
    context.children.end(child)
    target = target_of(
        plugin, {"resource_def": {"type": "U"}, "count": 2}, physical_id=child, update_policy=policy
    )
    step = plugin.handle_update(target, frozenset({"resource_def"}), context)
    assert isinstance(step, Poll), "the way is stored before anything is begun"
    assert context.children.requests == [("CREATE", child)]
    target = after(target, step)
    begun = plugin.check_update_complete(target, step.progress, context)
    assert isinstance(begun, Park)
    again = plugin.check_update_complete(target, step.progress, context)
    assert (again.progress, len(context.children.requests)) == (begun.progress, 2)
    assert types(context, child) == {"0": "T", "1": "U"}
    context.children.end(child)
    pause = plugin.check_update_complete(target, begun.progress, context)
    assert (type(pause), pause.after) == (Poll, 3)
    early = plugin.check_update_complete(target, pause.progress, context)
    assert (early.progress, early.after) == (pause.progress, 3)
    context.time += 3
    last = plugin.check_update_complete(target, pause.progress, context)
    assert types(context, child) == {"0": "U", "1": "U"}
    context.children.end(child)
    assert isinstance(plugin.check_update_complete(target, last.progress, context), Done)


def types(context, child):
    return {name: body["type"] for name, body in context.children.goals[child].template["resources"].items()}


def test_a_failed_member_is_given_the_new_definition_whatever_its_turn():
    context = FakeContext()
    plugin = ResourceGroup()
    target = target_of(plugin, group(count=3))
    plugin.handle_create(target, context)
    context.children.failed = {"0"}
    target = target_of(plugin, {"resource_def": {"type": "U"}, "count": 3}, data={"removed": []})
    goal = plugin.step_goal(target, Batch(3, 1), context.children.members())
    assert {name: body["type"] for name, body in goal.template["resources"].items()} == {
        "0": "U", "1": "T", "2": "T",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "by", "least_step", "size"),
    [
        ("change_in_capacity", 2, None, 12),
        ("change_in_capacity", -20, None, 1),
        ("exact_capacity", 7, None, 7),
        ("exact_capacity", 70, None, 20),
        ("percent_change_in_capacity", 25, None, 12),
        ("percent_change_in_capacity", -25, None, 8),
        ("percent_change_in_capacity", 5, None, 11),
        ("percent_change_in_capacity", -5, None, 9),
        ("percent_change_in_capacity", 20, 3, 13),
        ("percent_change_in_capacity", -20, 3, 7),
    ],
)
def test_an_adjustment_comes_to_the_size_that_heat_computes(kind, by, least_step, size):
    assert new_size(10, kind, by, least_step=least_step, bounds=Bounds(1, 20)) == size


def test_members_of_one_second_are_in_the_order_of_their_names_as_in_heat() -> None:
    created = {"c": 10.1, "b": 10.9, "a": 11.0}
    members = [GroupMember(name, {}, created_at=at) for name, at in created.items()]
    failed = GroupMember("z", {}, is_failed=True, created_at=12.0)
    assert [member.name for member in in_order([*members, failed])] == ["z", "b", "c", "a"]


def test_a_template_under_another_name_is_taken_at_once_and_in_no_batch():
    def member(name, definition):
        return GroupMember(name, definition, has_template=lambda type_name: type_name == "b.yaml")

    old = [member(name, {"type": "a.yaml", "properties": {"x": 1}}) for name in "01"]

    def moved(kind, **properties):
        body = {"type": kind, "properties": properties}
        return next_members(old, lambda name: body, iter(""), size=2, updates=0) == {"0": body, "1": body}

    assert moved("b.yaml", x=1)
    assert not moved("c.yaml", x=1)
    assert not moved("b.yaml", x=2)
    plugin = ResourceGroup()
    rolling = {"rolling_update": {"max_batch_size": 1, "pause_time": 60, "min_in_service": 0}}
    for kind, steps in (("b.yaml", 1), ("c.yaml", 2)):
        definition = {"type": kind, "properties": {"x": 1}}
        target = target_of(plugin, {"count": 2, "resource_def": definition}, update_policy=rolling)
        rollout = plugin.update_rollout(target, frozenset({"resource_def"}), old)
        assert len(rollout.steps) == steps
