"""Parts of a plan beside the tasks and edges of its table: columns of rows, inputs, and facts of types."""

import typing
from dataclasses import replace

import pytest
from stoker.db.errors import DamagedRow
from stoker.db.ids import ResourceId, SnapshotId, TaskId
from stoker.db.rows import Resource, Task
from stoker.db.states import REDELIVER_AFTER, DeadlinePolicy, TaskKind, TaskState
from stoker.engine.planning.plan import (
    Defaults,
    Plan,
    PlannedBreakpoints,
    TaskDefinition,
    is_copied,
    plan_create,
    plan_delete,
    same_goal,
    task_key,
    tasks_by_resource,
)
from stoker.engine.planning.update import TypeFacts, UpdatePlanner
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry
from stoker.template.language import CompiledTemplate, ResourceSettings
from unit.engine.planning.test_table import SCOPE, Types, compiled, drawn, rows_of, running_on
from unit.engine.test_quotas import declared, sample_of

Json = typing.Any


class Plain(ResourceType):
    pass


class Replaced(ResourceType):
    always_replaced = True


class Updated(ResourceType):
    always_updated = True


class Prepared(ResourceType):
    def prepare_for_replace(self, *arguments: Json, **more: Json) -> Json:
        raise NotImplementedError


class Kept(ResourceType):
    def needs_replace_failed(self, *arguments: Json, **more: Json) -> Json:
        raise NotImplementedError


class Checked(ResourceType):
    def handle_check(self, *arguments: Json, **more: Json) -> Json:
        raise NotImplementedError


TYPES = {each.__name__: each for each in (Plain, Replaced, Updated, Prepared, Kept, Checked)}
FACTS = TypeFacts(ResourceRegistry(TYPES))


def test_the_facts_of_types_are_those_of_their_classes_and_none_of_what_is_gone() -> None:
    names = [*TYPES, "Gone"]
    row = rows_of("a")["a"]
    assert [name for name in names if FACTS.always_replaced(name)] == ["Replaced"]
    assert [name for name in names if FACTS.always_updated(name)] == ["Updated"]
    assert [name for name in names if FACTS.observable(replace(row, plugin=name))] == ["Checked"]
    installed = TypeFacts(ResourceRegistry.installed())
    assert installed.nested("OS::Heat::ResourceGroup")
    assert installed.stored_here("OS::Heat::ResourceGroup")
    assert not installed.nested("OS::Heat::None")
    assert not installed.stored_here("OS::Heat::None")


def test_a_step_decides_where_its_type_prepares_replacements_or_keeps_what_has_failed() -> None:
    row = rows_of("a")["a"]
    decided = {
        (name, status): FACTS.decided_by_step(replace(row, plugin=name, status=status))
        for name in [*TYPES, "Gone"]
        for status in ("COMPLETE", "FAILED")
    }
    assert [key for key, value in decided.items() if value] == [
        ("Prepared", "COMPLETE"),
        ("Prepared", "FAILED"),
        ("Kept", "FAILED"),
    ]


def planner(
    rows: dict[str, Resource], template: CompiledTemplate, running: str = "", **how: bool
) -> UpdatePlanner:
    return UpdatePlanner(list(rows.values()), template, running_on(rows, running), SCOPE, Types(), **how)


def updated(rows: dict[str, Resource], template: CompiledTemplate, running: str = "", **how: bool) -> Plan:
    return planner(rows, template, running, **how).plan()


def with_settings(template: CompiledTemplate, **settings: Json) -> CompiledTemplate:
    limited = {
        name: replace(definition, settings=ResourceSettings(**settings))
        for name, definition in template.resources.items()
    }
    return replace(template, resources=limited)


def task_of(plan: Plan, row: Resource, kind: TaskKind) -> Task:
    [task] = [each for each in plan.tasks if (each.resource_id, each.kind) == (row.id, kind)]
    return task


def test_a_failed_resource_that_may_not_be_replaced_is_left_to_a_step() -> None:
    rows = rows_of("a", "a CREATE_FAILED")
    template = with_settings(compiled("a"), restricted_actions=frozenset({"replace", "update"}))
    plan = updated(rows, template)
    assert drawn(plan, rows) == ["update a -> cleanup a"]
    assert task_of(plan, rows["a"], TaskKind.UPDATE).restricted == ["replace", "update"]
    assert task_of(plan, rows["a"], TaskKind.CLEANUP).restricted == ()


