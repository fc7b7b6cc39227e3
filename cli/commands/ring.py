"""``stoker-manage ring``: the ring as operators see and change it.

The conductors' group knows who is alive.  The owners of shards follow from that by the same pure functions
that the conductors use.  The rest is the last report of each, in the database.  So the commands work on
any host that reaches both, and on any other over the API.
"""

import contextlib
import time
import typing
from collections.abc import Sequence

from cliff.command import Command
from rich.console import RenderableType
from rich.live import Live

from ...db.conductors import ACTIVE, DRAINING, REASON_LENGTH
from ...observe.instants import instant
from ...observe.screen import make_console
from ...observe.terminal import write_lines
from ...shapes import JsonMap
from .base import AdminError
from .columns import Age, Known, LastRequest, OutOf, Share, WithFooter
from .installation import Installation, installation_of
from .progress import ProgressLine
from .ring_screen import ring_screen

WATCH_EVERY = 0.5
"""Seconds between two draws; reading who is alive takes up to some more."""
LOOK_EVERY = 0.2
"""Seconds between two reads of what a command waits for."""


class RingShow(WithFooter):
    """Show each conductor's share of the ring and its stacks; with --stack, the owner of one stack."""

    _screen: RenderableType | None = None

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--stack", metavar="STACK", help="show the owner of this stack: id or name")
        parser.add_argument("--project", metavar="ID", help="the project of the stack")
        parser.add_argument("--watch", action="store_true", help="draw it in place, until Ctrl-C")
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        installation = installation_of(self)
        if parsed.watch:
            self._watch(installation)
        if parsed.stack:
            owner = installation.owner_of(parsed.stack, parsed.project)
            return ("Stack", "Name", "Shard", "Owner", "Why"), [owner]
        ring = installation.ring()
        self.footer = [ring["sums"], ring["health"]]
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
            "Request",
        )
        self._screen = ring_screen(ring)
        now = instant(ring["time"])
        return columns, [self._row(conductor, now) for conductor in ring["conductors"]]

    def produce_output(self, parsed: typing.Any, column_names: typing.Any, data: typing.Any) -> int:
        """Print the list; on a terminal, its table with marks and bars."""
        console = make_console(self.app.stdout)
        if self._screen is None or parsed.formatter != "table" or parsed.columns or not console.is_terminal:
            return super().produce_output(parsed, column_names, data)
        console.print(self._screen)
        return 0

    def _watch(self, installation: Installation) -> typing.NoReturn:
        """Draw the ring until Ctrl-C.

        :raises AdminError: there is no terminal.
        """
        console = make_console(self.app.stdout)
        if not console.is_terminal:
            raise AdminError("--watch needs a terminal; `ring show -f json` is for programs")
        with contextlib.suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(ring_screen(installation.ring()), refresh=True)
                time.sleep(WATCH_EVERY)
        raise SystemExit(0)

    @staticmethod
    def _row(conductor: JsonMap, now: float) -> tuple[object, ...]:
        return (
            conductor["host"],
            conductor["state"],
            conductor["wanted"],
            conductor["weight"],
            conductor["shards"],
            Share(conductor["share"]),
            conductor["stacks_in_progress"],
            OutOf((conductor["threads_busy"], conductor["threads"])),
            conductor["ring_version"],
            Age.of(instant(conductor["reported_time"]), now),
            Known(conductor["alive"]),
            LastRequest.of(conductor, now),
        )


