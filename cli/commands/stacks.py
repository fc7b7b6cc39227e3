"""``stoker-manage stack``: why a stack is not finished, and what the operator does about it."""

import json
import time
import typing
from contextlib import contextmanager

from cliff.command import Command
from sqlalchemy.engine import Connection

from ...conductor.rescue import NothingToDo, Rescue, Treated
from ...db.connections import server_time
from ...db.ids import MemberId
from ...db.queries import inspections
from ...db.queries.inspections import Waiting
from ...db.rows import Stack
from ...db.states import Status
from ...rpc.outbox import Outbox
from ..wiring.messaging import make_bus
from ..wiring.probes import hush
from .base import AdminError
from .diagnosis import DiagnosisContext, explain
from .fleet import ConductorFleet, of_installation, when
from .presence import crew_of
from .sessions import Session, find_stack, session_of
from .stack_report import StackReport, as_json, as_text, goes_on, of_stack

SENT_WITHIN = 3.0
"""Seconds that the message bus is given to take what is to be said."""
FAILED_SHOWN = 5
LONGEST = 50
"""Steps looked at for the one that has kept a thread for longest, on each conductor without a free one."""


class _OfStack(Command):
    """Base of the commands that take a stack."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="STACK", help="id of a stack, also of a nested one; or its name")
        parser.add_argument("--project", metavar="ID", help="the stack is this project's")
        return parser

    def stack(self, session: Session, parsed: typing.Any) -> Stack:
        """The stack that is meant.

        :raises AdminError: there is none, or there are several.
        """
        return find_stack(session, parsed.stack, parsed.project)


class StackInspect(_OfStack):
    """Say why a stack is not finished: what waits for what, since when, what happens next, what helps."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("-f", "--format", choices=["text", "json"], default="text")
        parser.add_argument("--limit", type=int, default=20, help="tasks to show (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        if parsed.limit < 1:
            raise AdminError(f"--limit must be 1 or more, not {parsed.limit}")
        session = session_of(self)
        stack = self.stack(session, parsed)
        crew = crew_of(session, manage=called(self))
        report = report_of(session, stack, crew, limit=parsed.limit)
        if parsed.format == "json":
            self.app.stdout.write(json.dumps(as_json(report), indent=2) + "\n")
        else:
            self.app.stdout.write(as_text(report, crew))
        return 0


class StackRetry(_OfStack):
    """Hand out again what is stuck, now: send lost hints again, wake what waits for its next try, take away
    what conductors hold that are gone; with --resource also what a conductor hangs at."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--resource", metavar="[NESTED/…/]NAME", help="only this one")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        stack = self.stack(session, parsed)
        crew = crew_of(session, manage=called(self))
        with _rescue(self, session, crew) as rescue:
            try:
                done = rescue.retry(stack, parsed.resource)
            except NothingToDo as error:
                raise AdminError(f"{error}{_instead(stack)}") from error
        _tell(self, done.treated)
        if done.left:
            self.app.stdout.write("skipped:\n")
            _tell(self, done.left)
        if not crew.living:
            self.app.stdout.write("no conductor is alive: the work is done when one is back\n")
        return 0


class StackFail(_OfStack):
    """End what a stack does as FAILED, and what is done to its nested stacks; what runs is stopped.  It can
    be updated or deleted afterwards."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--reason", metavar="TEXT", help="shown as the stack's reason")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        stack = self.stack(session, parsed)
        crew = crew_of(session, manage=called(self))
        reason = parsed.reason or f"{stack.action} ended by the operator"
        with _rescue(self, session, crew) as rescue:
            try:
                done = rescue.fail(stack, reason)
            except NothingToDo as error:
                raise AdminError(f"{error}{_instead(stack)}") from error
        now = done.stack
        self.app.stdout.write(f"stack {now.name} ({now.id}) is {now.action}_{now.status}: {now.reason}\n")
        for step in done.running:
            until = when(crew, step.stop_by)
            self.app.stdout.write(
                f"{step.resource}: its step on {step.member} is asked to stop until {until}\n"
            )
        return 0


def called(command: Command) -> str:
    """How the program was called, for the commands that are proposed."""
    files = typing.cast(typing.Any, command.app).options.config_file or []
    return " ".join(["stoker-manage", *(f"--config-file {file}" for file in files)])


def report_of(session: Session, stack: Stack, crew: ConductorFleet, *, limit: int) -> StackReport:
    """What is found out, by one transaction that changes nothing."""

    def read(conn: Connection) -> StackReport:
        waiting = inspections.waiting(conn, stack.id, present=crew.present, limit=limit)
        ahead = server_time(conn)
        database = None if ahead is None else ahead - time.time()
        owner = crew.owner_of(stack.shard)
        general = of_stack(stack, waiting, owner, crew)
        if waiting.tasks or stack.status == Status.IN_PROGRESS or stack.rollback_at is not None:
            general = [*of_installation(crew, unsettled=crew.unsettled, database=database), *general]
        failed = []
        if stack.status == Status.FAILED:
            failed = inspections.failed_resources(conn, stack.id, limit=FAILED_SHOWN)
        return StackReport(stack, owner, waiting, general, _findings(conn, stack, waiting, crew), failed)

    return session.database.read(read)


def _findings(conn: Connection, stack: Stack, waiting: Waiting, crew: ConductorFleet) -> list[typing.Any]:
    longest = inspections.longest_steps(conn, crew.crowded, limit=LONGEST)
    around = DiagnosisContext(stack.deadline_at, waiting.children, waiting.handles, longest)
    return [explain(task, crew, around) for task in waiting.tasks]


@contextmanager
def _rescue(command: Command, session: Session, crew: ConductorFleet) -> typing.Iterator[Rescue]:
    """With a connection to the message bus; a bus that is away delays nothing."""
    hush()
    bus = make_bus(session.conf)
    outbox = Outbox(bus)
    outbox.start()
    yield Rescue(
        database=session.database,
        hints=outbox,
        clock=session.database.clock,
        works=lambda member: crew.works(MemberId(member)),
        grace=crew.grace,
    )
    if outbox.stop(SENT_WITHIN):
        bus.close()
    else:
        command.app.stderr.write(
            "the message bus does not answer: the stacks' owners send it again when it does, see "
            f"`{crew.manage} config validate --connect`\n"
        )


def _tell(command: Command, treated: typing.Sequence[Treated]) -> None:
    for item in treated:
        command.app.stdout.write(f"{item.path}: {item.told}\n")


def _instead(stack: Stack) -> str:
    """What is right for a stack that has ended."""
    return f"; to go on: {goes_on(stack)}" if stack.status == Status.FAILED else ""
