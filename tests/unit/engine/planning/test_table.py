"""The planner's table: a template and the rows of a stack on one side, tasks and edges on the other.

A template is written as ``a, b(a)=2, c(a b):R``: resource b refers to a and has the value 2, c refers to
both and has the type R.  ``b[a]`` depends on a without a reference.  Rows are those that the creation of
the template `before` has left, all of them CREATE_COMPLETE unless `states` says otherwise; ``a'`` is a row
that was replaced by a and still exists.  `running` are tasks of an older traversal that have not ended.

In the plan ``create a -> create b`` means that the second task waits for the first; ``@pre-create`` that a
task has a breakpoint, ``!pre-create`` that it is held there from the start.  ``(create a)`` is a task that
still runs.
"""

import re
import typing
from dataclasses import dataclass, replace

import pytest
from stoker.db.id_source import EPOCH, IdSource
from stoker.db.ids import ResourceId, SnapshotId, StackId, TaskId, TraversalId
from stoker.db.rows import Resource, Task
from stoker.db.states import TaskKind, TaskState
from stoker.engine.planning.action import plan_action, plan_snapshot, plan_snapshot_deletion
from stoker.engine.planning.adopt import plan_adoption
from stoker.engine.planning.plan import (
    Defaults,
    Plan,
    PlannedBreakpoints,
    TraversalScope,
    plan_create,
    plan_delete,
)
from stoker.engine.planning.requests import AdoptedResource
from stoker.engine.planning.update import StillToBeAdopted, UpdatePlanner
from stoker.resources.contract.plugin import ADOPTED_ID
from stoker.resources.nested.base import ADOPTED
from stoker.resources.registry import ResourceRegistry
from stoker.template.language import CompiledTemplate, Reference, ResourceDefinition, ResourceSettings
from stoker.template.residual import sealed

NEW_IDS = IdSource(lambda: EPOCH + 1.0, randbits=lambda bits: 0)
"""They are larger than those of all rows here."""
SCOPE = TraversalScope(StackId("s"), TraversalId("now"), shard=0, ids=NEW_IDS, now=0.0)
RESOURCE = re.compile(
    r"(?P<name>\w+'*)(\((?P<refers>[\w ]+)\))?(\[(?P<depends>\w+)\])?(=(?P<value>\w+))?(:(?P<type>\w))?"
)


class Types:
    """Each update replaces R and updates U; N is nested, O can be observed, F is asked when it has failed."""

    def always_replaced(self, type_name: str) -> bool:
        return type_name == "R"

    def always_updated(self, type_name: str) -> bool:
        return type_name in ("U", "N")

    def nested(self, type_name: str) -> bool:
        return type_name == "N"

    def stored_here(self, type_name: str) -> bool:
        return type_name == "N"

    def decided_by_step(self, row: Resource) -> bool:
        return row.plugin == "F"

    def observable(self, row: Resource) -> bool:
        return row.plugin == "O"


def compiled(text: str, hooks: str = "", retained: str = "", refreshed: str = "") -> CompiledTemplate:
    definitions = {}
    for match in map(RESOURCE.fullmatch, filter(None, text.split(", "))):
        assert match is not None, text
        name = match["name"]
        refers = tuple((match["refers"] or "").split())
        definitions[name] = ResourceDefinition(
            name=name.rstrip("'"),
            type=match["type"] or "T",
            declared_type=match["type"] or "T",
            properties={"value": match["value"] or "1", "refers": list(refers)},
            references=tuple(Reference(target) for target in refers),
            requires=(*refers, *filter(None, [match["depends"]])),
            deletion_policy="Retain" if name in retained.split() else "Delete",
            settings=ResourceSettings(hooks=frozenset(hooks.split())),
        )
    return CompiledTemplate("2021-04-16", "", {}, definitions, {}, refreshed=tuple(refreshed.split()))


