"""Why a task is not over, what happens next by itself, and what brings it about sooner: pure, in words.

`doc/handbook.md` shows these words; `tests/process/test_handbook.py` compares.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...db.conductors import STOPPED
from ...db.ids import MemberId, host_of
from ...db.queries.inspections import Child, LongStep, Unfinished
from ...db.states import REDELIVER_MOST, Standing, Status, TaskState, redelivery_delay
from ...db.work.cancel import ASK_RARELY, MARGIN
from .base import describe_age, describe_span
from .fleet import SKEW, ConductorFleet, Reason, ago, restart

HANGS_AFTER = 5.0
"""Seconds in one call after which one may ask whether it hangs."""
MANY_HINTS = 2
"""So many hints for one task are not lost by chance."""
LATE = 5.0
"""Seconds past its moment after which a duty must have come round."""


@dataclass(frozen=True)
class DiagnosisContext:
    """What else is known of the stack.

    :ivar deadline_at: when it times out; None: its clock stands, or it is not in progress.
    :ivar longest: steps that have been in a call for longest, wherever.
    """

    deadline_at: float | None
    children: Mapping[str, Child]
    handles: Mapping[str, str]
    longest: Sequence[LongStep] = ()


@dataclass(frozen=True)
class Finding:
    """A task and the reason; `since` is when it came to be as it is."""

    task: Unfinished
    since: float | None
    reason: Reason

    @property
    def holder(self) -> str | None:
        """Host of the conductor that holds it."""
        return None if self.task.member is None else host_of(self.task.member)


def explain(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Finding:
    """One task."""
    return Finding(task, _since(task), _EXPLAINED[task.state](task, crew, around))


def _since(task: Unfinished) -> float | None:
    if task.state in (TaskState.RUNNING, TaskState.CANCELLED):
        return task.claimed_at
    if task.state == TaskState.READY and task.due_at is not None:
        return _last_hint(task) - sum(redelivery_delay(count) for count in range(task.redelivered))
    return task.held_since if task.state == TaskState.HELD else task.told_at


def _last_hint(task: Unfinished) -> float:
    return (task.due_at or 0.0) - redelivery_delay(task.redelivered)


def _running(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Reason:
    assert task.member is not None
    host = host_of(task.member)
    if not crew.works(task.member):
        return _of_gone(task, crew, host)
    if task.stop_by is not None:
        return _not_stopped(task, crew, host)
    if task.begun:
        why = f"{host} polls it; its progress was last stored {ago(crew, task.told_at)}"
        return Reason("polled", why, *_limit(task, around, "it ends when the resource's type reports so"))
    age = crew.now - (task.claimed_at or crew.now)
    if age < HANGS_AFTER:
        why = f"{host} started it {describe_age(age)}"
        return Reason("begun", why, *_limit(task, around, "its step ends"))
    conductor = crew.conductors[host]
    before = _before(task, around, task.claimed_at or 0.0)
    if before is not None and conductor.threads_busy > conductor.threads > 0:
        why = f"it waits for a thread, or is in its first call: all {conductor.threads} of {host} are busy"
        longest, command = _longest(crew, before)
        limit = _limit(task, around, "its step starts when a thread is free")
        return Reason("threads", f"{why}; {longest}", *limit, (command,))
    why = f"its step has not returned from its first call on {host}: the call is slow, or hangs"
    limit = _limit(task, around, "nothing until the call returns")
    return Reason("call", why, *limit, (crew.retry(task.stack_id, task.resource),))


def _before(task: Unfinished, around: DiagnosisContext, claimed_at: float) -> LongStep | None:
    """The step that has kept a thread of the same conductor for longest."""
    theirs = (step for step in around.longest if step.member == task.member)
    return next((step for step in theirs if step.claimed_at < claimed_at), None)


def _longest(crew: ConductorFleet, step: LongStep) -> tuple[str, str]:
    """What has kept a thread for longest, and the command that frees it."""
    age, host = describe_span(crew.now - step.claimed_at), host_of(step.member)
    told = (
        f"the longest call ({age}) is that of resource {step.resource} of stack {step.stack_name} on {host}"
    )
    return told, crew.retry(step.stack_id, step.resource)


def _limit(task: Unfinished, around: DiagnosisContext, otherwise: str) -> tuple[str, float | None]:
    """What ends it at the latest."""
    if task.expires_at is not None and task.expires_at < (around.deadline_at or float("inf")):
        return f"{otherwise}; at the latest its own timeout expires", task.expires_at
    if around.deadline_at is not None:
        return f"{otherwise}; at the latest the stack times out", around.deadline_at
    return otherwise, None


def _of_gone(task: Unfinished, crew: ConductorFleet, host: str) -> Reason:
    conductor = crew.conductors.get(host)
    last = crew.now if conductor is None else conductor.heartbeat_at
    if conductor is None:
        told = "is no longer registered"
    elif host in crew.living:
        told = "has restarted since"
    elif conductor.state == STOPPED:
        told = "has stopped"
    else:
        told = f"sends no heartbeat (last report {describe_age(crew.now - last)})"
    why = f"{host} holds it, which {told}"
    owner = crew.owner_of(task.shard)
    if owner is None:
        return Reason("gone", why, "nothing: no conductor is alive", None, crew.revive())
    at = max(crew.now + 1.0, last + crew.takeover)
    does = f"{owner} takes the task over from {host} and requeues it"
    return Reason("gone", why, does, at, (crew.retry(task.stack_id),))


def _not_stopped(task: Unfinished, crew: ConductorFleet, host: str) -> Reason:
    why = f"{host} was asked to cancel it and has not: its step hangs in a call"
    if task.standing == Standing.SUPERSEDED or task.traversal != task.traversal_now:
        why += "; it belongs to the stack's previous action, and the resource's present one waits"
    command = crew.retry(task.stack_id, task.resource)
    owner = crew.owner_of(task.shard)
    if owner is None:
        return Reason("cancel", why, "nothing: no conductor is alive", None, (*crew.revive(), command))
    at = (task.stop_by or crew.now) + MARGIN
    does = (
        f"{owner} asks {host} again every second; then its claim is revoked, and the stack goes on without it"
    )
    return Reason("cancel", why, does, at, (command,))


def _ready(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Reason:
    sent, due = task.redelivered + 1, task.due_at or crew.now
    owner, command = crew.owner_of(task.shard), crew.retry(task.stack_id)
    if not crew.living:
        return Reason(
            "conductors", "the task is ready, but no conductor is alive", "nothing", None, crew.revive()
        )
    if crew.is_busy:
        return _no_thread(crew, around, owner, due)
    if due > crew.now + REDELIVER_MOST + SKEW:
        why = (
            "the task is ready, and no conductor has claimed it; "
            "its due time was stored by a clock that is ahead"
        )
        return Reason("clock", why, f"{owner} sends the hint again", due, (command,))
    last = crew.now - _last_hint(task)
    times = "one hint" if sent == 1 else f"{sent} hints"
    why = (
        f"the task is ready, and no conductor has claimed it: {times} sent, the last one {describe_age(last)}"
    )
    assert owner is not None, "whoever is alive owns something"
    if sent >= MANY_HINTS:
        why += "; hints are not delivered: check that the message bus answers"
        commands = (f"{crew.manage} config validate --connect", command)
        return _duty(crew, "bus", owner, Reason("bus", why, "sends the hint again", due, commands))
    return _duty(crew, "hint", owner, Reason("hint", why, "sends the hint again", due, (command,)))


def _no_thread(crew: ConductorFleet, around: DiagnosisContext, owner: str | None, due: float) -> Reason:
    busy = ", ".join(f"{host}: {crew.conductors[host].threads}" for host in sorted(crew.living))
    why = f"the task is ready, but all threads of all conductors are busy ({busy})"
    commands: list[str] = []
    if around.longest:
        told, command = _longest(crew, around.longest[0])
        why += f"; {told}"
        commands.append(command)
    then = "it is claimed when a thread becomes free"
    return Reason("threads", why, then, due if owner else None, tuple(commands))


def _duty(crew: ConductorFleet, cause: str, owner: str, wanted: Reason) -> Reason:
    """What the owner does at a moment; if that has passed for long its duties make no progress."""
    late = crew.now - (wanted.at or crew.now)
    if late < LATE:
        return Reason(cause, wanted.why, f"{owner} {wanted.next}", wanted.at, wanted.commands)
    why = f"{wanted.why}; {owner} should have acted {describe_age(late)}: its duties make no progress"
    return Reason("duties", why, f"nothing until {owner} recovers", None, (*wanted.commands, restart(owner)))


def _parked(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Reason:
    kind, _, key = (task.waits_on or "").partition(":")
    if kind == "stack":
        return _on_child(task, crew, around.children.get(key))
    owner, command = crew.owner_of(task.shard), crew.retry(task.stack_id, task.resource)
    if kind == "resource":
        handle = around.handles.get(key, "?")
        why = f"it waits for a signal to {handle}, which has not arrived"
        signal = f"openstack stack resource signal {task.stack_id} {shlex.quote(handle)}"
        wanted = Reason("signal", why, "polls it a last time, and it fails", task.due_at, (signal,))
    elif kind == "step":
        why = f"the step on {host_of(task.member or MemberId('?'))} that may still create it has not returned"
        return Reason("step", why, "it is removed when that step ends, or its conductor does")
    else:
        left = "no retries left" if task.retries_left == 0 else f"{task.retries_left} retries left"
        why = f"it will be retried ({left}): {task.reason}"
        wanted = Reason("retry", why, "retries it", task.due_at, (command,))
    if owner is None:
        commands = (*wanted.commands, *crew.revive()) if kind else crew.revive()
        return Reason(wanted.cause, wanted.why, "nothing: no conductor is alive", None, commands)
    return _duty(crew, wanted.cause, owner, wanted)


def _on_child(task: Unfinished, crew: ConductorFleet, child: Child | None) -> Reason:
    name = task.waits_on if child is None else f"{child.name} ({child.action}_{child.status})"
    owner, command = crew.owner_of(task.shard), crew.retry(task.stack_id, task.resource)
    if child is not None and child.status == Status.IN_PROGRESS:
        then = "the end of that stack resumes it"
        if child.stands:
            return Reason(
                "nested", f"it waits for the nested stack {name}, which is held at breakpoints", then
            )
        return Reason("nested", f"it waits for the nested stack {name}", then)
    why = f"it waits for the nested stack {name}, which has ended without resuming it"
    if owner is None:
        return Reason("nested", why, "nothing: no conductor is alive", None, crew.revive())
    return _duty(crew, "nested", owner, Reason("nested", why, "polls it", task.due_at, (command,)))


def _held(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Reason:
    why = f"it is held at the breakpoint {task.hook}"
    command = f"openstack stack continue {task.stack_id} {shlex.quote(task.resource)}"
    if task.due_at is None:
        return Reason("breakpoint", why, "nothing: a breakpoint holds until it is cleared", None, (command,))
    return Reason("breakpoint", why, "the breakpoint's own limit ends it", task.due_at, (command,))


def _cancelled(task: Unfinished, crew: ConductorFleet, around: DiagnosisContext) -> Reason:
    host = host_of(task.member or MemberId("?"))
    why = f"its claim on {host} was revoked; that conductor has not answered, and no stack waits for it"
    if task.member is not None and not crew.works(task.member):
        return Reason("answer", why, "nothing: that conductor is gone", None)
    return Reason("answer", why, f"{host} is asked again every {ASK_RARELY:g} s", task.due_at)


_EXPLAINED: Mapping[TaskState, Callable[[Unfinished, ConductorFleet, DiagnosisContext], Reason]] = {
    TaskState.RUNNING: _running,
    TaskState.READY: _ready,
    TaskState.PARKED: _parked,
    TaskState.HELD: _held,
    TaskState.CANCELLED: _cancelled,
}