def test_what_is_still_to_be_adopted_as_another_type_is_created() -> None:
    rows = rows_of("a", "a INIT_COMPLETE")
    rows["a"] = replace(rows["a"], physical_id="x")
    assert drawn(updated(rows, compiled("a:U")), rows) == ["create new a", "remove row a"]
    rows["a"] = replace(rows["a"], physical_id=None, data={"id": 1})
    assert drawn(updated(rows, compiled("a")), rows) == ["create new a", "remove row a"]
    nested = rows_of("a:N", "a INIT_COMPLETE")
    nested["a"] = replace(nested["a"], data={"id": 1})
    assert drawn(updated(nested, compiled("a:N")), nested) == ["adopt a"]
    nested["a"] = replace(nested["a"], data=None)
    assert drawn(updated(nested, compiled("a:N")), nested) == ["create new a", "remove row a"]


@pytest.mark.parametrize(
    ("type_name", "physical_id", "adopts"),
    [("T", "x", True), ("T", None, False), ("N", None, True), ("N", "x", False)],
)
def test_an_adoption_that_was_stopped_has_made_nothing_unless_a_nested_stack_continues_it(
    type_name: str, physical_id: str | None, *, adopts: bool
) -> None:
    template = f"a:{type_name}"
    rows = rows_of(template, "a ADOPT_FAILED")
    row = replace(rows["a"], cancelled=True, physical_id=physical_id, data={"id": 1})
    plan = updated({"a": row}, compiled(template))
    assert (plan.tasks[0].kind == TaskKind.ADOPT) is adopts


def test_only_an_adoption_that_was_stopped_counts_as_nothing() -> None:
    rows = rows_of("a", "a ADOPT_COMPLETE")
    assert drawn(updated(rows, compiled("a")), rows) == []
    rows = rows_of("a", "a CREATE_FAILED")
    rows["a"] = replace(rows["a"], cancelled=True, physical_id=None)
    assert drawn(updated(rows, compiled("a")), rows) == ["create new a -> delete a"]


def test_an_adoption_reads_the_rows_from_before_and_comes_before_their_changes() -> None:
    rows = rows_of("a, b(a), c(b), d(c)", "b INIT_COMPLETE, c INIT_COMPLETE")
    rows["b"] = replace(rows["b"], physical_id="x")
    rows["c"] = replace(rows["c"], physical_id="y")
    same = updated(rows, compiled("a, b(a), c(b), d(c)"))
    assert task_of(same, rows["c"], TaskKind.ADOPT).inputs == {"b": rows["b"].id}
    changed = updated(rows, compiled("a=2, b(a), c(b), d(c)"))
    assert task_of(changed, rows["b"], TaskKind.ADOPT).inputs == {"a": rows["a"].id}
    assert [line for line in drawn(changed, rows) if line.startswith("adopt")] == [
        "adopt b -> adopt c",
        "adopt b -> update a",
        "adopt b -> update b",
        "adopt c -> update b",
        "adopt c -> update c",
    ]


def test_an_adoption_reads_what_is_created_again() -> None:
    rows = rows_of("a, b(a)", "a INIT_COMPLETE, b INIT_COMPLETE")
    rows["b"] = replace(rows["b"], physical_id="x")
    plan = updated(rows, compiled("a, b(a)"))
    [new] = plan.resources
    assert task_of(plan, rows["b"], TaskKind.ADOPT).inputs == {"a": new.id}


def test_what_is_adopted_follows_a_resource_that_has_failed() -> None:
    rows = rows_of("a:F, b(a)", "a UPDATE_FAILED, b INIT_COMPLETE")
    rows["b"] = replace(rows["b"], physical_id="x")
    plan = updated(rows, compiled("a:F, b(a)"))
    assert "adopt b -> update b" in drawn(plan, rows)
    rows["a"] = replace(rows["a"], status="COMPLETE")
    assert drawn(updated(rows, compiled("a:F, b(a)")), rows) == ["adopt b"]


def test_a_resource_that_took_its_place_again_is_updated_although_it_is_the_same() -> None:
    rows = rows_of("a")
    rows["a"] = replace(rows["a"], reinstated=True)
    assert drawn(updated(rows, compiled("a")), rows) == ["update a -> cleanup a"]


