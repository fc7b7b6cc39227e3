"""The report of ``stack inspect``, as text and as JSON."""

import datetime
import time
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ...db.connections import server_time
from ...db.rows import Stack
from ...db.states import Status, TaskState
from . import inspections
from .advice import advise
from .discretion import Aliases, for_users, general_for_users, waiting_without_hosts, without_hosts
from .fleet import ConductorFleet, Reason, health_problems, when
from .inspections import FailedResource, Waiting
from .tasks import LATE, DiagnosisContext, Finding, explain

FAILED_SHOWN = 5
LONGEST = 50
"""Steps searched for the one in a call for longest, on each conductor without a free thread."""


@dataclass(frozen=True)
class StackReport:
    """The facts about a stack.

    :ivar general: problems of the installation, and of the stack as a whole.
    :ivar failed: the failed resources of a failed stack, the first cause first.
    :ivar hosts: whether hosts are named, as for operators; users of the stack do not see them.
    """

    stack: Stack
    owner: str | None
    waiting: Waiting
    general: Sequence[Reason]
    findings: Sequence[Finding]
    failed: Sequence[FailedResource]
    hosts: bool = True

    @property
    def in_progress(self) -> bool:
        """Return whether the stack is in progress."""
        return self.stack.status == Status.IN_PROGRESS

    @property
    def more(self) -> int:
        """Return the number of tasks that are not shown."""
        counted = sum(count for state, count in self.waiting.counts.items() if state != TaskState.WAITING)
        return max(0, counted - sum(finding.task.state != TaskState.CANCELLED for finding in self.findings))


def read_report(
    conn: Connection, stack: Stack, fleet: ConductorFleet, *, limit: int, hosts: bool = True
) -> StackReport:
    """Return the report, by few statements for a stack of any size.

    :param limit: tasks that it has at most.
    :param hosts: whether hosts are named, see StackReport.
    """
    waiting = inspections.waiting(conn, stack.id, present=fleet.present, limit=limit)
    longest = inspections.longest_steps(conn, fleet.fully_busy, limit=LONGEST)
    if not hosts:
        alias = Aliases.of(fleet)
        waiting = waiting_without_hosts(waiting, alias)
        longest = [replace(step, member=alias.member(step.member)) for step in longest]
        fleet = without_hosts(fleet, alias)
    ahead = server_time(conn)
    database = None if ahead is None else ahead - time.time()
    owner = fleet.owner_of(stack.shard)
    general = of_stack(stack, waiting, owner, fleet)
    if waiting.tasks or stack.status == Status.IN_PROGRESS or stack.rollback_at is not None:
        general = [*health_problems(fleet, unsettled=fleet.unsettled, database=database), *general]
    failed: Sequence[FailedResource] = ()
    if stack.status == Status.FAILED:
        failed = inspections.failed_resources(conn, stack.id, limit=FAILED_SHOWN)
    context = DiagnosisContext(stack.deadline_at, waiting.children, waiting.handles, longest, waiting.guests)
    findings = [explain(task, fleet, context) for task in waiting.tasks]
    if not hosts:
        general = general_for_users(general)
        findings = [replace(finding, reason=for_users(finding.reason)) for finding in findings]
    return StackReport(stack, owner, waiting, general, findings, failed, hosts)


def of_stack(stack: Stack, waiting: Waiting, owner: str | None, fleet: ConductorFleet) -> list[Reason]:
    """Return the reasons that concern the stack as a whole."""
    if stack.deleted_at is not None:
        return [Reason("deleted", "it was deleted", "its rows are purged", None, ())]
    if stack.rollback_at is not None:
        why = f"its rollback is not planned yet: {stack.reason}"
        if owner is None:
            return [Reason("rollback", why, "nothing: no conductor is alive", None, fleet.revive())]
        return [Reason("rollback", why, f"{owner} starts it", stack.rollback_at + 1.0, ())]
    if stack.status == Status.FAILED:
        advice = advise(stack)
        wait = f"nothing: {advice.first}" if advice.first else "nothing: it has ended"
        return [Reason("failed", stack.reason, wait, None, (advice.command_for(stack),))]
    if stack.status != Status.IN_PROGRESS:
        return [Reason("complete", stack.reason, "nothing: it has ended", None, ())]
    reasons: list[Reason] = []
    if stack.deadline_at is not None and fleet.now - stack.deadline_at > LATE:
        why = "its timeout should have expired"
        commands = (f"{fleet.manage} stack fail {stack.id}", *(() if owner else fleet.revive()))
        reasons.append(
            Reason("duties", why, f"{owner or 'no conductor'} must end it", stack.deadline_at, commands)
        )
    if not any(waiting.counts.get(state) for state in TaskState if state != TaskState.WAITING):
        why = "it is in progress, but none of its tasks can run: this is a bug, please report it"
        reasons.append(
            Reason("lost", why, "its timeout", stack.deadline_at, (f"{fleet.manage} stack fail {stack.id}",))
        )
    return reasons