def rows_of(text: str, states: str = "", retained: str = "") -> dict[str, Resource]:
    """The rows of a stack that has the template, by what the table calls them."""
    template = compiled(text, retained=retained)
    created = plan_create(template, SCOPE).resources
    ids = {label: ResourceId(number) for number, label in enumerate(template.resources, start=1)}
    id_of = {row.id: row_id for row, row_id in zip(created, ids.values(), strict=True)}
    state = dict(item.split(" ") for item in filter(None, states.split(", ")))
    rows = {}
    for label, created_row in zip(ids, created, strict=True):
        action, status = state.get(label, "CREATE_COMPLETE").split("_")
        rows[label] = replace(
            created_row,
            id=ids[label],
            requires=[id_of[required_id] for required_id in created_row.requires],
            action=action,
            status=status,
            replaced_by=ids[label[:-1]] if label.endswith("'") else None,
            physical_id=None if action == "INIT" else label,
            properties={},
        )
    return rows


def running_on(rows: dict[str, Resource], text: str) -> dict[ResourceId, Task]:
    tasks = {}
    for number, item in enumerate(filter(None, text.split(", ")), start=50):
        kind, label = item.split(" ")
        row = rows[label]
        tasks[row.id] = Task(
            id=TaskId(number),
            traversal=TraversalId("before"),
            stack_id=row.stack_id,
            kind=TaskKind(kind),
            state=TaskState.RUNNING,
            pending=0,
            shard=0,
            resource_id=row.id,
            definition=row.definition,
        )
    return tasks


def drawn(plan: Plan, rows: dict[str, Resource], running: typing.Iterable[Task] = ()) -> list[str]:
    """The plan as the table shows it, and that each task counts its predecessors."""
    labels = {row.id: label for label, row in rows.items()}
    for row in plan.resources:
        copied = row.snapshot_id is not None
        is_replacement = row.name in rows
        labels[row.id] = (
            f"copy of {row.name}" if copied else f"new {row.name}" if is_replacement else row.name
        )
    held = {hit.task.id: hit.hook for hit in plan.held}
    old = {task.id: f"({task.kind} {labels[ResourceId(task.resource_id or 0)]})" for task in running}
    names = {}
    for task in plan.tasks:
        stops = f" !{held[task.id]}" if task.id in held else "".join(f" @{hook}" for hook in task.hooks or ())
        names[task.id] = f"{task.kind.replace('_', ' ')} {labels[ResourceId(task.resource_id or 0)]}{stops}"
    edges = [(names[task.id], names[successor]) for task in plan.tasks for successor in task.successors]
    edges += [(old[task.id], names[successor]) for task, successor in plan.after]
    for task in plan.tasks:
        assert task.pending == sum(then == names[task.id] for _, then in edges), names[task.id]
        assert (task.state == TaskState.READY) == (not task.pending and task.id not in held)
    tied = {name for edge in edges for name in edge}
    lines = [f"{first} -> {then}" for first, then in edges] + [n for n in names.values() if n not in tied]
    lines += [f"remove row {labels[row_id]}" for row_id in plan.settled]
    lines += [f"keep {old[task_id]}" for task_id in plan.spared]
    return sorted(lines)


def lines(text: str) -> list[str]:
    return sorted(line.strip() for line in text.strip().splitlines() if line.strip())


@dataclass(frozen=True)
class Case:
    """:ivar expected: tasks and edges, one a line."""

    name: str
    expected: str
    after: str = ""
    before: str = ""
    states: str = ""
    running: str = ""
    hooks: str = ""
    retained: str = ""
    refreshed: str = ""
    converge: bool = False
    rollback: bool = False


def case_id(case: Case) -> str:
    return case.name


CREATIONS = [
    Case("nothing", after="", expected=""),
    Case("independent", after="a, b, c", expected="create a\n create b\n create c"),
    Case("a chain", after="a, b(a), c(b)", expected="create a -> create b\n create b -> create c"),
    Case(
        "a diamond",
        after="a, b(a), c(a), d(b c)",
        expected="""create a -> create b
                    create a -> create c
                    create b -> create d
                    create c -> create d""",
    ),
    Case(
        "what outputs ask for is read behind all others",
        after="a, b(a), c, d",
        refreshed="a c d",
        expected="""create a -> create b
                    create b -> refresh a
                    create c -> refresh a
                    create d -> refresh a
                    refresh a -> refresh c
                    refresh a -> refresh d""",
    ),
    Case("depends_on orders like a reference", after="a, b[a]", expected="create a -> create b"),
    Case(
        "a breakpoint before holds what is free and marks what waits",
        after="a, b(a)",
        hooks="pre-create",
        expected="create a !pre-create -> create b @pre-create",
    ),
    Case(
        "a breakpoint behind holds nothing yet",
        after="a",
        hooks="post-create",
        expected="create a @post-create",
    ),
    Case(
        "a breakpoint of another action is none",
        after="a",
        hooks="pre-delete post-update",
        expected="create a",
    ),
]