def test_a_resource_that_an_older_update_did_not_reach_is_updated() -> None:
    rows = rows_of("a, b(a), c[a]")
    for name in "bc":
        rows[name] = replace(rows[name], requires=[rows["a"].id, ResourceId(99)])
    assert drawn(updated(rows, compiled("a, b(a), c[a]")), rows) == ["update b -> cleanup b"]


def test_a_row_that_stays_requires_what_it_did_and_what_it_shall() -> None:
    rows = rows_of("a, b, c(a)")
    plan = updated(rows, compiled("a, b=2, c(b)"))
    spare = task_of(plan, rows["b"], TaskKind.UPDATE).spare_id
    required = sorted([rows["a"].id, rows["b"].id, spare or 0])
    assert plan.changes == {rows["c"].id: {"requires": required}}
    assert updated(rows, compiled("a, b=2, c(a)")).changes == {}
    assert updated(rows, compiled("a, b, c")).changes == {}


def test_a_row_that_is_replaced_names_its_replacement_and_so_do_older_ones() -> None:
    rows = rows_of("a, a'")
    rows["a'"] = replace(rows["a'"], replaced_by=None)
    rows["b"] = replace(rows_of("x, y, b")["b"], replaced_by=ResourceId(77))
    plan = updated(rows, compiled("a:U"))
    [new] = plan.resources
    assert new.replaces == rows["a'"].id
    assert plan.changes == {row.id: {"replaced_by": new.id} for row in (rows["a"], rows["a'"])}


def test_a_row_that_takes_its_place_again_replaces_its_replacement() -> None:
    rows = rows_of("a=2, a'")
    plan = updated(rows, compiled("a"), rolling_back=True)
    old = rows["a'"]
    assert plan.changes == {
        old.id: {"replaced_by": None, "replaces": rows["a"].id, "reinstated": True},
        rows["a"].id: {"replaced_by": old.id},
    }


@pytest.mark.parametrize(
    ("kind", "template", "kept"),
    [
        (TaskKind.CREATE, "a", True),
        (TaskKind.UPDATE, "a", True),
        (TaskKind.UPDATE, "a=2", False),
        (TaskKind.CHECK, "a", False),
        (TaskKind.ADOPT, "a=2", True),
    ],
)
def test_a_running_step_is_kept_whose_work_is_needed(kind: TaskKind, template: str, *, kept: bool) -> None:
    rows = rows_of("a", "a CREATE_IN-PROGRESS")
    running = running_on(rows, f"{kind} a")
    plan = updated(rows, compiled(template), f"{kind} a")
    assert plan.spared == ([task.id for task in running.values()] if kept else [])
    assert [task.id for task, _ in plan.after] == [50, 50]


@pytest.mark.parametrize(
    ("kind", "kept"), [(TaskKind.DELETE, True), (TaskKind.CLEANUP, True), (TaskKind.CREATE, False)]
)
def test_a_running_deletion_of_what_is_removed_is_kept(kind: TaskKind, *, kept: bool) -> None:
    rows = rows_of("a", "a CREATE_IN-PROGRESS")
    plan = updated(rows, compiled(""), f"{kind} a")
    assert plan.spared == ([50] if kept else [])
    assert drawn(plan, rows, running_on(rows, f"{kind} a").values())[0] == f"({kind} a) -> delete a"


def test_what_is_about_to_be_created_is_carried_over_by_creations_only() -> None:
    rows = rows_of("a:N", "a UPDATE_IN-PROGRESS")
    rows["a"] = replace(rows["a"], progress={"task": 50})
    for kind, carried in (("create", {50}), ("update", set())):
        older = planner(rows, compiled("a:N"), f"{kind} a")
        assert older.to_carry_over(environment_changed=False) == carried
    rows["a"] = replace(rows["a"], progress=None)
    assert planner(rows, compiled("a:N"), "create a").to_carry_over(environment_changed=False) == set()
    assert planner(rows, compiled("a:N")).to_carry_over(environment_changed=False) == set()


# -- any plan ---------------------------------------------------------------------------------------


def test_a_task_that_is_free_is_due_and_one_that_waits_or_is_held_is_not() -> None:
    scope = replace(SCOPE, now=100.0, request="r")
    free, waiting = plan_create(compiled("a, b(a)"), scope).tasks
    assert (free.state, free.ready_at, free.due_at) == (TaskState.READY, 100.0, 100.0 + REDELIVER_AFTER)
    assert (waiting.state, waiting.ready_at, waiting.due_at) == (TaskState.WAITING, None, None)
    plan = plan_create(compiled("a, b(a)", "pre-create"), scope)
    assert (plan.tasks[0].state, plan.tasks[0].due_at) == (TaskState.WAITING, None)
    assert (plan.traversal.open_tasks, plan.traversal.request, plan.stop_by) == (2, "r", 130.0)
    assert plan.tasks[0].request == "r"


