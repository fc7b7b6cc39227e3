"""Bugs that are put in on purpose: the schedules have to find each of them.

`python -m simulation.power` tells how many schedules that takes.
"""

import math
import pathlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from simulation import weather
from simulation.schedule import play
from stoker.conductor.lookout import Lookout
from stoker.conductor.steps.outcomes import Outcomes
from stoker.conductor.steps.results import StepResult
from stoker.db import usage
from stoker.db.bulk import OneOf
from stoker.db.ids import TaskId
from stoker.db.rows import Outcome, Task
from stoker.db.schema import tables
from stoker.db.states import TaskState
from stoker.db.work import commit, countdown, stack_transitions
from stoker.db.work.claim import Claimant
from stoker.engine import actions
from stoker.engine.planning import plan as planning
from stoker.engine.planning.plan import Edges, Plan
from stoker.engine.planning.update import UpdatePlanner
from stoker.resources.contract.errors import RetryableError

BROKEN = "Traceback"
INTERRUPTED = 0.2
"""Probability of being held up before a write, where late results are sought: one seed in eight has some."""


@dataclass(frozen=True)
class Bug:
    """A bug.

    :ivar plant: puts it in.
    :ivar fragments: texts of which a schedule that finds it reports one.
    :ivar since: a seed that finds it comes soon after this one; those before were seen not to.
    :ivar is_rare: whether it takes many schedules.
    """

    plant: Callable[[pytest.MonkeyPatch], None]
    fragments: Sequence[str]
    since: int = 0
    is_rare: bool = False

    def is_found_by(self, seed: int, folder: pathlib.Path) -> bool:
        """Return whether the schedule of a seed finds the bug, which is in.

        :raises AssertionError: it finds something else.
        """
        try:
            play(seed, folder)
        except AssertionError as error:
            first = str(error).splitlines()[0]
            if not any(fragment in first for fragment in self.fragments):
                raise
            return True
        return False


def _counting_down(by: sa.ColumnElement[int]) -> sa.Update:
    t = tables.task
    waiting = sa.update(t).where(OneOf(t.c.id), t.c.state == TaskState.WAITING)
    return waiting.values(pending=t.c.pending - by)


def _count_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(countdown, "_COUNT_DOWN", _counting_down(2 * sa.bindparam("by", type_=sa.Integer)))
    patch.setattr(countdown, "is_last", lambda task, ended: task.pending <= 2 * ended)


def _count_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(countdown, "_COUNT_DOWN", _counting_down(sa.literal(1)))
    patch.setattr(countdown, "is_last", lambda task, ended: task.pending <= 1)


def _keep_failed(patch: pytest.MonkeyPatch) -> None:
    cancel = countdown.cancel_behind_failure
    patch.setattr(countdown, "cancel_behind_failure", lambda *a, **k: max(0, cancel(*a, **k) - 1))


def _fence(is_current: Callable[[Outcome, Task, Claimant], bool]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            commit,
            "_current",
            lambda outcome, task, who: task is not None and is_current(outcome, task, who),
        )
        patch.setattr(weather, "INTERRUPTED", INTERRUPTED)

    return plant


def _rearranged(
    change: Callable[[TaskId, TaskId, Set[TaskId]], tuple[TaskId, TaskId] | None],
) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what plants other edges in the plans of updates.

    :param change: from an edge and the ids of all deletions to the edge there shall be, None: to none.
    """
    plan = UpdatePlanner._edges

    def edges(planner: UpdatePlanner) -> Edges:
        right = plan(planner)
        wrong = Edges()
        deletions = {job.id for job in planner._deletions.values()}
        tasks = [*planner._jobs.values(), *planner._deletions.values()]
        for first, then in [(job.id, then) for job in tasks for then in right.after(job.id)]:
            if (edge := change(first, then, deletions)) is not None:
                wrong.add(*edge)
        return wrong

    return lambda patch: patch.setattr(UpdatePlanner, "_edges", edges)


def _delete_in_order_of_creation(patch: pytest.MonkeyPatch) -> None:
    class Turned(Edges):
        def add(self, first: TaskId, then: TaskId) -> None:
            super().add(then, first)

    plan_delete = actions.plan_delete

    def turned(*arguments: object) -> Plan:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(planning, "Edges", Turned)
            return plan_delete(*arguments)

    patch.setattr(actions, "plan_delete", turned)


def _count_deleted(patch: pytest.MonkeyPatch) -> None:
    of_stacks = usage.of_stacks
    patch.setattr(usage, "of_stacks", lambda stacks, sign=1: [] if sign < 0 else of_stacks(stacks))


def _forget_unanswered(patch: pytest.MonkeyPatch) -> None:
    retry = Outcomes.retry

    def forget(
        outcomes: Outcomes, error: RetryableError, *, after_success: bool = False, has_begun: bool = False
    ) -> StepResult:
        return retry(outcomes, error, after_success=after_success)

    patch.setattr(Outcomes, "retry", forget)


def _allow_all_actions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(actions, "check_action", lambda stack, kind: None)
    patch.setattr(stack_transitions, "check_arrow", lambda source, target: None)


LATE = ("I2", BROKEN)
CLEANUP = ("was deleted under", "began before", "and should have", BROKEN)
BUGS = {
    "a predecessor that is counted twice": Bug(_count_twice, ["I3"]),
    "two predecessors that end together and are counted once": Bug(_count_once, ["I3"]),
    "a failed task that is not taken off the count of the end": Bug(_keep_failed, ["I4"], since=4),
    "a late result that is accepted from whoever has it": Bug(
        _fence(lambda outcome, task, who: True), LATE, is_rare=True
    ),
    "a late result that is accepted for a task that somebody runs": Bug(
        _fence(lambda outcome, task, who: task.state == TaskState.RUNNING), LATE, is_rare=True
    ),
    "a late result that is accepted for a task that this member runs": Bug(
        _fence(lambda outcome, task, who: task.state == TaskState.RUNNING and task.member == who.member),
        LATE,
        is_rare=True,
    ),
    "a clean-up before the replacement is there, and its dependents have moved": Bug(
        _rearranged(
            lambda first, then, deletions: (
                None if then in deletions and first not in deletions else (first, then)
            )
        ),
        CLEANUP,
        since=6,
        is_rare=True,
    ),
    "clean-ups in any order": Bug(
        _rearranged(lambda first, then, deletions: None if {first, then} <= deletions else (first, then)),
        CLEANUP,
        is_rare=True,
    ),
    "clean-ups in the order of creation": Bug(
        _rearranged(
            lambda first, then, deletions: (then, first) if {first, then} <= deletions else (first, then)
        ),
        CLEANUP,
        is_rare=True,
    ),
    "stacks that are deleted in the order of creation": Bug(
        _delete_in_order_of_creation, ["was deleted under"]
    ),
    "a deleted stack that its project still counts": Bug(_count_deleted, ["Q1"]),
    "a change without an answer that is taken for none": Bug(_forget_unanswered, ["should hold"], since=51),
    "a conductor that rests although a deadline is near": Bug(
        lambda patch: patch.setattr(Lookout, "_first_moment", lambda lookout: math.inf),
        ["I5: a timeout is", "I4"],
        since=6,
    ),
    "an action that begins while another is in progress": Bug(_allow_all_actions, ["S1"]),
}