@pytest.mark.parametrize("case", CREATIONS, ids=case_id)
def test_a_creation(case: Case) -> None:
    assert drawn(plan_create(compiled(case.after, case.hooks, refreshed=case.refreshed), SCOPE), {}) == lines(
        case.expected
    )


def test_an_adoption_has_the_order_of_a_creation() -> None:
    plan = plan_create(compiled("a, b(a)"), SCOPE)
    adopted = plan_adoption(plan, {"a": AdoptedResource("x")}, str, ResourceRegistry({}))
    assert drawn(adopted, {}) == ["adopt a -> adopt b"]
    assert [row.physical_id for row in adopted.resources] == ["x", None]


def test_a_document_s_data_do_not_pass_for_the_engine_s_own() -> None:
    plan = plan_create(compiled("a"), SCOPE)
    entry = AdoptedResource("x", data={ADOPTED: {"resources": {}}, ADOPTED_ID: "y", "own": 1})
    [row] = plan_adoption(plan, {"a": entry}, str, ResourceRegistry({})).resources
    assert row.data == sealed(str({"own": 1}))


UPDATES = [
    Case("nothing is changed", before="a, b(a)", after="a, b(a)", expected=""),
    Case("a resource is added", before="a", after="a, b(a)", expected="create b"),
    Case("a resource is removed", before="a, b", after="a", expected="delete b"),
    Case(
        "a chain is removed, last first",
        before="a, b(a), c(b)",
        after="a",
        expected="delete c -> delete b",
    ),
    Case(
        "what outputs ask for is read behind all others, which wait for nothing else",
        before="a, b(a), c",
        after="a=2, b(a), d",
        refreshed="a b",
        expected="""update a -> update b
                    update a -> cleanup a
                    update b -> cleanup a
                    update b -> cleanup b
                    cleanup b -> cleanup a
                    cleanup a -> refresh a
                    create d -> refresh a
                    delete c -> refresh a
                    refresh a -> refresh b""",
    ),
    Case(
        "what outputs ask for is read although nothing changes",
        before="a, b(a)",
        after="a, b(a)",
        refreshed="b",
        expected="refresh b",
    ),
    Case(
        "a rename is a creation beside a deletion",
        before="a",
        after="b",
        expected="create b\n delete a",
    ),
    Case(
        "a changed resource may be replaced, and then the old one goes",
        before="a",
        after="a=2",
        expected="update a -> cleanup a",
    ),
    Case(
        "what refers to a changed resource follows it, and the old one goes last",
        before="a, b(a)",
        after="a=2, b(a)",
        expected="""update a -> update b
                    update a -> cleanup a
                    update b -> cleanup a
                    update b -> cleanup b
                    cleanup b -> cleanup a""",
    ),
    Case(
        "what only depends on a changed resource stays as it is",
        before="a, b[a]",
        after="a=2, b[a]",
        expected="update a -> cleanup a",
    ),
    Case(
        "another type replaces at once",
        before="a",
        after="a:U",
        expected="create new a -> delete a",
    ),
    Case(
        "a failed resource is replaced, and what refers to it moves over first",
        before="a, b(a)",
        states="a CREATE_FAILED",
        after="a, b(a)",
        expected="""create new a -> update b
                    create new a -> delete a
                    update b -> delete a
                    update b -> cleanup b
                    cleanup b -> delete a""",
    ),
    Case(
        "a failed resource whose type is asked is left to a step",
        before="a:F",
        states="a UPDATE_FAILED",
        after="a:F",
        expected="update a -> cleanup a",
    ),
    Case("a type that is always replaced", before="a:R", after="a:R", expected="update a -> cleanup a"),
    Case("a type that is always updated", before="a:U", after="a:U", expected="update a -> cleanup a"),
    Case(
        "a resource of which nothing was made is created anew",
        before="a",
        states="a INIT_COMPLETE",
        after="a",
        expected="create new a\n remove row a",
    ),
    Case(
        "a resource whose creation begins now is not created anew",
        before="a",
        states="a INIT_COMPLETE",
        running="create a",
        after="a",
        expected="""(create a) -> cleanup a
                    (create a) -> update a
                    keep (create a)
                    update a -> cleanup a""",
    ),
    Case(
        "another type is left to a step while the resource is worked on",
        before="a",
        running="update a",
        after="a:U",
        expected="""(update a) -> cleanup a
                    (update a) -> update a
                    update a -> cleanup a""",
    ),
    Case(
        "a removed resource of which nothing was made needs no task",
        before="a, b",
        states="b INIT_COMPLETE",
        after="a",
        expected="remove row b",
    ),
    Case(
        "converge looks first",
        before="a:O, b",
        after="a:O, b",
        converge=True,
        expected="observe a -> update a\n update a -> cleanup a",
    ),
    Case(
        "converge does not look at what is worked on",
        before="a:O",
        running="update a",
        after="a:O",
        converge=True,
        expected="""(update a) -> cleanup a
                    (update a) -> update a
                    keep (update a)
                    update a -> cleanup a""",
    ),
    Case(
        "a replaced row that is still there goes",
        before="a, a'",
        after="a",
        expected="delete a'",
    ),
    Case(
        "a rollback takes back what was replaced",
        before="a=2, a'",
        after="a",
        rollback=True,
        expected="""update a' -> cleanup a'
                    update a' -> delete a""",
    ),
    Case(
        "a rollback takes back what was replaced when nothing makes the replacement any more",
        before="a=2, a'",
        states="a CREATE_IN-PROGRESS",
        running="create a",
        after="a",
        rollback=True,
        expected="""(create a) -> delete a
                    (create a) -> update a'
                    update a' -> cleanup a'
                    update a' -> delete a""",
    ),
    Case(
        "breakpoints of an update, of a possible replacement, and of its deletion",
        before="a",
        after="a=2",
        hooks="pre-update post-update pre-create",
        expected="update a @pre-update @post-update @pre-create -> cleanup a",
    ),
    Case(
        "a running creation of the same goal goes on",
        before="a",
        states="a CREATE_IN-PROGRESS",
        running="create a",
        after="a",
        expected="""(create a) -> cleanup a
                    (create a) -> update a
                    keep (create a)
                    update a -> cleanup a""",
    ),
    Case(
        "a running creation of another goal is stopped, and its end awaited",
        before="a",
        states="a CREATE_IN-PROGRESS",
        running="create a",
        after="a=2",
        expected="""(create a) -> cleanup a
                    (create a) -> update a
                    update a -> cleanup a""",
    ),
    Case(
        "a running deletion goes on, and what it deletes is created anew",
        before="a",
        states="a DELETE_IN-PROGRESS",
        running="delete a",
        after="a",
        expected="""(delete a) -> delete a
                    create new a -> delete a
                    keep (delete a)""",
    ),
    Case(
        "dependencies that are turned round make no circle",
        before="a, b(a)",
        after="b, a(b)",
        expected="""cleanup b -> cleanup a
                    update a -> cleanup a
                    update a -> cleanup b
                    update b -> cleanup a
                    update b -> cleanup b
                    update b -> update a""",
    ),
]


