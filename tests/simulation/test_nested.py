"""Stacks inside of stacks: each is run by whoever takes its tasks, and wakes its parent when it ends."""

import json
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation import threads
from simulation.helpers import ended, rows
from simulation.nested import INNER, child, children, created, hot, inner, server, settled
from simulation.world import GRACE, World
from stoker.db.ids import StackId
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.breakpoints import continue_held
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action
from stoker.sealing.redaction import MASK
from stoker.sealing.stored import masked
from stoker.template.errors import TemplateError

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def test_a_template_in_the_place_of_a_type_becomes_a_stack_whose_outputs_are_attributes(world: World) -> None:
    stack = created(
        world, hot({"n": child(value="x"), "after": server(value={"get_attr": ["n", "address"]})})
    )
    assert stack.status == Status.COMPLETE, stack.reason
    result = children(world, stack)["n"]
    assert (result.action, result.status, result.depth, result.root_id) == ("CREATE", "COMPLETE", 1, stack.id)
    assert result.name.startswith("s-n-")
    parent_rows = rows(world, stack)
    assert parent_rows["n"].physical_id == result.id
    address = parent_rows["after"].attributes["value"]
    assert address.startswith("at-thing-")
    assert {item.resource for item in world.cloud.objects.values()} == {"s", "after"}


def test_a_parent_that_waits_holds_nothing_and_is_woken_by_its_child(world: World) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner(looks=3, after=5)})
    world.calm()
    t = tables.task.c
    states = sa.select(t.state, t.waits_on).where(t.stack_id == stack.id, t.resource_id.is_not(None))
    [(state, waits_on)] = world.database.read(lambda conn: conn.execute(states).all())
    assert (state, waits_on) == ("parked", f"stack:{children(world, stack)['n'].id}")
    assert sum(c.loop.in_progress for c in world.awake()) == 1, "the child's own task"
    assert settled(world, stack).status == Status.COMPLETE


@pytest.mark.parametrize("hidden", [False, True])
def test_a_property_that_reads_an_output_that_can_never_be_computed_fails_as_in_heat(
    world: World, *, hidden: bool
) -> None:
    inside = hot(
        {"s": server(value={"get_param": "value"})},
        parameters={"value": {"type": "string", "hidden": hidden}},
        outputs={
            "broken": {"value": {"get_param": "lost"}},
            "own": {"value": {"get_param": "value"}},  # Where it is hidden, the data is sealed as a whole.
        },
    )
    template = hot(
        {
            "n": child(value="a secret word"),
            "reader": {**server(value={"get_attr": ["n", "broken"]}), "depends_on": "other"},
            "other": server(value={"get_attr": ["n", "own"]}),
        }
    )
    stack = created(world, template, files={INNER: json.dumps(inside)})
    parent_rows = rows(world, stack)
    assert (parent_rows["n"].status, parent_rows["other"].status) == (Status.COMPLETE, Status.COMPLETE)
    assert parent_rows["reader"].status == Status.FAILED
    assert "resources.reader: Error in n output broken: The Parameter (lost)" in parent_rows["reader"].reason
    assert {item.resource for item in world.cloud.objects.values()} == {"s", "other"}
    delete_stack(world.context, stack)
    settled(world, stack)
    assert world.cloud.objects == {}


def test_a_failure_shows_its_path_and_first_cause_at_the_root(world: World) -> None:
    middle = "file:///middle.yaml"
    outer = hot({"m": {"type": "file:///middle.yaml"}})
    files = {INNER: inner(fail=True), middle: json.dumps(hot({"n": child()}))}
    stack = created(world, outer, files=files)
    assert (stack.action, stack.status) == ("CREATE", Status.FAILED)
    path = "resources.m.resources.n.resources.s"
    assert stack.reason == f"Resource CREATE failed: ResourceFailure: {path}: told to fail"


def test_a_failure_beside_it_lets_a_nested_stack_end(world: World) -> None:
    stack = created(
        world, hot({"n": child(), "bad": server(fail=True, looks=2)}), files={INNER: inner(looks=3, after=5)}
    )
    assert stack.reason.endswith("resources.bad: told to fail")
    assert children(world, stack)["n"].status == "COMPLETE"
    assert rows(world, stack)["n"].status == Status.COMPLETE


def test_an_update_reaches_into_the_children_and_leaves_alone_what_has_not_changed(world: World) -> None:
    stack = created(world, hot({"n": child(value="x"), "same": child()}))
    before = children(world, stack)
    objects = dict(world.cloud.objects)
    world.update(stack, hot({"n": child(value="y"), "same": child()}), files={INNER: inner()})
    assert settled(world, stack).status == Status.COMPLETE
    after = children(world, stack)
    assert {name: row.id for name, row in after.items()} == {name: row.id for name, row in before.items()}
    values = {name: item.value for name, item in world.cloud.objects.items()}
    assert sorted(values.values()) == ["d", "y"]
    assert values.keys() == objects.keys(), "nothing was replaced"


