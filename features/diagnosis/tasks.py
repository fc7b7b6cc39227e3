"""The diagnosis of a task that is unfinished: the reason, the next event, and the commands that help.

Pure functions of values.  `doc/handbook.md` quotes the texts; `tests/process/test_handbook.py` compares.
"""

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...db.conductors import STOPPED
from ...db.errors import DamagedRow
from ...db.ids import AwaitedKind, MemberId, host_of
from ...db.queries.guests import AwaitedGuest
from ...db.states import REDELIVER_MOST, Standing, Status, TaskState, redelivery_delay
from ...db.work.cancel import ASK_RARELY, MARGIN
from ...engine.awaited_guests import describe_guest
from ...observe.instants import describe_age, describe_span
from .fleet import SKEW, ConductorFleet, Reason, ago, restart
from .inspections import Child, LongStep, Unfinished

HANGS_AFTER = 5.0
"""Seconds in one call after which the call may hang."""
MANY_HINTS = 2
"""Hints for one task that are not lost by chance."""
LATE = 5.0
"""Seconds after its moment by which a duty must have run."""


@dataclass(frozen=True)
class DiagnosisContext:
    """The facts about a stack that the diagnosis of its tasks needs.

    :ivar deadline_at: the instant at which the stack times out; None: its timeout is paused, or no action is
        in progress.
    :ivar longest: the steps that have been in a call for longest, of all stacks.
    """

    deadline_at: float | None
    children: Mapping[str, Child]
    handles: Mapping[str, str]
    longest: Sequence[LongStep] = ()
    guests: Mapping[str, AwaitedGuest] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """A task and its reason.

    :ivar since: the instant at which the task entered its state; None: unknown.
    """

    task: Unfinished
    since: float | None
    reason: Reason

    @property
    def holder(self) -> str | None:
        """Return the host of the conductor that has claimed it."""
        return None if self.task.member is None else host_of(self.task.member)


