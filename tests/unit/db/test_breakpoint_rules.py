"""Which breakpoints hold a task, what they do with it, and the words for that."""

import typing

import pytest
from stoker.db.ids import ResourceId, StackId, TaskId, TraversalId
from stoker.db.rows import Task
from stoker.db.states import TaskKind, TaskState
from stoker.db.work import breakpoint_rules
from stoker.db.work.breakpoint_rules import POST, PRE

CREATE = TaskKind.CREATE
BOTH = {"pre-create": {}, "post-create": {}}


def a_task(kind: TaskKind = CREATE, **columns: typing.Any) -> Task:
    return Task(
        TaskId(1),
        TraversalId("t"),
        StackId("s"),
        kind,
        TaskState.WAITING,
        pending=0,
        shard=1,
        resource_id=ResourceId(2),
        **columns,
    )


@pytest.mark.parametrize(
    ("task", "before", "after"),
    [
        (a_task(), None, None),
        (a_task(hooks={"pre-create": {}}), "pre-create", None),
        (a_task(hooks={"post-create": {}}), None, "post-create"),
        (a_task(hooks=BOTH), "pre-create", "post-create"),
        (a_task(TaskKind.UPDATE, hooks=BOTH), None, None),
        (a_task(TaskKind.UPDATE, hooks={"pre-update": {}}), "pre-update", None),
        (a_task(TaskKind.DELETE, hooks={"pre-delete": {}}), "pre-delete", None),
        (a_task(TaskKind.CLEANUP, hooks={"post-delete": {}}), None, "post-delete"),
        (a_task(TaskKind.CHECK, hooks={"pre-check": {}}, stepped=True), None, None),
        (a_task(stepped=True), "pre-create", None),
        (a_task(hooks={"post-create": {}}, stepped=True), "pre-create", "post-create"),
    ],
)
def test_a_task_stops_at_its_breakpoints_and_before_each_step(
    task: Task, before: str | None, after: str | None
) -> None:
    assert (breakpoint_rules.stop_at(task, PRE), breakpoint_rules.stop_at(task, POST)) == (before, after)


@pytest.mark.parametrize(
    ("options", "aborts", "limit", "fails"),
    [
        (None, False, None, False),
        ({"post-create": {"abort": True, "timeout": 5, "then": "fail"}}, False, None, False),
        ({"pre-create": {}}, False, None, False),
        ({"pre-create": {"abort": True}}, True, None, False),
        ({"pre-create": {"timeout": 5, "then": "continue"}}, False, 5, False),
        ({"pre-create": {"timeout": 5, "then": "fail"}}, False, 5, True),
    ],
)
def test_the_options_of_a_breakpoint(
    options: dict[str, typing.Any] | None, aborts: bool, limit: float | None, fails: bool
) -> None:
    task = a_task(hooks=options)
    assert breakpoint_rules.aborts(task, "pre-create") is aborts
    assert breakpoint_rules.limit(task, "pre-create") == limit
    assert breakpoint_rules.fails_at_limit(task, "pre-create") is fails


@pytest.mark.parametrize(
    ("hook", "is_post"), [(None, False), ("pre-create", False), ("post-create", True), ("post-delete", True)]
)
def test_a_breakpoint_after_the_action_has_its_name(hook: str | None, is_post: bool) -> None:
    assert breakpoint_rules.is_post(hook) is is_post


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (1, "paused at breakpoint: pre-create on r0"),
        (2, "paused at breakpoints: pre-create on r0, pre-create on r1"),
        (10, "pre-create on r8, pre-create on r9"),
        (11, "pre-create on r8, pre-create on r9, and 1 more"),
    ],
)
def test_a_stacks_reason_names_ten_breakpoints(count: int, end: str) -> None:
    held = [("pre-create", f"r{number}") for number in range(count)]
    assert breakpoint_rules.paused_reason("CREATE", held, count).endswith(end)


@pytest.mark.parametrize(
    ("kind", "columns", "is_held"),
    [
        (CREATE, {}, False),
        (CREATE, {"hooks": BOTH}, True),
        (TaskKind.DELETE, {"stepped": True}, True),
        (TaskKind.UPDATE, {"stepped": True}, False),
        (TaskKind.CLEANUP, {"hooks": {"pre-delete": {}}}, False),
    ],
)
def test_what_its_step_decides_is_not_held_before(
    kind: TaskKind, columns: dict[str, typing.Any], is_held: bool
) -> None:
    task = a_task(kind, **columns)
    free, hits = breakpoint_rules.partition([task])
    assert (free, [hit.task for hit in hits]) == (([], [task]) if is_held else ([task], []))