def test_a_child_that_failed_is_repaired_by_the_next_update(world: World) -> None:
    stack = created(world, hot({"n": child()}), files={INNER: inner(fail=True)})
    failed = children(world, stack)["n"]
    assert failed.status == "FAILED"
    world.update(stack, hot({"n": child()}), files={INNER: inner()})
    assert settled(world, stack).status == Status.COMPLETE
    assert children(world, stack)["n"].id == failed.id


def test_what_was_being_deleted_is_made_again_when_it_is_requested_again(world: World) -> None:
    """A stack that is being deleted cannot be updated any more."""
    stop = {"resource_registry": {"resources": {"n": {"s": {"hooks": "pre-delete"}}}}}
    stack = created(world, hot({"n": child()}), environment=stop)
    before = children(world, stack)["n"]
    world.update(stack, hot({}), environment=stop, files={INNER: inner()})
    world.calm()
    assert children(world, stack)["n"].action == "DELETE"
    world.update(stack, hot({"n": child()}), files={INNER: inner()})
    world.calm()
    continue_held(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE, world.stack(stack.id).reason
    assert rows(world, stack)["n"].physical_id != before.id
    assert world.stack(StackId(before.id)).status == Status.COMPLETE
    assert len(world.cloud.objects) == 1


def test_deleting_the_root_deletes_the_tree(world: World) -> None:
    middle = "file:///middle.yaml"
    files = {INNER: inner(), middle: json.dumps(hot({"n": child(), "o": child()}))}
    stack = created(world, hot({"m": {"type": middle}, "s": server()}), files=files)
    assert len(world.cloud.objects) == 3
    delete_stack(world.context, stack)
    assert settled(world, stack).status == Status.COMPLETE
    assert world.cloud.objects == {}
    s = tables.stack.c
    alive = sa.select(s.id).where(s.deleted_at.is_(None))
    assert world.database.read(lambda conn: conn.execute(alive).all()) == []


def test_deleting_the_root_in_the_middle_stops_all_levels_at_once(world: World) -> None:
    middle = "file:///middle.yaml"
    files = {INNER: inner(looks=1000, after=100), middle: json.dumps(hot({"n": child(), "o": child()}))}
    stack = world.create("s", hot({"m": {"type": middle}}), files=files)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 2
    delete_stack(world.context, world.stack(stack.id))
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 0, "before their own turn to be deleted"
    assert settled(world, stack).status == Status.COMPLETE
    assert world.cloud.objects == {}


def test_a_cancel_stops_all_levels(world: World) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner(looks=1000, after=100)})
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    world.calm()
    assert children(world, stack)["n"].status == "FAILED"
    assert sum(c.loop.in_progress for c in world.awake()) == 0


def test_a_childs_time_is_what_remains_of_its_parents(world: World) -> None:
    stack = world.create(
        "s", hot({"first": server(after=20), "n": {**child(), "depends_on": "first"}}),
        files={INNER: inner(looks=1000, after=100)}, timeout_mins=1,
    )  # fmt: skip
    assert world.settle(lambda: bool(children(world, stack)), within=30)
    assert children(world, stack)["n"].deadline_at == world.stack(stack.id).deadline_at
    outcome = settled(world, stack, within=60)
    assert outcome.status == Status.FAILED
    assert world.settle(lambda: children(world, stack)["n"].status == "FAILED", within=5)


def test_a_repeated_step_finds_the_child_of_the_lost_one(world: World) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner(looks=5, after=5)})
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    assert len(children(world, stack)) == 1
    world.kill("host0")
    assert settled(world, stack, within=120).status == Status.COMPLETE
    s = tables.stack.c
    assert len(world.database.read(lambda conn: conn.execute(sa.select(s.id)).all())) == 2
    assert len(world.cloud.physical_ids) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_database_that_is_unavailable_for_a_moment_fails_no_step(world: World, moment: str) -> None:
    stack = world.create("s", hot({"n": child()}), files={INNER: inner()})
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    # The step of the nested stack stores the child.
    world.database.planned = [moment]
    world.conductors["host0"].run_step()
    assert world.database.planned == [], "it was not asked"
    assert len(children(world, stack)) == (moment == "after")
    assert settled(world, stack).status == Status.COMPLETE, world.stack(stack.id).reason
    assert len(world.cloud.physical_ids) == 1