@pytest.mark.parametrize("case", UPDATES, ids=case_id)
def test_an_update(case: Case) -> None:
    rows = rows_of(case.before, case.states)
    running = running_on(rows, case.running)
    planner = UpdatePlanner(
        list(rows.values()),
        compiled(case.after, case.hooks, refreshed=case.refreshed),
        running,
        SCOPE,
        Types(),
        rolling_back=case.rollback,
        observing=case.converge,
    )
    assert drawn(planner.plan(), rows, running.values()) == lines(case.expected)


def test_what_is_still_to_be_adopted_cannot_be_changed_before() -> None:
    rows = rows_of("a", "a INIT_COMPLETE")
    rows["a"] = replace(rows["a"], physical_id="x")
    same = UpdatePlanner(list(rows.values()), compiled("a"), {}, SCOPE, Types()).plan()
    assert drawn(same, rows) == ["adopt a"]
    with pytest.raises(StillToBeAdopted, match="Resource a is still to be adopted"):
        UpdatePlanner(list(rows.values()), compiled("a=2"), {}, SCOPE, Types()).plan()


@pytest.mark.parametrize(
    ("type_name", "progress", "other_files", "carried"),
    [
        ("T", 50, False, {50}),
        ("T", 50, True, {50}),
        ("N", 50, True, set()),
        ("T", 49, False, set()),
    ],
    ids=["the same goal", "with other files", "a nested stack with other files", "of another task"],
)
def test_a_newer_update_carries_over_what_creates_the_same(
    type_name: str, progress: int, other_files: bool, carried: set[int]
) -> None:
    rows = rows_of(f"a:{type_name}", "a CREATE_IN-PROGRESS")
    rows["a"] = replace(rows["a"], progress={"task": progress})
    planner = UpdatePlanner(
        list(rows.values()), compiled(f"a:{type_name}"), running_on(rows, "create a"), SCOPE, Types()
    )
    assert planner.to_carry_over(environment_changed=other_files) == carried
    changed = UpdatePlanner(
        list(rows.values()), compiled("a=2"), running_on(rows, "create a"), SCOPE, Types()
    )
    assert changed.to_carry_over(environment_changed=other_files) == set()


