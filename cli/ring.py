"""``stoker-manage ring`` and ``service``: what the operator sees and does of the ring.

What is shown is computed from the conductors' own reports in the database, by the same pure functions that
they use: so it is what they believe, and works from any host.
"""

import collections
import time
import typing
from collections.abc import Mapping, Sequence

from cliff.command import Command
from cliff.lister import Lister
from cliff.show import ShowOne

from ..db import conductors, stacks
from ..db.conductors import ACTIVE, DRAINING, SILENT_AFTER, STOPPED, Conductor, alive
from ..db.ids import StackId
from ..ring.hashring import Member, View, assign, plan
from .manage_base import AdminError, describe_age
from .opening import make_bus
from .sessions import Session, session_of

SILENT = "silent"


def view_of(found: Sequence[Conductor], shard_count: int, now: float) -> View:
    """The ring as the conductors that report make it."""
    members = [
        Member(c.host, c.incarnation.rpartition("/")[2], c.weight, c.state, c.started_at)
        for c in alive(found, now)
    ]
    return View.of(members, shard_count)


def unsettled(found: Sequence[Conductor], shard_count: int, now: float) -> str | None:
    """Why not every shard has exactly one owner now; None if it has."""
    living = alive(found, now)
    if not living:
        return "no conductor reports"
    versions = {c.ring_version for c in living}
    if len(versions) > 1:
        told = ", ".join(f"{c.host} at {c.ring_version or 'none'}" for c in living)
        return f"the conductors see different rings: {told}"
    owned = sum(c.shards_owned for c in living)
    if owned != shard_count:
        return f"{owned} of {shard_count} shards are owned"
    return None


def stacks_by_owner(view: View, by_shard: Mapping[int, int]) -> collections.Counter[str]:
    """How many stacks in progress each conductor looks after."""
    found: collections.Counter[str] = collections.Counter()
    if view.owners:
        assignment = assign(view)
        for shard, count in by_shard.items():
            found[assignment.owner_of(shard)] += count
    return found


class RingShow(Lister):
    """Show who owns how much of the ring, and how many stacks in progress; with --stack, who owns one stack
    and why."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--stack", metavar="ID", help="show the owner of this stack only")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        session = session_of(self)
        found = session.database.read(conductors.list_all)
        now = time.time()
        view = view_of(found, session.shard_count, now)
        if parsed.stack:
            return self._stack(session, view, parsed.stack)
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
        living = {c.host for c in alive(found, now)}
        owned = {c.host: c.shards_owned if c.host in living else 0 for c in found}
        stacks_of = stacks_by_owner(view, session.database.read(stacks.in_progress_by_shard))
        rows = [
            (
                c.host,
                c.state if c.host in living or c.state == STOPPED else SILENT,
                c.wanted,
                c.weight,
                owned[c.host],
                f"{owned[c.host] / session.shard_count:.1%}",
                stacks_of.get(c.host, 0),
                c.threads_busy,
                c.ring_version,
                describe_age(now - c.heartbeat_at),
                c.host in living,
            )
            for c in found
        ]
        return columns, rows

    @staticmethod
    def _stack(session: Session, view: View, stack_id: str) -> typing.Any:
        stack = session.database.read(lambda conn: stacks.get(conn, StackId(stack_id)))
        owner = assign(view).owner_of(stack.shard) if view.owners else None
        why = f"shard {stack.shard} of {view.shard_count}; ring {view.version} of {len(view.owners)} members"
        return ("Stack", "Name", "Shard", "Owner", "Why"), [(stack.id, stack.name, stack.shard, owner, why)]


class RingPlan(Lister):
    """Show which shards would move if members left, joined or changed their weight; nothing is changed."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--leave", metavar="HOST", action="append", default=[])
        parser.add_argument("--join", metavar="HOST[=WEIGHT]", action="append", default=[])
        parser.add_argument("--weight", metavar="HOST=WEIGHT", action="append", default=[])
        parser.add_argument("--shards", action="store_true", help="list each shard instead of counts")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        session = session_of(self)
        old = view_of(session.database.read(conductors.list_all), session.shard_count, time.time())
        new = changed_view(old, parsed.leave, parsed.join, parsed.weight)
        if not old.owners or not new.owners:
            raise AdminError("the ring is empty, or would be: nothing can be planned")
        moves = plan(old, new)
        if parsed.shards:
            return ("Shard", "From", "To"), [(s, a, b) for s, (a, b) in sorted(moves.moves.items())]
        return ("From", "To", "Shards"), [(a, b, count) for (a, b), count in sorted(moves.counts.items())]