def test_suspend_resume_and_check_reach_the_children(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    for kind in (TaskKind.SUSPEND, TaskKind.RESUME, TaskKind.CHECK):
        act_on_stack(world.context, world.stack(stack.id), kind)
        outcome = settled(world, stack)
        assert (outcome.action, outcome.status) == (kind.upper(), Status.COMPLETE), outcome.reason
        below = children(world, stack)["n"]
        assert (below.action, below.status) == (kind.upper(), "COMPLETE")


def test_a_rollback_takes_the_children_back(world: World) -> None:
    stack = created(world, hot({"n": child(value="x")}), disable_rollback=False)
    world.update(stack, hot({"n": child(value="y"), "bad": server(fail=True)}), files={INNER: inner()})
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=90)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert [item.value for item in world.cloud.objects.values()] == ["x"]


@pytest.mark.parametrize(
    ("resource", "files", "message"),
    [
        (child(), {}, "resources.n.type: the template file:///inner.yaml is not among the files"),
        (child(vlaue="x"), None, "resources.n.*vlaue"),
        (child(), {INNER: "heat_template_version: 2018-08-31\nresources: {r: {type: No::Such}}"}, "No::Such"),
        (child(), {INNER: json.dumps(hot({"again": child()}))}, "nested 30 levels deep"),
        (
            child(),
            {INNER: json.dumps(hot({}, parameters={"needed": {"type": "string"}}))},
            "resources.n.*needed",
        ),
    ],
)
def test_what_is_wrong_inside_is_reported_before_anything_is_made(
    world: World, resource: Json, files: Json, message: str
) -> None:
    with pytest.raises(TemplateError, match=message):
        world.create("s", hot({"n": resource}), files={INNER: inner()} if files is None else files)
    with pytest.raises(TemplateError, match="address2|incorrect"):
        world.create(
            "s",
            hot({"n": child(), "o": server(value={"get_attr": ["n", "address2"]})}),
            files={INNER: inner()},
        )
    assert world.database.read(lambda conn: conn.execute(sa.select(tables.stack)).all()) == []


def test_equal_children_share_template_environment_and_files(world: World) -> None:
    def contents(count: int) -> int:
        stack = created(world, hot({f"n{i}": child(value=str(i)) for i in range(count)}))
        assert stack.status == Status.COMPLETE
        delete_stack(world.context, stack)
        settled(world, stack)
        c = tables.content.c
        return len(world.database.read(lambda conn: conn.execute(sa.select(c.id)).all()))

    few = contents(2)
    assert contents(20) == few + 1, "only the root's own template is another one"


def test_an_update_reaches_children_whose_own_properties_do_not_change(world: World) -> None:
    stack = created(world, hot({"n": child()}), files={INNER: inner()})
    world.update(stack, hot({"n": child()}), files={INNER: inner(size=2)})
    assert settled(world, stack).status == Status.COMPLETE
    assert (children(world, stack)["n"].action, len(world.cloud.physical_ids)) == ("UPDATE", 2)


def test_an_update_in_the_middle_supersedes_all_levels(world: World) -> None:
    middle = "file:///middle.yaml"

    def goal(count: int, **properties: Json) -> tuple[Json, Json]:
        below = json.dumps(hot({f"n{i}": child() for i in range(count)}))
        files = {INNER: inner(**properties), middle: below}
        return hot({f"m{i}": {"type": middle} for i in range(count)}), files

    template, files = goal(3, looks=1000, after=300)
    stack = world.create("s", template, files=files)
    world.calm()
    template, files = goal(2)
    world.update(stack, template, files=files)
    assert settled(world, stack, within=100).status == Status.COMPLETE
    s = tables.stack.c
    alive = sa.select(s.status).where(s.root_id == stack.id, s.deleted_at.is_(None))
    assert world.database.read(lambda conn: conn.execute(alive).scalars().all()) == ["COMPLETE"] * 7
    assert len(world.cloud.objects) == 4


def test_a_child_whose_parents_step_hangs_stays_with_its_resource_and_goes_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step was detached before it could store the child's id."""
    create = world.nesting.create

    def slow(*args: Json) -> StackId:
        resource_type = create(*args)
        threads.hang()
        return resource_type

    monkeypatch.setattr(world.nesting, "create", slow)
    stack = world.create("s", hot({"n": child()}), files={INNER: inner()})
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    world.calm()
    world.pass_time(GRACE + 0.1)
    world.calm()
    assert world.stack(stack.id).status == Status.FAILED
    [conductor] = [each for each in world.awake() if each.hanging]
    conductor.go_on()
    world.calm()
    assert set(children(world, stack)) == {"n"}
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE
    s = tables.stack.c
    alive = sa.select(s.id).where(s.deleted_at.is_(None))
    assert world.database.read(lambda conn: conn.execute(alive).all()) == []
    assert world.cloud.objects == {}


