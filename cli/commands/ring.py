"""``stoker-manage ring``: the ring as operators see and change it.

The conductors' group knows who is alive.  The owners of shards follow from that by the same pure functions
that the conductors use.  The rest is the last report of each, in the database.  So the commands work on
any host that reaches both.
"""

import contextlib
import time
import typing
from collections.abc import Sequence

from cliff.command import Command
from rich.console import RenderableType
from rich.live import Live

from ...db import conductors, stacks
from ...db.conductors import ACTIVE, DRAINING, ConductorRecord
from ...engine.diagnosis.presence import Presence
from ...engine.diagnosis.ring import health, ring_plan, stacks_by_owner, sums
from ...observe.terminal import make_console
from ...ring.changes import WrongChange, changed_view
from ...ring.hashring import View, assign
from ..wiring.messaging import make_bus
from .base import AdminError
from .columns import Age, Known, OutOf, Share, WithFooter
from .presence import presence_of
from .progress import ProgressLine
from .ring_screen import ring_screen
from .sessions import Session, find_stack, session_of

WATCH_EVERY = 0.5
"""Seconds between two draws; reading who is alive takes up to some more."""


def ring_of(presence: Presence) -> View:
    """Return the ring.

    :raises AdminError: the group is unreachable, so the ring is unknown.
    """
    if presence.group is None:
        raise AdminError(
            f"the group of conductors is unreachable: {presence.unreachable}; see `config validate --connect`"
        )
    return presence.ring


class RingShow(WithFooter):
    """Show each conductor's share of the ring and its stacks; with --stack, the owner of one stack."""

    _screen: RenderableType | None = None

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--stack", metavar="STACK", help="show the owner of this stack: id or name")
        parser.add_argument("--project", metavar="ID", help="the project of the stack")
        parser.add_argument("--watch", action="store_true", help="draw it in place, until Ctrl-C")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        session = session_of(self)
        if parsed.watch:
            self._watch(session)
        if parsed.stack:
            return self._stack(session, parsed)
        presence = presence_of(session)
        by_shard = session.database.read(stacks.in_progress_by_shard)
        self.footer = [sums(presence, sum(by_shard.values())), health(presence)]
        columns = (
            "Host",
            "State",
            "Wanted",
            "Weight",
            "Shards",
            "Share",
            "Stacks",
            "Busy",
            "Ring",
            "Reported",
            "Alive",
        )
        self._screen = ring_screen(presence, by_shard)
        stacks_of = stacks_by_owner(presence.ring, by_shard)
        owned = presence.shards()
        return columns, [
            self._row(presence, host, owned.get(host, 0), stacks_of[host]) for host in presence.hosts
        ]

    def produce_output(self, parsed: typing.Any, column_names: typing.Any, data: typing.Any) -> int:
        """Print the list; on a terminal, its table with marks and bars."""
        console = make_console(self.app.stdout)
        if self._screen is None or parsed.formatter != "table" or parsed.columns or not console.is_terminal:
            return super().produce_output(parsed, column_names, data)
        console.print(self._screen)
        return 0

    def _watch(self, session: Session) -> typing.NoReturn:
        """Draw the ring until Ctrl-C.

        :raises AdminError: there is no terminal.
        """
        console = make_console(self.app.stdout)
        if not console.is_terminal:
            raise AdminError("--watch needs a terminal; `ring show -f json` is for programs")
        with contextlib.suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
            while True:
                presence = presence_of(session)
                by_shard = session.database.read(stacks.in_progress_by_shard)
                live.update(ring_screen(presence, by_shard), refresh=True)
                time.sleep(WATCH_EVERY)
        raise SystemExit(0)

    @staticmethod
    def _row(presence: Presence, host: str, owned: int, stacks_owned: int) -> tuple[object, ...]:
        """:param stacks_owned: the conductor's stacks, not shown where the group cannot be reached."""
        row = presence.rows.get(host)
        weights = {member.host: member.weight for member in presence.members}
        return (
            host,
            presence.state(host),
            None if row is None else row.wanted,
            weights.get(host, 1.0 if row is None else row.weight),
            owned,
            Share(owned / presence.shard_count),
            None if presence.group is None else stacks_owned,
            OutOf((None, None) if row is None else (row.threads_busy, row.threads)),
            None if row is None else row.ring_version,
            Age.of(None if row is None else row.heartbeat_at, presence.now),
            Known(presence.is_alive(host)),
        )

    @staticmethod
    def _stack(session: Session, parsed: typing.Any) -> typing.Any:
        stack = find_stack(session, parsed.stack, parsed.project)
        view = ring_of(presence_of(session))
        owner = assign(view).owner_of(stack.shard) if view.owners else None
        why = f"shard {stack.shard} of {view.shard_count}; ring {view.version} of {len(view.owners)} members"
        return ("Stack", "Name", "Shard", "Owner", "Why"), [(stack.id, stack.name, stack.shard, owner, why)]


