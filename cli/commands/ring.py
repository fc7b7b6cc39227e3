"""``stoker-manage ring``: the ring as operators see and change it.

The conductors' group knows who is alive.  The owners of shards follow from that by the same pure functions
that the conductors use.  The rest is what each has reported last, in the database.  So the commands work on
any host that reaches both.
"""

import time
import typing
from collections.abc import Sequence

from cliff.command import Command
from cliff.lister import Lister

from ...db import conductors, stacks
from ...db.conductors import ACTIVE, DRAINING
from ...engine.diagnosis.presence import Presence
from ...engine.diagnosis.ring import health, stacks_by_owner, sums
from ...ring.changes import WrongChange, changed_view
from ...ring.hashring import View, assign, plan
from ..wiring.messaging import make_bus
from .base import AdminError
from .columns import Age, Known, Share, WithFooter
from .presence import presence_of
from .sessions import Session, find_stack, session_of


def ring_of(found: Presence) -> View:
    """Return the ring.

    :raises AdminError: the group is unreachable, so the ring is unknown.
    """
    if found.group is None:
        raise AdminError(
            f"the group of conductors is unreachable: {found.unreachable}; see `config validate --connect`"
        )
    return found.ring


class RingShow(WithFooter):
    """Show each conductor's share of the ring and its stacks; with --stack, the owner of one stack."""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--stack", metavar="STACK", help="show the owner of this stack: id or name")
        parser.add_argument("--project", metavar="ID", help="the project of the stack")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        session = session_of(self)
        if parsed.stack:
            return self._stack(session, parsed)
        found = presence_of(session)
        by_shard = session.database.read(stacks.in_progress_by_shard)
        self.footer = [sums(found, sum(by_shard.values())), health(found)]
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
        stacks_of, owned = stacks_by_owner(found.ring, by_shard), found.shards()
        return columns, [self._row(found, host, owned.get(host, 0), stacks_of[host]) for host in found.hosts]

    @staticmethod
    def _row(found: Presence, host: str, owned: int, stacks_owned: int) -> tuple[object, ...]:
        """:param stacks_owned: not known where the group cannot be reached."""
        row = found.rows.get(host)
        weights = {member.host: member.weight for member in found.members}
        return (
            host,
            found.state(host),
            None if row is None else row.wanted,
            weights.get(host, 1.0 if row is None else row.weight),
            owned,
            Share(owned / found.shard_count),
            None if found.group is None else stacks_owned,
            None if row is None else row.threads_busy,
            None if row is None else row.ring_version,
            Age.of(None if row is None else row.heartbeat_at, found.now),
            Known(found.is_alive(host)),
        )

    @staticmethod
    def _stack(session: Session, parsed: typing.Any) -> typing.Any:
        stack = find_stack(session, parsed.stack, parsed.project)
        view = ring_of(presence_of(session))
        owner = assign(view).owner_of(stack.shard) if view.owners else None
        why = f"shard {stack.shard} of {view.shard_count}; ring {view.version} of {len(view.owners)} members"
        return ("Stack", "Name", "Shard", "Owner", "Why"), [(stack.id, stack.name, stack.shard, owner, why)]


class RingPlan(Lister):
    """Show which shards would move if conductors left, joined or changed their weight; changes nothing."""

    def get_parser(self, prog_name: str) -> typing.Any:
        """Return the parser with the command's arguments."""
        parser = super().get_parser(prog_name)
        for option, value, what in (
            ("--leave", "HOST", "the conductor leaves the ring"),
            ("--join", "HOST[=WEIGHT]", "the conductor joins the ring, with this weight (default: 1)"),
            ("--weight", "HOST=WEIGHT", "the conductor has this weight"),
        ):
            text = f"{what}; may be given several times"
            parser.add_argument(option, metavar=value, action="append", default=[], help=text)
        parser.add_argument("--shards", action="store_true", help="list each shard instead of counts")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        """Run the command."""
        session = session_of(self)
        old = ring_of(presence_of(session))
        if not (parsed.leave or parsed.join or parsed.weight):
            there = ", ".join(owner.host for owner in old.owners) or "nobody"
            raise AdminError(
                "nothing would change: name changes by --leave HOST, --join HOST[=WEIGHT] or "
                f"--weight HOST=WEIGHT, each as often as needed; on the ring are: {there}"
            )
        try:
            new = changed_view(old, parsed.leave, weights_of(parsed.join), weights_of(parsed.weight))
        except WrongChange as error:
            raise AdminError(str(error)) from error
        if not old.owners or not new.owners:
            raise AdminError("the ring is empty, or would be: nothing can be planned")
        moves = plan(old, new)
        if parsed.shards:
            return ("Shard", "From", "To"), [(s, a, b) for s, (a, b) in sorted(moves.moves.items())]
        return ("From", "To", "Shards"), [(a, b, count) for (a, b), count in sorted(moves.counts.items())]


def weights_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the weights that ``HOST=WEIGHT`` name; without one it is 1.

    :raises AdminError: a weight is no number.
    """
    found: dict[str, float] = {}
    for text in texts:
        host, _, value = text.partition("=")
        try:
            found[host] = float(value or 1)
        except ValueError as error:
            raise AdminError(f"the weight in {text} must be a number, as in HOST=2.5") from error
    return found


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
        before = {row.host: row.heartbeat_at for row in session.database.read(conductors.list_all)}
        while True:
            found = presence_of(session)
            reason = found.unsettled()
            late = [row.host for row in found.alive if row.heartbeat_at == before.get(row.host)]
            if reason is None and not late:
                self.app.stdout.write(f"settled: every one of {session.shard_count} shards has one owner\n")
                return 0
            if time.monotonic() > end:
                problem = reason or f"no report since from: {', '.join(late)}"
                self.app.stderr.write(f"not settled within {timeout} s: {problem}\n")
                return 1
            owned = sum(row.shards_owned for row in found.alive)
            if self.app.stdout.isatty():
                self.app.stdout.write(f"\r[{'#' * (40 * owned // session.shard_count):<40}] {owned} shards ")
                self.app.stdout.flush()
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
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command."""
        session = session_of(self)
        session.database.write(lambda conn: conductors.set_wanted(conn, parsed.host, self.wanted))
        self.app.stdout.write(f"{parsed.host} is asked to be {self.wanted}\n")
        return 0


class RingDrain(_Drain):
    """Move a conductor's slice to the others; it continues to run tasks until it is stopped."""

    wanted = DRAINING


class RingUndrain(_Drain):
    """Return a drained conductor to the ring."""

    wanted = ACTIVE