def explain(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Finding:
    """Explain why one task is unfinished.

    :raises DamagedRow: the task's row contradicts itself.
    """
    return Finding(task, _since(task), _EXPLAINED[task.state](task, fleet, context))


def _since(task: Unfinished) -> float | None:
    if task.state in (TaskState.RUNNING, TaskState.CANCELLED):
        return task.claimed_at
    if task.state == TaskState.READY:
        return task.ready_at
    return task.held_since if task.state == TaskState.HELD else task.told_at


def _last_hint(task: Unfinished, now: float) -> float:
    """Return when the task's last hint was sent, as late as it may have been."""
    if task.redelivered == 0 and task.ready_at is not None:
        return task.ready_at
    return min(now, (task.due_at or 0.0) - redelivery_delay(task.redelivered))


def _running(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Reason:
    if task.member is None:
        raise DamagedRow(f"Task {task.id} is running on no conductor")
    host = host_of(task.member)
    if not fleet.works(task.member):
        return _of_gone(task, fleet, host)
    if task.stop_by is not None:
        return _not_stopped(task, fleet, host)
    if task.begun:
        why = f"{host} polls it; its progress was last stored {ago(fleet, task.told_at)}"
        return Reason("polled", why, *_limit(task, context, "it ends when the resource's type reports so"))
    age = fleet.now - (task.claimed_at or fleet.now)
    if age < HANGS_AFTER:
        why = f"{host} started it {describe_age(age)}"
        return Reason("begun", why, *_limit(task, context, "its step ends"))
    conductor = fleet.conductors[host]
    before = _before(task, context, task.claimed_at or 0.0)
    if before is not None and conductor.threads_busy > conductor.threads > 0:
        why = f"it waits for a thread, or is in its first call: all {conductor.threads} of {host} are busy"
        longest, command = _longest(fleet, before)
        limit = _limit(task, context, "its step starts when a thread is free")
        return Reason("threads", f"{why}; {longest}", *limit, (command,))
    why = f"its step has not returned from its first call on {host}: the call is slow, or hangs"
    limit = _limit(task, context, "nothing until the call returns")
    return Reason("call", why, *limit, (fleet.retry(task.stack_id, task.resource),))


def _before(task: Unfinished, context: DiagnosisContext, claimed_at: float) -> LongStep | None:
    """Return the step that has kept a thread of the same conductor for longest."""
    member_steps = (step for step in context.longest if step.member == task.member)
    return next((step for step in member_steps if step.claimed_at < claimed_at), None)


def _longest(fleet: ConductorFleet, step: LongStep) -> tuple[str, str]:
    """Return a text about the step that has kept a thread for longest, and the command that frees it."""
    age = describe_span(fleet.now - step.claimed_at)
    host = host_of(step.member)
    if fleet.is_discreet:
        return f"the longest call takes {age} so far", fleet.retry(step.stack_id, step.resource)
    text = (
        f"the longest call ({age}) is that of resource {step.resource} of stack {step.stack_name} on {host}"
    )
    return text, fleet.retry(step.stack_id, step.resource)


def _limit(task: Unfinished, context: DiagnosisContext, otherwise: str) -> tuple[str, float | None]:
    """Return the event that ends the task, and its latest instant."""
    if task.expires_at is not None and task.expires_at < (context.deadline_at or float("inf")):
        return f"{otherwise}; at the latest its own timeout expires", task.expires_at
    if context.deadline_at is not None:
        return f"{otherwise}; at the latest the stack times out", context.deadline_at
    return otherwise, None


def _of_gone(task: Unfinished, fleet: ConductorFleet, host: str) -> Reason:
    conductor = fleet.conductors.get(host)
    last = fleet.now if conductor is None else conductor.heartbeat_at
    if conductor is None:
        text = "is no longer registered"
    elif host in fleet.alive:
        text = "has restarted since"
    elif conductor.state == STOPPED:
        text = "has stopped"
    else:
        text = f"sends no heartbeat (last report {describe_age(fleet.now - last)})"
    why = f"{host} holds it, which {text}"
    owner = fleet.owner_of(task.shard)
    if owner is None:
        return Reason("gone", why, "nothing: no conductor is alive", None, fleet.revive())
    at = max(fleet.now + 1.0, last + fleet.takeover)
    does = f"{owner} takes the task over from {host} and requeues it"
    return Reason("gone", why, does, at, (fleet.retry(task.stack_id),))


def _not_stopped(task: Unfinished, fleet: ConductorFleet, host: str) -> Reason:
    why = f"{host} was asked to cancel it and has not: its step hangs in a call"
    if task.standing == Standing.SUPERSEDED or task.traversal != task.traversal_now:
        why += "; it belongs to the stack's previous action, and the resource's present one waits"
    command = fleet.retry(task.stack_id, task.resource)
    owner = fleet.owner_of(task.shard)
    if owner is None:
        return Reason("cancel", why, "nothing: no conductor is alive", None, (*fleet.revive(), command))
    at = (task.stop_by or fleet.now) + MARGIN
    does = f"{owner} asks {host} again every second; then its claim is revoked, and the stack continues"
    return Reason("cancel", why, does, at, (command,))


def _ready(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Reason:
    sent = task.redelivered + 1
    due = task.due_at or fleet.now
    owner = fleet.owner_of(task.shard)
    command = fleet.retry(task.stack_id)
    if not fleet.alive:
        return Reason(
            "conductors", "the task is ready, but no conductor is alive", "nothing", None, fleet.revive()
        )
    if fleet.is_busy:
        return _no_thread(fleet, context, owner, due)
    if due > fleet.now + REDELIVER_MOST + SKEW:
        why = (
            "the task is ready, and no conductor has claimed it; "
            "its due time was stored by a clock that is ahead"
        )
        return Reason("clock", why, f"{owner} sends the hint again", due, (command,))
    last = fleet.now - _last_hint(task, fleet.now)
    times = "one hint" if sent == 1 else f"{sent} hints"
    why = (
        f"the task is ready, and no conductor has claimed it: {times} sent, the last one {describe_age(last)}"
    )
    assert owner is not None, "whoever is alive owns something"
    if sent >= MANY_HINTS:
        why += "; hints are not delivered: check that the message bus answers"
        commands = (f"{fleet.manage} config validate --connect", command)
        return _duty(fleet, "bus", owner, Reason("bus", why, "sends the hint again", due, commands))
    return _duty(fleet, "hint", owner, Reason("hint", why, "sends the hint again", due, (command,)))


def _no_thread(fleet: ConductorFleet, context: DiagnosisContext, owner: str | None, due: float) -> Reason:
    busy = ", ".join(f"{host}: {fleet.conductors[host].threads}" for host in sorted(fleet.alive))
    why = f"the task is ready, but all threads of all conductors are busy ({busy})"
    commands: list[str] = []
    if context.longest:
        text, command = _longest(fleet, context.longest[0])
        why += f"; {text}"
        commands.append(command)
    then = "it is claimed when a thread becomes free"
    return Reason("threads", why, then, due if owner else None, tuple(commands))


def _duty(fleet: ConductorFleet, cause: str, owner: str, planned: Reason) -> Reason:
    """Return the reason with the owner's next act; past its moment the owner's duties make no progress."""
    late = fleet.now - (planned.at or fleet.now)
    if late < LATE:
        return Reason(cause, planned.why, f"{owner} {planned.next}", planned.at, planned.commands)
    why = f"{planned.why}; {owner} should have acted {describe_age(late)}: its duties make no progress"
    return Reason("duties", why, f"nothing until {owner} recovers", None, (*planned.commands, restart(owner)))


def _parked(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Reason:
    awaited = task.waits_on
    if awaited is not None and awaited.is_stack:
        return _on_child(task, fleet, context.children.get(awaited.key))
    owner = fleet.owner_of(task.shard)
    command = fleet.retry(task.stack_id, task.resource)
    if awaited is not None and awaited.kind == AwaitedKind.RESOURCE:
        handle = context.handles.get(awaited.key, "?")
        why = f"it waits for a signal to {handle}, which has not arrived"
        if (guest := context.guests.get(awaited.key)) is not None:
            why += f"; {describe_guest(guest, functools.partial(ago, fleet))}"
        signal = f"openstack stack resource signal {task.stack_id} {shlex.quote(handle)}"
        planned = Reason("signal", why, "polls it a last time, and it fails", task.due_at, (signal,))
    elif awaited is not None:
        why = f"the step on {host_of(task.member or MemberId('?'))} that may still create it has not returned"
        return Reason("step", why, "it is removed when that step ends, or its conductor does")
    else:
        left = "no retries left" if task.retries_left == 0 else f"{task.retries_left} retries left"
        why = f"it will be retried ({left}): {task.reason}"
        planned = Reason("retry", why, "retries it", task.due_at, (command,))
    if owner is None:
        commands = (*planned.commands, *fleet.revive()) if awaited else fleet.revive()
        return Reason(planned.cause, planned.why, "nothing: no conductor is alive", None, commands)
    return _duty(fleet, planned.cause, owner, planned)


def _on_child(task: Unfinished, fleet: ConductorFleet, child: Child | None) -> Reason:
    name = task.waits_on if child is None else f"{child.name} ({child.action}_{child.status})"
    owner = fleet.owner_of(task.shard)
    command = fleet.retry(task.stack_id, task.resource)
    if child is not None and child.status == Status.IN_PROGRESS:
        then = "the end of that stack resumes it"
        if child.is_paused:
            return Reason(
                "nested", f"it waits for the nested stack {name}, which is held at breakpoints", then
            )
        return Reason("nested", f"it waits for the nested stack {name}", then)
    why = f"it waits for the nested stack {name}, which has ended without resuming it"
    if owner is None:
        return Reason("nested", why, "nothing: no conductor is alive", None, fleet.revive())
    return _duty(fleet, "nested", owner, Reason("nested", why, "polls it", task.due_at, (command,)))


def _held(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Reason:
    why = f"it is held at the breakpoint {task.hook}"
    command = f"openstack stack continue {task.stack_id} {shlex.quote(task.resource)}"
    if task.due_at is None:
        return Reason("breakpoint", why, "nothing: a breakpoint holds until it is cleared", None, (command,))
    return Reason("breakpoint", why, "the breakpoint's own limit ends it", task.due_at, (command,))


def _cancelled(task: Unfinished, fleet: ConductorFleet, context: DiagnosisContext) -> Reason:
    host = host_of(task.member or MemberId("?"))
    why = f"its claim on {host} was revoked; that conductor has not answered, and no stack waits for it"
    if task.member is not None and not fleet.works(task.member):
        return Reason("answer", why, "nothing: that conductor is gone", None)
    return Reason("answer", why, f"{host} is asked again every {ASK_RARELY:g} s", task.due_at)


_EXPLAINED: Mapping[TaskState, Callable[[Unfinished, ConductorFleet, DiagnosisContext], Reason]] = {
    TaskState.RUNNING: _running,
    TaskState.READY: _ready,
    TaskState.PARKED: _parked,
    TaskState.HELD: _held,
    TaskState.CANCELLED: _cancelled,
}