class RingPlan(WithFooter):
    """Show which shards would move if conductors left, joined or changed their weight; changes nothing."""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        for option, value, effect in (
            ("--leave", "HOST", "the conductor leaves the ring"),
            ("--join", "HOST[=WEIGHT]", "the conductor joins the ring, with this weight (default: 1)"),
            ("--weight", "HOST=WEIGHT", "the conductor has this weight"),
        ):
            text = f"{effect}; may be given several times"
            parser.add_argument(option, metavar=value, action="append", default=[], help=text)
        parser.add_argument("--shards", action="store_true", help="list each shard instead of counts")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        session = session_of(self)
        old = ring_of(presence_of(session))
        if not (parsed.leave or parsed.join or parsed.weight):
            hosts = ", ".join(owner.host for owner in old.owners) or "nobody"
            raise AdminError(
                "nothing would change: name changes by --leave HOST, --join HOST[=WEIGHT] or "
                f"--weight HOST=WEIGHT, each as often as needed; on the ring are: {hosts}"
            )
        try:
            new = changed_view(old, parsed.leave, weights_of(parsed.join), weights_of(parsed.weight))
        except WrongChange as error:
            raise AdminError(str(error)) from error
        if not old.owners or not new.owners:
            raise AdminError("the ring is empty, or would be: nothing can be planned")
        change = ring_plan(old, new, session.database.read(stacks.in_progress_by_shard))
        self.footer = [change.summary(), *(f"warning: {text}" for text in change.warnings())]
        moves = change.moves
        if parsed.shards:
            return ("Shard", "From", "To"), [(s, a, b) for s, (a, b) in sorted(moves.moves.items())]
        return ("From", "To", "Shards"), [(a, b, count) for (a, b), count in sorted(moves.counts.items())]


def weights_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the weights that ``HOST=WEIGHT`` name; without one it is 1.

    :raises AdminError: a weight is no number.
    """
    weights: dict[str, float] = {}
    for text in texts:
        host, _, value = text.partition("=")
        try:
            weights[host] = float(value or 1)
        except ValueError as error:
            raise AdminError(f"the weight in {text} must be a number, as in HOST=2.5") from error
    return weights


class RingRebalance(Command):
    """Make all conductors read the ring and settle now."""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--wait", action="store_true", help="until every shard has exactly one owner")
        parser.add_argument("--timeout", type=float, default=30.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command."""
        session = session_of(self)
        bus = make_bus(session.conf)
        bus.poll_now()
        bus.close()
        return self._wait(session, parsed.timeout) if parsed.wait else 0

    def _wait(self, session: Session, timeout: float) -> int:
        end = time.monotonic() + timeout
        line = ProgressLine(self.app.stderr)
        before = {row.host: row.heartbeat_at for row in session.database.read(conductors.list_all)}
        while True:
            presence = presence_of(session)
            reason = presence.unsettled()
            late = [row.host for row in presence.alive if row.heartbeat_at == before.get(row.host)]
            if reason is None and not late:
                line.clear()
                self.app.stdout.write(f"settled: every one of {session.shard_count} shards has one owner\n")
                return 0
            if time.monotonic() > end:
                line.clear()
                problem = reason or f"no report since from: {', '.join(late)}"
                self.app.stderr.write(f"not settled within {timeout} s: {problem}\n")
                return 1
            owned = sum(row.shards_owned for row in presence.alive)
            agreed = sum(row.ring_version == presence.ring.version for row in presence.alive)
            line.show(
                f"rebalance: {agreed} of {len(presence.alive)} conductors agree, "
                f"{owned} of {session.shard_count} shards are owned"
            )
            time.sleep(0.1)


class _Drain(Command):
    """Base of drain and undrain.

    :cvar wanted: the state to ask for, a stored value.
    """

    wanted = ""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST")
        parser.add_argument("--wait", action="store_true", help="until the shards have moved")
        parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command."""
        session = session_of(self)
        before = self._report(session, parsed.host)
        session.database.write(lambda conn: conductors.set_wanted(conn, parsed.host, self.wanted))
        self.app.stdout.write(f"{parsed.host} is asked to be {self.wanted}\n")
        return self._wait(session, before, parsed) if parsed.wait and before is not None else 0

    def _report(self, session: Session, host: str) -> ConductorRecord | None:
        rows = session.database.read(conductors.list_all)
        return next((row for row in rows if row.host == host), None)

    def _wait(self, session: Session, before: ConductorRecord, parsed: typing.Any) -> int:
        end = time.monotonic() + parsed.timeout
        line = ProgressLine(self.app.stderr)
        while time.monotonic() < end:
            row = self._report(session, parsed.host) or before
            if row.state == self.wanted and row.heartbeat_at != before.heartbeat_at and self.is_done(row):
                line.clear()
                self.app.stdout.write(
                    f"{row.host} is {row.state}: it owns {row.shards_owned} shards; "
                    f"steps that run there: {row.threads_busy}\n"
                )
                return 0
            line.show(self.progress(before, row))
            time.sleep(0.1)
        line.clear()
        self.app.stderr.write(f"not done within {parsed.timeout} s: {self.progress(before, row)}\n")
        return 1

    def is_done(self, row: ConductorRecord) -> bool:
        """Return whether the shards of a conductor have moved."""
        raise NotImplementedError

    def progress(self, before: ConductorRecord, row: ConductorRecord) -> str:
        """Return how far the command is.

        :param before: the conductor's report at the beginning; row: its last one.
        """
        raise NotImplementedError


class RingDrain(_Drain):
    """Move a conductor's slice to the others; it continues to run tasks until it is stopped."""

    wanted = DRAINING

    def is_done(self, row: ConductorRecord) -> bool:
        """Return whether the conductor owns nothing any more."""
        return row.shards_owned == 0

    def progress(self, before: ConductorRecord, row: ConductorRecord) -> str:
        """Return how many shards are left."""
        shards = f"{row.shards_owned} of {max(before.shards_owned, row.shards_owned)} shards left"
        return f"drain {row.host}: {shards}, {row.threads_busy} steps running"


class RingUndrain(_Drain):
    """Return a drained conductor to the ring."""

    wanted = ACTIVE

    def is_done(self, row: ConductorRecord) -> bool:
        """Return whether the conductor owns shards again."""
        return row.shards_owned > 0

    def progress(self, before: ConductorRecord, row: ConductorRecord) -> str:
        """Return how many shards it owns."""
        return f"undrain {row.host}: {row.shards_owned} shards owned"