def test_a_template_in_the_place_of_a_type_may_have_resources_of_that_type(world: World) -> None:
    server_type = server()["type"]
    outputs = {name: {"value": name} for name in world.registry.get(server_type).attributes_schema}
    document = {
        "environment": {"resource_registry": {server_type: "mine.yaml"}},
        "files": {"mine.yaml": json.dumps(hot({"r": server()}, outputs=outputs))},
    }
    stack = created(world, hot({"mine": {"type": server_type}}), **document)
    assert stack.status == Status.COMPLETE, stack.reason
    [inside] = children(world, stack).values()
    assert [row.plugin for row in rows(world, inside).values()] == [server_type]
    document["files"] = {"mine.yaml": json.dumps(hot({"r": server(value="new")}, outputs=outputs))}
    world.update(stack, hot({"mine": {"type": server_type}}), **document)
    assert settled(world, stack).status == Status.COMPLETE
    assert [item.value for item in world.cloud.objects.values()] == ["new"]


READ = [["resource.s", "address"], ["resource.s.address"], ["resource.s"]]
"""Attributes of a nested stack that read its resource: an attribute, the same in one word, the reference."""


@pytest.mark.parametrize("with_file", [True, False])
def test_an_attribute_of_a_nested_stack_may_read_one_of_its_resources(world: World, with_file: bool) -> None:
    inside = json.dumps(hot({"s": server(value="new")}))
    one = {"type": INNER} if with_file else {"type": "OS::Heat::Stack", "properties": {"template": inside}}
    readers = {
        f"r{index}": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["n", *path]}}}
        for index, path in enumerate(READ)
    }
    outputs = {"o": {"value": {"get_attr": ["n", "resource.s", "value"]}}}
    stack = created(world, hot({"n": one, **readers}, outputs=outputs), files={INNER: inside})
    assert stack.status == Status.COMPLETE, stack.reason
    resource_rows = rows(world, stack)
    [item] = world.cloud.objects
    row = rows(world, children(world, stack)["n"])["s"]
    address = row.attributes["address"]
    for name, expected in zip(readers, [address, address, item], strict=True):
        assert resource_rows[name].attributes["value"] == expected
    assert resource_rows["n"].attributes["resource.s, value"] == "new"


def test_a_resource_that_a_nested_stack_does_not_have_cannot_be_read(world: World) -> None:
    reader = {
        "type": "OS::Heat::Value",
        "properties": {"value": {"get_attr": ["n", "resource.x", "address"]}},
    }
    with pytest.raises(TemplateError, match=r"The Referenced Attribute \(n resource.x\) is incorrect"):
        world.create("s", hot({"n": {"type": INNER}, "r": reader}), files={INNER: json.dumps(hot({}))})


def test_a_plain_value_beside_a_secret_may_be_a_template_and_is_shown(world: World) -> None:
    inner_template = json.dumps(hot({"s": server()}))
    bag = {"plain": "v", "document": inner_template, "word": {"get_param": "word"}}
    nested = json.dumps(
        hot(
            {"bag": {"type": "OS::Heat::Value", "properties": {"value": bag, "type": "json"}}},
            parameters={"word": {"type": "string", "hidden": True}},
            outputs={"all": {"value": {"get_attr": ["bag", "value"]}}},
        )
    )
    chosen = {"get_attr": ["outer", "all", "plain"]}
    stack = created(
        world,
        hot(
            {
                "outer": child(word={"get_param": "word"}),
                "made": {
                    "type": "OS::Heat::Stack",
                    "properties": {"template": {"get_attr": ["outer", "all", "document"]}},
                },
                "shown": {"type": "OS::Heat::Value", "properties": {"value": chosen}},
                "hidden": {
                    "type": "OS::Heat::Value",
                    "properties": {"value": {"get_attr": ["outer", "all", "word"]}},
                },
            },
            parameters={"word": {"type": "string", "hidden": True}},
        ),
        files={INNER: nested},
        parameters={"word": "correct-horse"},
    )
    assert stack.status == Status.COMPLETE, stack.reason
    stored = rows(world, stack)
    assert stored["shown"].properties == {"value": "v"}
    assert stored["shown"].attributes == {"value": "v"}
    assert masked(stored["hidden"].properties) == {"value": MASK}
    text = world.database.read(lambda conn: str(conn.execute(sa.select(tables.resource)).all()))
    assert "correct-horse" not in text