class RingPlan(WithFooter):
    """Show which shards would move if conductors left, joined or changed their weight; changes nothing."""

    def get_parser(self, prog_name: str) -> typing.Any:
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
        installation = installation_of(self)
        if not (parsed.leave or parsed.join or parsed.weight):
            places = installation.ring()["conductors"]
            hosts = ", ".join(conductor["host"] for conductor in places if conductor["shards"]) or "nobody"
            raise AdminError(
                "nothing would change: name changes by --leave HOST, --join HOST[=WEIGHT] or "
                f"--weight HOST=WEIGHT, each as often as needed; on the ring are: {hosts}"
            )
        weights = {"join": weights_of(parsed.join), "weight": weights_of(parsed.weight)}
        plan = installation.plan({"leave": parsed.leave, **weights}, shards=parsed.shards)
        self.footer = [plan["summary"], *(f"warning: {text}" for text in plan["warnings"])]
        if parsed.shards:
            former = plan["former_owners"]
            return ("Shard", "From", "To"), [(int(s), former[s], host) for s, host in plan["shards"].items()]
        return ("From", "To", "Shards"), [(m["from"], m["to"], m["shards"]) for m in plan["moves"]]


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
        parser = super().get_parser(prog_name)
        parser.add_argument("--wait", action="store_true", help="until every shard has exactly one owner")
        parser.add_argument("--timeout", type=float, default=30.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        installation = installation_of(self)
        before = {
            conductor["host"]: conductor["reported_time"] for conductor in installation.ring()["conductors"]
        }
        installation.poll_ring()
        return self._wait(installation, before, parsed.timeout) if parsed.wait else 0

    def _wait(self, installation: Installation, before: JsonMap, timeout: float) -> int:
        """Wait until the ring is settled; return the exit code.

        :param before: the instant of each conductor's report before the request, by host.
        :param timeout: seconds.
        """
        end = time.monotonic() + timeout
        line = ProgressLine(self.app.stderr)
        while True:
            ring = installation.ring()
            alive = [conductor for conductor in ring["conductors"] if conductor["alive"]]
            late = [p["host"] for p in alive if p["reported_time"] == before.get(p["host"])]
            if ring["settled"] and not late:
                line.clear()
                shards = f"every one of {ring['shard_count']} shards has one owner"
                write_lines(self.app.stdout, f"settled: {shards}")
                return 0
            if time.monotonic() > end:
                line.clear()
                silent = f"no report since from: {', '.join(late)}"
                problem = silent if ring["settled"] else ring["health"].removeprefix("not settled: ")
                write_lines(self.app.stderr, f"not settled within {timeout} s: {problem}")
                return 1
            owned = sum(conductor["shards_reported"] or 0 for conductor in alive)
            agreed = sum(conductor["ring_version"] == ring["version"] for conductor in alive)
            line.show(
                f"rebalance: {agreed} of {len(alive)} conductors agree, "
                f"{owned} of {ring['shard_count']} shards are owned"
            )
            time.sleep(LOOK_EVERY)


class _Drain(Command):
    """Base of drain and undrain.

    :cvar wanted: the state to ask for, a stored value.
    """

    wanted = ""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST")
        parser.add_argument("--wait", action="store_true", help="until the shards have moved")
        parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: %(default)s)")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        reason = checked_reason(getattr(parsed, "reason", None) or "")
        installation = installation_of(self)
        before = installation.report(parsed.host)
        installation.request_state(parsed.host, self.wanted, reason)
        write_lines(self.app.stdout, f"{parsed.host} is asked to be {self.wanted}")
        return self._wait(installation, before, parsed) if parsed.wait and before is not None else 0

    def _wait(self, installation: Installation, before: JsonMap, parsed: typing.Any) -> int:
        end = time.monotonic() + parsed.timeout
        line = ProgressLine(self.app.stderr)
        report = before
        while time.monotonic() < end:
            report = installation.report(parsed.host) or before
            is_new = report["reported_time"] != before["reported_time"]
            if report["state_reported"] == self.wanted and is_new and self.is_done(report):
                line.clear()
                write_lines(
                    self.app.stdout,
                    f"{parsed.host} is {self.wanted}: it owns {report['shards_reported']} shards; "
                    f"steps that run there: {report['threads_busy']}",
                )
                return 0
            line.show(self.progress(parsed.host, before, report))
            time.sleep(LOOK_EVERY)
        line.clear()
        progress = self.progress(parsed.host, before, report)
        write_lines(self.app.stderr, f"not done within {parsed.timeout} s: {progress}")
        return 1

    def is_done(self, report: JsonMap) -> bool:
        """Return whether the shards of a conductor have moved.

        :param report: the view of its last report.
        """
        raise NotImplementedError

    def progress(self, host: str, before: JsonMap, report: JsonMap) -> str:
        """Return how far the command is.

        :param before: the view of the conductor's report at the beginning.
        :param report: the view of its last report.
        """
        raise NotImplementedError


class RingDrain(_Drain):
    """Move a conductor's slice to the others; it continues to run tasks until it is stopped."""

    wanted = DRAINING

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--reason", metavar="TEXT", help="reason, which `ring show`, the console and the log show"
        )
        return parser

    def is_done(self, report: JsonMap) -> bool:
        return bool(report["shards_reported"] == 0)

    def progress(self, host: str, before: JsonMap, report: JsonMap) -> str:
        owned = report["shards_reported"]
        shards = f"{owned} of {max(before['shards_reported'], owned)} shards left"
        return f"drain {host}: {shards}, {report['threads_busy']} steps running"


class RingUndrain(_Drain):
    """Return a drained conductor to the ring."""

    wanted = ACTIVE

    def is_done(self, report: JsonMap) -> bool:
        return bool(report["shards_reported"] > 0)

    def progress(self, host: str, before: JsonMap, report: JsonMap) -> str:
        return f"undrain {host}: {report['shards_reported']} shards owned"


def checked_reason(text: str) -> str:
    """Return the reason of a request.

    :raises AdminError: the text is too long, or has control characters.
    """
    if len(text) > REASON_LENGTH or not text.isprintable():
        raise AdminError(f"--reason must be one line of at most {REASON_LENGTH} printable characters")
    return text