DELETIONS = [
    Case("independent", before="a, b", expected="delete a\n delete b"),
    Case(
        "a chain, last first", before="a, b(a), c(b)", expected="delete c -> delete b\n delete b -> delete a"
    ),
    Case(
        "what was never made has no task",
        before="a, b(a)",
        states="b INIT_COMPLETE",
        expected="delete a\n remove row b",
    ),
    Case("a running task is awaited", before="a", running="create a", expected="(create a) -> delete a"),
    Case("replaced rows go, too", before="a, a'", expected="delete a\n delete a'"),
]


@pytest.mark.parametrize("case", DELETIONS, ids=case_id)
def test_a_deletion(case: Case) -> None:
    rows = rows_of(case.before, case.states)
    running = running_on(rows, case.running)
    assert drawn(plan_delete(list(rows.values()), running, SCOPE), rows, running.values()) == lines(
        case.expected
    )


def test_a_deletion_leaves_alone_what_is_to_be_retained() -> None:
    rows = rows_of("a, b", retained="b")
    plan = plan_delete(list(rows.values()), {}, SCOPE)
    assert drawn(plan, rows) == ["delete a", "delete b"]
    assert [bool((task.definition or {}).get("retain")) for task in plan.tasks] == [False, True]


def test_a_deletion_stops_at_the_breakpoints_of_the_environment() -> None:
    rows = rows_of("a, b(a)")
    stops = PlannedBreakpoints({"resources": {"b": {"hooks": "pre-delete"}}})
    plan = plan_delete(list(rows.values()), {}, replace(SCOPE, breakpoints=stops))
    assert drawn(plan, rows) == ["delete b !pre-delete -> delete a"]
    inactive = replace(SCOPE, breakpoints=replace(stops, active=False))
    assert drawn(plan_delete(list(rows.values()), {}, inactive), rows) == ["delete b -> delete a"]


def test_a_deletion_deletes_what_snapshots_keep_before_the_resource() -> None:
    rows = rows_of("a, b")
    copy = replace(rows["a"], id=ResourceId(9), snapshot_id=SnapshotId("x"))
    plan = plan_delete(list(rows.values()), {}, SCOPE, [copy])
    assert drawn(plan, {**rows, "kept a": copy}) == ["delete b", "delete snapshot kept a -> delete a"]