@pytest.mark.parametrize(
    ("retries", "left"), [(None, 8), (0, 0), (3, 3)], ids=["default", "none", "of the environment"]
)
def test_retries_are_the_environments_also_where_they_are_none(retries: int | None, left: int) -> None:
    [task] = plan_create(with_settings(compiled("a"), retries=retries), SCOPE).tasks
    assert task.retries_left == left


def test_a_refresh_has_a_minute_and_one_try_more() -> None:
    [refresh] = updated(rows_of("a"), compiled("a", refreshed="a")).tasks
    assert (refresh.timeout, refresh.retries_left, refresh.spare_id) == (60.0, 1, None)
    plan = updated(rows_of("a"), compiled("a=2", refreshed="a"))
    assert plan.tasks[-1].spare_id == plan.tasks[0].spare_id is not None


@pytest.mark.parametrize(
    ("policy", "pauses"), [("stands", DeadlinePolicy.PAUSES), ("counts", DeadlinePolicy.COUNTS)]
)
def test_the_operator_chooses_whether_the_clock_pauses(policy: str, pauses: DeadlinePolicy) -> None:
    plan = plan_create(compiled("a"), replace(SCOPE, defaults=Defaults(held_time=policy)))
    assert plan.traversal.deadline_policy == pauses


@pytest.mark.parametrize(
    ("abort", "may_abort", "option", "aborts"),
    [
        (False, True, None, False),
        (True, True, None, True),
        (False, True, True, True),
        (False, True, False, False),
        (True, False, True, False),
    ],
)
def test_a_breakpoint_ends_the_action_where_that_is_requested_and_possible(
    abort: bool, may_abort: bool, option: bool | None, aborts: bool
) -> None:
    options: Json = {"timeout": 5} | ({} if option is None else {"abort": option})
    settings = ResourceSettings(hooks=frozenset({"pre-create"}), hook_options={"pre-create": options})
    stops = PlannedBreakpoints(abort=abort, may_abort=may_abort)
    expected = {"timeout": 5, "abort": True} if aborts else {"timeout": 5}
    assert stops.of(TaskKind.CREATE, settings) == {"pre-create": expected}
    assert stops.of(TaskKind.CHECK, settings) is None
    assert replace(stops, active=False).of(TaskKind.CREATE, settings) is None


def test_a_breakpoint_ends_no_action_where_nobody_says_so() -> None:
    settings = ResourceSettings(hooks=frozenset({"pre-create"}))
    assert PlannedBreakpoints().of(TaskKind.CREATE, settings) == {"pre-create": {}}
    assert PlannedBreakpoints(abort=True).of(TaskKind.CREATE, settings) == {"pre-create": {"abort": True}}


def test_an_operator_reads_the_defaults_of_actions_in_the_sample() -> None:
    assert sample_of(Defaults()) == declared(Defaults()) != []
    assert Defaults().deadline_policy == DeadlinePolicy.PAUSES


def test_a_task_has_the_same_key_in_each_attempt_and_release() -> None:
    assert task_key(TaskId(7)) == "36a1bcb0-b335-5f90-bd9b-e70c3dfd5993"
    assert task_key(TaskId(8)) != task_key(TaskId(7))


def test_tasks_are_found_by_their_resources() -> None:
    running = running_on(rows_of("a, b"), "create a, update b")
    assert tasks_by_resource(running.values()) == running


def test_a_definition_is_stored_without_its_defaults_and_refused_with_what_is_unknown() -> None:
    definition = TaskDefinition(type="T", retain=True)
    assert definition.to_json() == {"type": "T", "retain": True}
    assert TaskDefinition.from_json({"type": "T", "retain": True}) == definition
    assert TaskDefinition.from_json(None) == TaskDefinition()
    assert (TaskDefinition().retain, TaskDefinition().retries_permanent) == (False, False)
    with pytest.raises(DamagedRow, match="A stored definition cannot be read: .*colour"):
        TaskDefinition.from_json({"colour": "red"})