def command_to_continue(stack: Stack) -> str:
    """Return the command that helps a failed stack."""
    return advise(stack).command_for(stack)


def as_lines(report: StackReport, fleet: ConductorFleet) -> Iterator[str]:
    """Yield the lines of the report for people."""
    stack = report.stack
    nested = " (a nested one)" if stack.parent_id is not None else ""
    named = f"stack {stack.name} ({stack.id}) of project {stack.project_id}{nested}"
    yield f"{named}: {stack.action}_{stack.status}"
    if report.in_progress:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(report.waiting.counts.items()))
        yield f"unfinished: {counts or 'nothing'}; owned by {report.owner or 'no conductor'}"
        if stack.remaining is not None:
            yield f"its timeout is paused, with {stack.remaining:.0f} s left: all unfinished tasks are held"
        elif stack.deadline_at is not None:
            yield f"times out: {when(fleet, stack.deadline_at)}"
    for reason in report.general:
        yield from _reason(reason, fleet, ["", f"! {reason.why}"])
    for failed in report.failed:
        yield f"  {failed.path}: {failed.action} failed: {failed.reason}"
    for finding in report.findings:
        task = finding.task
        holder = f" on {finding.holder}" if finding.holder else ""
        since = f" since {when(fleet, finding.since)}" if finding.since else ""
        of = f", for {task.request}" if task.request else ""
        line = f"{task.path}: {task.kind} is {task.state}{holder}{since}, attempt {task.attempt}{of}"
        yield from _reason(finding.reason, fleet, ["", line, f"  why: {finding.reason.why}"])
    if report.more:
        yield ""
        yield f"{report.more} more are not shown; --limit shows more"
    if waits := report.waiting.counts.get(TaskState.WAITING):
        yield ""
        yield f"{waits} {'waits' if waits == 1 else 'wait'} for other tasks of the stack"


def _reason(reason: Reason, fleet: ConductorFleet, head: list[str]) -> Iterator[str]:
    yield from head
    at = f": {when(fleet, reason.at)}" if reason.at is not None else ""
    yield f"  by itself: {reason.next}{at}"
    for number, command in enumerate(reason.commands):
        yield f"  {'sooner' if number == 0 else '    or'}: {command}"


def as_json(report: StackReport) -> typing.Any:
    """Return the report as JSON."""
    stack = report.stack
    return {
        "stack": {
            "id": stack.id,
            "name": stack.name,
            "project": stack.project_id,
            "parent": stack.parent_id,
            "action": stack.action,
            "status": stack.status,
            "reason": stack.reason,
            **({"owner": report.owner} if report.hosts else {}),
            "deadline_at": _iso(stack.deadline_at),
            "remaining": stack.remaining,
        },
        "counts": {str(state): count for state, count in sorted(report.waiting.counts.items())},
        "general": [_json(reason) for reason in report.general],
        "failed": [{"resource": f.path, "action": f.action, "reason": f.reason} for f in report.failed],
        "tasks": [
            {
                "resource": finding.task.path,
                "stack": finding.task.stack_id,
                "type": finding.task.type,
                "action": str(finding.task.kind),
                "state": str(finding.task.state),
                "attempt": finding.task.attempt,
                "request": finding.task.request,
                **({"held_by": finding.task.member} if report.hosts else {}),
                "since": _iso(finding.since),
                **_json(finding.reason),
            }
            for finding in report.findings
        ],
        "more": report.more,
    }


def _json(reason: Reason) -> dict[str, typing.Any]:
    return {
        "cause": reason.cause,
        "why": reason.why,
        "next": reason.next,
        "at": _iso(reason.at),
        "commands": list(reason.commands),
    }


def _iso(moment: float | None) -> str | None:
    """Return an instant with its fraction of a second, which the API's form of ISO 8601 leaves out."""
    return None if moment is None else datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat()