ACTIONS = [
    (TaskKind.CHECK, "check a\n check b"),
    (TaskKind.SUSPEND, "suspend b -> suspend a"),
    (TaskKind.RESUME, "resume a -> resume b"),
    (TaskKind.SNAPSHOT, "snapshot a -> snapshot b"),
]


@pytest.mark.parametrize(("kind", "expected"), ACTIONS)
def test_an_action_on_all_resources(kind: TaskKind, expected: str) -> None:
    """A resource that was not created, or is about to be deleted, takes no part."""
    rows = rows_of("a, b(a), c, d, d'", "c CREATE_FAILED, d DELETE_FAILED")
    assert drawn(plan_action(list(rows.values()), {}, kind, SCOPE), rows) == lines(expected)


def test_a_snapshot_has_a_copy_of_each_resource_from_its_beginning() -> None:
    rows = rows_of("a, b(a)")
    plan = plan_snapshot(list(rows.values()), {}, SnapshotId("x"), SCOPE)
    assert drawn(plan, rows) == ["snapshot a -> snapshot b"]
    assert [(row.name, row.snapshot_id, row.action) for row in plan.resources] == [
        ("a", "x", "SNAPSHOT"),
        ("b", "x", "SNAPSHOT"),
    ]
    assert [task.spare_id for task in plan.tasks] == [row.id for row in plan.resources]


def test_what_a_snapshot_keeps_is_deleted_in_any_order() -> None:
    rows = {f"kept {label}": row for label, row in rows_of("a, b(a)").items()}
    plan = plan_snapshot_deletion(list(rows.values()), {}, SCOPE)
    assert drawn(plan, rows) == ["delete snapshot kept a", "delete snapshot kept b"]


@pytest.mark.parametrize(
    ("environment", "configured", "last", "expected"),
    [
        (None, None, None, {"a": 10.0, "b": None}),
        (None, None, 99.0, {"a": 10.0, "b": 99.0}),
        (None, 20.0, 99.0, {"a": 20.0, "b": 20.0}),
        (30.0, 20.0, 99.0, {"a": 30.0, "b": 30.0}),
    ],
)
def test_the_environment_sets_a_timeout_before_the_configuration_and_the_type(
    environment: float | None, configured: float | None, last: float | None, expected: dict[str, float | None]
) -> None:
    template = compiled("a:S, b")
    rows = rows_of("a:S, b")
    settings = {"a": {"timeout": environment}, "b": {"timeout": environment}}
    scope = replace(
        SCOPE,
        defaults=Defaults(timeout=configured),
        type_timeouts={"S": 10.0},
        last_timeout=last,
        breakpoints=PlannedBreakpoints({"resources": settings}),
    )
    for name, definition in template.resources.items():
        limited = replace(definition, settings=ResourceSettings(timeout=environment))
        template = replace(template, resources={**template.resources, name: limited})
    created = plan_create(template, scope)
    labels = {row.id: row.name for row in [*created.resources, *rows.values()]}
    for plan in (
        created,
        plan_delete(list(rows.values()), {}, scope),
        plan_action(list(rows.values()), {}, TaskKind.SUSPEND, scope),
    ):
        assert {labels[ResourceId(task.resource_id or 0)]: task.timeout for task in plan.tasks} == expected


def test_an_update_and_the_deletion_of_a_snapshot_have_the_timeout_of_the_type() -> None:
    rows = rows_of("a:S, b")
    scope = replace(SCOPE, type_timeouts={"S": 10.0})
    updated = UpdatePlanner(list(rows.values()), compiled("a=2:S, b=2"), {}, scope, Types()).plan()
    labels = {row.id: label for label, row in rows.items()}
    assert {
        labels[ResourceId(task.resource_id or 0)]: task.timeout
        for task in updated.tasks
        if task.kind == TaskKind.UPDATE
    } == {"a": 10.0, "b": None}
    copies = [replace(row, snapshot_id=SnapshotId("x")) for row in rows.values()]
    assert [task.timeout for task in plan_snapshot_deletion(copies, {}, scope).tasks] == [10.0, None]