NESTED = {"type": "file:///a/x.yaml", "template": "file:///a/x.yaml", "properties": {"p": 1}}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (NESTED, {**NESTED, "type": "file:///b/x.yaml", "template": "file:///b/x.yaml"}, True),
        (NESTED, {**NESTED, "template": "file:///b/x.yaml", "properties": {"p": 2}}, False),
        ({**NESTED, "type": "My::Type"}, {**NESTED, "type": "My::Type", "template": "file:///b"}, True),
        ({**NESTED, "type": "My::Type"}, {**NESTED, "type": "My::Other", "template": "file:///b"}, False),
        (NESTED, {"type": "file:///a/x.yaml", "properties": {"p": 1}}, False),
        ({"type": "file:///a/x.yaml", "properties": {"p": 1}}, NESTED, False),
        ({"type": "T"}, {"type": "T"}, True),
        ({"type": "T"}, {"type": "U"}, False),
        (None, None, True),
        (None, NESTED, False),
        (NESTED, None, False),
    ],
)
def test_a_nested_template_is_its_content_not_its_address(first: Json, second: Json, *, same: bool) -> None:
    assert same_goal(first, second) is same


@pytest.mark.parametrize(
    ("state", "policy", "copied"),
    [
        ("CREATE_COMPLETE", "Snapshot", True),
        ("CREATE_COMPLETE", "Delete", False),
        ("CREATE_FAILED", "Snapshot", False),
        ("UPDATE_FAILED", "Snapshot", True),
        ("CREATE_IN-PROGRESS", "Snapshot", True),
    ],
)
def test_what_was_made_is_copied_where_its_deletion_keeps_a_snapshot(
    state: str, policy: str, *, copied: bool
) -> None:
    row = rows_of("a", f"a {state}")["a"]
    row = replace(row, definition={**row.definition, "deletion_policy": policy})
    assert is_copied(row) is copied
    [task] = plan_delete([row], {}, SCOPE).tasks
    assert task.definition == ({"deletion_policy": "Snapshot"} if copied else {})


def test_a_deletion_reads_what_a_creation_had_that_may_not_have_stored_it() -> None:
    rows = rows_of("a, a', b(a), c(b)", "c INIT_COMPLETE")
    rows["a"] = replace(rows["a"], attributes={})
    both = [rows["a"].id, rows["a'"].id, ResourceId(99)]
    rows["b"] = replace(rows["b"], properties=None, requires=both)
    plan = plan_delete(list(rows.values()), {}, SCOPE)
    assert plan.settled == [rows["c"].id]
    assert task_of(plan, rows["b"], TaskKind.DELETE).inputs == {"a": rows["a"].id}
    assert task_of(plan, rows["a"], TaskKind.DELETE).inputs == {}
    rows["a"], rows["a'"] = (replace(rows[name], attributes=None) for name in ("a", "a'"))
    again = plan_delete(list(rows.values()), {}, SCOPE)
    assert task_of(again, rows["b"], TaskKind.DELETE).inputs == {"a": rows["a'"].id}
    planned = updated({**rows, "c": rows["c"]}, compiled("a, b(a)=2"))
    assert task_of(planned, rows["b"], TaskKind.CLEANUP).inputs == {"a": rows["a'"].id}


def test_what_is_deleted_at_once_is_no_input_of_a_deletion() -> None:
    rows = rows_of("a, b(a)", "a INIT_COMPLETE")
    rows["b"] = replace(rows["b"], properties=None)
    plan = updated(rows, compiled(""))
    assert (plan.settled, task_of(plan, rows["b"], TaskKind.DELETE).inputs) == ([rows["a"].id], {})


def test_a_deletion_waits_for_a_creation_that_has_begun_although_no_row_says_so() -> None:
    rows = rows_of("a", "a INIT_COMPLETE")
    running = running_on(rows, "create a")
    plan = plan_delete(list(rows.values()), running, SCOPE)
    assert (plan.settled, drawn(plan, rows, running.values())) == ([], ["(create a) -> delete a"])


def test_a_copy_without_its_resource_is_deleted_alone() -> None:
    rows = rows_of("a, b(a)")
    copy = replace(rows["a"], id=ResourceId(9), name="gone", snapshot_id=SnapshotId("x"))
    plan = plan_delete(list(rows.values()), {}, SCOPE, [copy])
    assert drawn(plan, {**rows, "kept": copy}) == ["delete b -> delete a", "delete snapshot kept"]
