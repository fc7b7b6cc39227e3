"""``stoker-manage stack``: why a stack is unfinished, and what operators do about it."""

import typing
from contextlib import contextmanager

from cliff.command import Command

from ...db.ids import MemberId
from ...db.rows import Stack
from ...db.states import Status
from ...features.diagnosis.fleet import ConductorFleet, when
from ...features.diagnosis.report import as_json, as_lines, command_to_continue, read_report
from ...features.diagnosis.rescue import NothingToDo, Rescue, RetriedTask
from ...observe.terminal import write_json, write_lines, write_wrapped
from ...rpc.outbox import Outbox
from ..wiring.messaging import make_bus
from ..wiring.servers import silence_libraries
from .base import AdminError
from .fleet import fleet_of
from .sessions import Session, find_stack, session_of

SENT_WITHIN = 3.0
"""Seconds that the message bus gets to accept the messages."""


class _OfStack(Command):
    """Base of the commands that take a stack."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("stack", metavar="STACK", help="id of a stack, also of a nested one; or its name")
        parser.add_argument("--project", metavar="ID", help="the project of the stack")
        return parser

    def stack(self, session: Session, parsed: typing.Any) -> Stack:
        """Return the stack that the arguments name.

        :raises AdminError: there is none, or there are several.
        """
        return find_stack(session, parsed.stack, parsed.project)


class StackInspect(_OfStack):
    """Explain why a stack is unfinished: the wait of each task, the next event, and remedies."""

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
        fleet = fleet_of(session, manage=called(self))
        report = session.database.read(lambda conn: read_report(conn, stack, fleet, limit=parsed.limit))
        if parsed.format == "json":
            write_json(self.app.stdout, as_json(report))
        else:
            write_wrapped(self.app.stdout, *as_lines(report, fleet))
        return 0


class StackRetry(_OfStack):
    """Retry stuck tasks now.

    Sends lost hints again, starts the next retry at once, and requeues what dead conductors have claimed.
    With --resource it also detaches a step that hangs in a call.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--resource", metavar="[NESTED/…/]NAME", help="retry only this resource")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        stack = self.stack(session, parsed)
        fleet = fleet_of(session, manage=called(self))
        with _rescue(self, session, fleet) as rescue:
            try:
                done = rescue.retry(stack, parsed.resource)
            except NothingToDo as error:
                raise AdminError(f"{error}{_instead(stack)}") from error
        _tell(self, done.treated)
        if done.untouched:
            write_lines(self.app.stdout, "skipped:")
            _tell(self, done.untouched)
        if not fleet.alive:
            write_lines(self.app.stdout, "no conductor is alive: the work is done when one is back")
        return 0


class StackFail(_OfStack):
    """Fail a stack in progress, with its nested stacks.

    Running steps are cancelled.  The stack can be updated or deleted afterwards.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--reason", metavar="TEXT", help="shown as the stack's reason")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        stack = self.stack(session, parsed)
        fleet = fleet_of(session, manage=called(self))
        reason = parsed.reason or f"{stack.action} ended by the operator"
        with _rescue(self, session, fleet) as rescue:
            try:
                done = rescue.fail(stack, reason)
            except NothingToDo as error:
                raise AdminError(f"{error}{_instead(stack)}") from error
        now = done.stack
        ended = f"{now.action}_{now.status}: {now.reason}"
        write_lines(self.app.stdout, f"stack {now.name} ({now.id}) is {ended}")
        for step in done.running:
            until = when(fleet, step.stop_by)
            write_lines(
                self.app.stdout, f"{step.resource}: its step on {step.member} is asked to stop until {until}"
            )
        return 0


def called(command: Command) -> str:
    """Return the program's command line, for the commands that are proposed."""
    files = typing.cast(typing.Any, command.app).options.config_file or []
    return " ".join(["stoker-manage", *(f"--config-file {file}" for file in files)])


@contextmanager
def _rescue(command: Command, session: Session, fleet: ConductorFleet) -> typing.Iterator[Rescue]:
    """Connect to the message bus for a rescue; an unavailable bus delays nothing."""
    silence_libraries()
    bus = make_bus(session.conf)
    outbox = Outbox(bus)
    outbox.start()
    yield Rescue(
        database=session.database,
        hints=outbox,
        clock=session.database.clock,
        reports=lambda member: fleet.works(MemberId(member)),
        grace=fleet.grace,
    )
    if outbox.stop(SENT_WITHIN):
        bus.close()
    else:
        write_lines(
            command.app.stderr,
            "the message bus does not answer: the stacks' owners send it again when it does, see "
            f"`{fleet.manage} config validate --connect`",
        )


def _tell(command: Command, treated: typing.Sequence[RetriedTask]) -> None:
    for item in treated:
        write_lines(command.app.stdout, f"{item.path}: {item.result}")


def _instead(stack: Stack) -> str:
    """Return a hint on how to continue a failed stack."""
    return f"; to continue: {command_to_continue(stack)}" if stack.status == Status.FAILED else ""
