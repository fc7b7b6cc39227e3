"""Lets the operator retry or fail a stack that is stuck.

It needs no conductor, and disturbs none that works.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ...conductor.late_steps import record_expired
from ...db import stacks
from ...db.engine import Database
from ...db.ids import AwaitedKind, MemberId, TaskId, host_of
from ...db.rows import ReadyTasks, Stack
from ...db.states import Status, TaskState
from ...db.work import cancel, due_tasks, endings, losses, member_claims, orphans
from ...engine import cancel as ending
from ...engine.context import Hints, announce
from . import inspections
from .inspections import Child, Unfinished

PAGE = 500
TRIES = 10
ROLLBACK_PENDING = "the operator has ended it"
TAKEN_UP = "another conductor has claimed it meanwhile"


class NothingToDo(Exception):
    """Nothing of the stack is in progress, or it has no such task; the text says what would be right."""


@dataclass(frozen=True)
class RetriedTask:
    """A task, and its treatment, or the reason why it was left alone."""

    path: str
    result: str


@dataclass(frozen=True)
class Retried:
    """Result of a retry.

    :ivar treated: tasks that were retried.
    :ivar untouched: tasks that were left alone.
    """

    treated: Sequence[RetriedTask]
    untouched: Sequence[RetriedTask]


@dataclass(frozen=True)
class StackFailedByOperator:
    """A stack that was failed.

    :ivar stack: the stack as it is now.
    :ivar running: steps that still run, and were asked to stop.
    """

    stack: Stack
    running: Sequence[cancel.Unanswered]


@dataclass
class _Sorted:
    """Tasks of a page, by their treatment."""

    hinted: list[Unfinished] = field(default_factory=list)
    orphaned: list[Unfinished] = field(default_factory=list)
    taken_away: list[Unfinished] = field(default_factory=list)
    woken: list[Unfinished] = field(default_factory=list)
    abandoned: list[Unfinished] = field(default_factory=list)
    buried: list[Unfinished] = field(default_factory=list)


class Rescue:
    """Retries or fails stuck work.

    :param reports: returns whether an incarnation of a conductor reports; claims of others are released.
    :param grace: seconds in which running steps may end.
    """

    def __init__(
        self,
        *,
        database: Database,
        hints: Hints,
        clock: Callable[[], float],
        reports: Callable[[MemberId], bool],
        grace: float,
    ) -> None:
        self._database = database
        self._hints = hints
        self._clock = clock
        self._reports = reports
        self._grace = grace

    def retry(self, stack: Stack, resource: str | None = None) -> Retried:
        """Retry the stuck tasks of the stack and of its nested stacks.

        The rules of all claims hold: the attempt grows, so a late result is refused.

        :param resource: only this one, ``NESTED/…/NAME`` for one in a nested stack, and its contents.
            It is retried even while a conductor that reports runs it: the operator says that the step hangs.
        :raises NothingToDo: none of these tasks is unfinished.
        """
        treated: list[RetriedTask] = []
        untouched: list[RetriedTask] = []
        paths: list[str] = []
        for tasks, children in self._pages(stack):
            paths += [task.path for task in tasks]
            requested = [task for task in tasks if resource is None or _inside(task.path, resource)]
            groups = self._sort(requested, children, resource, untouched)
            treated += self._treat(groups, untouched)
        if not paths:
            raise NothingToDo(
                f"stack {stack.name} is {stack.action}_{stack.status}: nothing of it is unfinished"
            )
        if not treated and not untouched:
            some = ", ".join(sorted(set(paths))[:10])
            raise NothingToDo(
                f"stack {stack.name} has no unfinished resource {resource}; unfinished are: {some}"
            )
        return Retried(treated, untouched)

    def fail(self, stack: Stack, reason: str) -> StackFailedByOperator:
        """Fail the action of the stack and of its nested stacks, and stop running steps.

        Nothing is rolled back.

        :raises NothingToDo: no action is in progress.
        """
        for _ in range(TRIES):
            now = self._clock()
            if stack.rollback_at is not None and self._give_up_rollback(stack):
                break
            stop = functools.partial(
                ending.cancel_stack, expected=stack, reason=reason, now=now, grace=self._grace
            )
            done = self._database.write(stop)
            if done is not None:
                ending.announce_timed_out(self._hints, done)
                break
            stack = self._again(stack)
            if stack.rollback_at is None and stack.status != Status.IN_PROGRESS:
                raise NothingToDo(f"stack {stack.name} is {stack.action}_{stack.status}: it does nothing")
        else:
            raise NothingToDo(f"stack {stack.name} is changed by others all the time; try again")
        stack = self._again(stack)
        return StackFailedByOperator(
            stack, self._database.read(lambda conn: cancel.unanswered(conn, stack.id))
        )

    # -- inside ------------------------------------------------------------------------------------

    def _again(self, stack: Stack) -> Stack:
        return self._database.read(lambda conn: stacks.get(conn, stack.id))

    def _give_up_rollback(self, stack: Stack) -> bool:
        fail_rollback = functools.partial(
            endings.fail_rollback, expected=stack, why=ROLLBACK_PENDING, by=None, now=self._clock()
        )
        return bool(self._database.write(fail_rollback).stacks)

    def _pages(self, stack: Stack) -> Iterator[tuple[list[Unfinished], dict[str, Child]]]:
        last = 0

        def read(conn: Connection) -> tuple[list[Unfinished], dict[str, Child]]:
            tasks = inspections.page(conn, stack.id, after=last, limit=PAGE)
            return tasks, inspections.children(
                conn, [task.waits_on for task in tasks if task.waits_on is not None]
            )

        while True:
            tasks, children = self._database.read(read)
            yield tasks, children
            if len(tasks) < PAGE:
                return
            last = tasks[-1].id

    def _sort(
        self,
        tasks: Sequence[Unfinished],
        children: dict[str, Child],
        resource: str | None,
        untouched: list[RetriedTask],
    ) -> _Sorted:
        groups = _Sorted()
        for task in tasks:
            is_orphaned = task.member is not None and not self._reports(task.member)
            named = task.path == resource
            chosen, why = _choose(task, groups, children, is_orphaned=is_orphaned, named=named)
            if chosen is not None:
                chosen.append(task)
            else:
                untouched.append(RetriedTask(task.path, why))
        return groups

    def _treat(self, groups: _Sorted, untouched: list[RetriedTask]) -> list[RetriedTask]:
        now = self._clock()

        def carry_out(conn: Connection) -> tuple[set[TaskId], ReadyTasks]:
            return _carry_out(conn, groups, now)

        changed, ready = self._database.write(carry_out)
        # Before the announcement: the conductor whose step hangs may be the one that claims the task again.
        for task in groups.taken_away:
            if task.id in changed and task.member is not None and self._reports(task.member):
                self._hints.stop_tasks(task.member, [(task.id, task.attempt)])
        announce(self._hints, ready)
        untouched += [
            RetriedTask(task.path, TAKEN_UP) for task, _ in _results(groups) if task.id not in changed
        ]
        return [RetriedTask(task.path, result) for task, result in _results(groups) if task.id in changed]


def _inside(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}/")


def _choose(
    task: Unfinished, groups: _Sorted, children: dict[str, Child], *, is_orphaned: bool, named: bool
) -> tuple[list[Unfinished] | None, str]:
    """Return the group of the task; None and the reason where the task is left alone."""
    host = host_of(task.member) if task.member is not None else ""
    if task.state == TaskState.READY:
        return groups.hinted, ""
    if task.state == TaskState.RUNNING:
        if is_orphaned:
            return groups.orphaned, ""
        if named:
            return groups.taken_away, ""
        return None, f"{host} works on it; if its step hangs, --resource {task.path} requeues it"
    if task.state == TaskState.HELD:
        return None, f"it is held at a breakpoint: openstack stack continue {task.stack_id} {task.resource}"
    if task.state == TaskState.CANCELLED:
        return (groups.buried, "") if is_orphaned else (None, f"{host} is asked again; no stack waits for it")
    return _choose_parked(task, groups, children, is_orphaned=is_orphaned, named=named)


def _choose_parked(
    task: Unfinished, groups: _Sorted, children: dict[str, Child], *, is_orphaned: bool, named: bool
) -> tuple[list[Unfinished] | None, str]:
    """Return the group of a parked task; None and the reason where the task is left alone."""
    awaited = task.waits_on
    if awaited is None:
        return groups.woken, ""
    if awaited.kind == AwaitedKind.STEP:
        return (
            (groups.abandoned, "")
            if is_orphaned
            else (None, f"a step on {host_of(task.member or MemberId(''))} may still make it")
        )
    child = children.get(awaited.key)
    if awaited.is_stack and child is not None and child.status == Status.IN_PROGRESS and not named:
        return None, f"it waits for the nested stack {child.name}, which is in progress"
    if awaited.kind == AwaitedKind.RESOURCE and not named:
        return None, f"it waits for a signal; --resource {task.path} lets it poll again"
    return groups.woken, ""


def _results(groups: _Sorted) -> Iterator[tuple[Unfinished, str]]:
    for task in groups.hinted:
        yield task, "its hint is sent again"
    for task in [*groups.orphaned, *groups.taken_away]:
        yield task, f"taken away from {host_of(task.member or MemberId(''))}, and requeued"
    for task in groups.woken:
        yield task, "woken"
    for task in groups.abandoned:
        yield task, "removed now, because its conductor is gone"
    for task in groups.buried:
        yield task, "its conductor is gone: no more requests to stop are sent"


def _carry_out(conn: Connection, groups: _Sorted, now: float) -> tuple[set[TaskId], ReadyTasks]:
    """Do at once the work that the duties do in time.

    Return the tasks that were still as they were seen, and those to be announced.
    """
    ready = ReadyTasks()
    changed: set[TaskId] = set()

    for claims, record in (
        (groups.orphaned, None),
        (groups.taken_away, functools.partial(record_expired, now=now)),
    ):
        unreleased = member_claims.still_claimed(conn, [(task.id, task.attempt) for task in claims])
        changed |= {task_id for task_id, _ in unreleased}
        ready.merge(member_claims.release(conn, unreleased, now=now, on_taken=record))
    for tasks, move in (
        (groups.hinted, due_tasks.restart_hints),
        (groups.woken, due_tasks.wake_parked),
    ):
        moved = move(conn, [task.id for task in tasks], now=now)
        changed |= {task_id for ids in moved.values() for task_id in ids}
        ready.merge(moved)
    # One that waits for its conductor under a new name by now is left alone.
    for task in groups.abandoned:
        moved = orphans.abandon(conn, [task.id], now=now, member=task.member)
        changed |= {task_id for ids in moved.values() for task_id in ids}
        ready.merge(moved)
    losses.forget(conn, changed)
    for task in groups.buried:
        if task.member is not None:
            cancel.answered(conn, [(task.id, task.attempt)], task.member)
            changed.add(task.id)
    return changed, ready