def changed_view(old: View, leave: Sequence[str], join: Sequence[str], weight: Sequence[str]) -> View:
    """The view after the changes.

    :raises AdminError: a host is not there, or is there already, or a weight is none.
    """
    members = {member.host: member for member in old.members}
    for host in leave:
        if host not in members:
            raise AdminError(f"{host} is not on the ring; on it are: {', '.join(sorted(members)) or 'none'}")
        del members[host]
    for text in [*join, *weight]:
        host, _, value = text.partition("=")
        known = host in members
        if known != (text in weight):
            raise AdminError(f"{host} is {'already' if known else 'not'} on the ring")
        try:
            members[host] = Member(host, "planned", float(value or 1))
        except ValueError as error:
            raise AdminError(f"the weight in {text} must be a number, as in HOST=2.5") from error
    return View.of(members.values(), old.shard_count)


class RingRebalance(Command):
    """Make all conductors look at the ring and settle now."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--wait", action="store_true", help="until every shard has exactly one owner")
        parser.add_argument("--timeout", type=float, default=30.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        bus = make_bus(session.conf)
        bus.look_now()
        bus.close()
        return self._wait(session, parsed.timeout) if parsed.wait else 0

    def _wait(self, session: Session, timeout: float) -> int:
        end = time.monotonic() + timeout
        began = time.time()
        while True:
            found, now = session.database.read(conductors.list_all), time.time()
            reason = unsettled(found, session.shard_count, now)
            late = [c.host for c in alive(found, now) if c.heartbeat_at < began]
            if reason is None and not late:
                self.app.stdout.write(f"settled: every one of {session.shard_count} shards has one owner\n")
                return 0
            if time.monotonic() > end:
                told = reason or f"no report since from: {', '.join(late)}"
                self.app.stderr.write(f"not settled within {timeout} s: {told}\n")
                return 1
            owned = sum(c.shards_owned for c in alive(found, now))
            if self.app.stdout.isatty():
                self.app.stdout.write(f"\r[{'#' * (40 * owned // session.shard_count):<40}] {owned} shards ")
                self.app.stdout.flush()
            time.sleep(0.1)


class _Drain(Command):
    """Base of drain and undrain."""

    wanted = ""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        session = session_of(self)
        session.database.write(lambda conn: conductors.set_wanted(conn, parsed.host, self.wanted))
        self.app.stdout.write(f"{parsed.host} is wanted to be {self.wanted}\n")
        return 0


class RingDrain(_Drain):
    """Move a conductor's slice to the others; it works on until it is stopped."""

    wanted = DRAINING


class RingUndrain(_Drain):
    """Let a drained conductor take part again."""

    wanted = ACTIVE


class ServiceList(Lister):
    """List the conductors as they last reported."""

    def take_action(self, parsed: typing.Any) -> typing.Any:
        session = session_of(self)
        found, now = session.database.read(conductors.list_all), time.time()
        living = {c.host for c in alive(found, now)}
        columns = (
            "Host",
            "Incarnation",
            "State",
            "Status",
            "Busy",
            "Threads",
            "Written off",
            "RPC",
            "Reported",
        )
        return columns, [
            (
                c.host,
                c.incarnation,
                c.state,
                "up" if c.host in living else "down",
                c.threads_busy,
                c.threads,
                c.threads_written_off,
                c.rpc_version,
                describe_age(now - c.heartbeat_at),
            )
            for c in found
        ]


class ServiceClean(ShowOne):
    """Forget conductors that have been silent for long."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--silent", type=float, default=3600.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        if parsed.silent < SILENT_AFTER:
            raise AdminError(f"--silent must be {SILENT_AFTER:g} or more: who works reports every second")
        session = session_of(self)
        before = time.time() - parsed.silent
        count = session.database.write(lambda conn: conductors.clean(conn, before))
        return ("Forgotten",), (count,)
