"""``openstack stack timeline``: when each attempt at each resource was ready, claimed and ended."""

import argparse
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from osc_lib import exceptions as exc
from osc_lib.command import command
from rich.text import Text

from ..observe.screen import BAD, HELD, IDLE, OK, RUNNING, make_console
from ..observe.terminal import harmless, write_json
from ..shapes import Json
from .access import add_stack, client_of, find_stack, path_of
from .pages import PageTrail
from .watch import seconds_of

PAGE = 1000
MOST_EVENTS = 50_000
"""Events that are read at most."""
NAME = 24
LEAST_WIDTH = 60
PAUSED = "paused until"
"""A part of the reason of an event at a breakpoint, in Heat's words."""
STYLES = {"done": OK, "failed": BAD, "running": RUNNING, "held": HELD, "again": HELD, "ready": IDLE}
"""The style of each phase."""
GLYPHS = {"done": "█", "failed": "█", "running": "▓", "held": "▒", "again": "▒", "ready": "·"}
"""The character of each phase, which differs without colours, too."""
RANK = ("ready", "held", "again", "done", "running", "failed")
"""The order of phases: the later one of two in one character is shown."""


@dataclass(frozen=True)
class Phase:
    """A part of the time of a resource's action.

    :ivar kind: ready (and not claimed), done, failed, running, held (at a breakpoint), again (an attempt
        that was not the last one).
    :ivar begin, end: seconds since the epoch; None: the phase has not ended.
    """

    kind: str
    begin: float
    end: float | None
    action: str
    attempt: int | None
    conductor: str | None = None


class ShowTimeline(command.Command):
    """Show when each attempt at each resource was ready, claimed and ended."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument(
            "--all", action="store_true", help="Show all actions of the stack, not the last one only"
        )
        parser.add_argument(
            "-f", "--format", choices=["bars", "json"], default="bars", help="Form (default: %(default)s)"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        events = list(read_events(client, stack, parsed_args.nested_depth))
        if events and "time" not in events[0]:
            raise exc.CommandError(
                "The service reports no exact times of events: it is not Stoker, or an older release"
            )
        by_name = phases(events if parsed_args.all else last_action(events, stack.id))
        out = typing.cast(typing.Any, self.app).stdout
        if parsed_args.format == "json":
            document = {name: [asdict(phase) for phase in parts] for name, parts in by_name.items()}
            write_json(out, document)
            return
        console = make_console(out)
        for line in bars(by_name, max(LEAST_WIDTH, console.size.width)):
            console.print(line)


def read_events(client: typing.Any, stack: typing.Any, depth: int) -> Iterator[Json]:
    """Return the events of a stack and of those nested in it, page by page."""
    marker = ""
    count = 0
    trail = PageTrail()
    while count < MOST_EVENTS:
        after = f"&marker={trail.checked(marker)}" if marker else ""
        query = f"events?nested_depth={depth}&sort_dir=asc&limit={PAGE}{after}"
        page = client.http_client.get(path_of(stack, query)).json()["events"]
        yield from page
        if not page:
            return
        marker = page[-1]["id"]
        count = count + len(page)


def last_action(events: Sequence[Json], stack_id: str) -> Sequence[Json]:
    """Return the events since the stack's last action began."""
    starts = [
        number
        for number, event in enumerate(events)
        if event["physical_resource_id"] == stack_id and event["resource_status"].endswith("IN_PROGRESS")
    ]
    return events[starts[-1] :] if starts else events


def phases(events: Sequence[Json]) -> dict[str, list[Phase]]:
    """Return the phases of each resource, by its name; those of stacks themselves are left out."""
    by_name: dict[str, list[Phase]] = {}
    own_stack = {event["physical_resource_id"] for event in events if _is_of_stack(event)}
    for event in events:
        if _is_of_stack(event) and event["physical_resource_id"] in own_stack:
            continue
        name = event["resource_name"]
        if event.get("stack_name") != events[0].get("stack_name"):
            name = f"{event['stack_name']}/{name}"
        _add(by_name.setdefault(name, []), event)
    return {name: parts for name, parts in by_name.items() if parts}


def _is_of_stack(event: Json) -> bool:
    return bool(event["resource_name"] == event.get("stack_name") and event["attempt"] is None)


def _add(parts: list[Phase], event: Json) -> None:
    """End and begin phases of a resource by one of its events."""
    at = seconds_of(event["time"])
    open_one = parts.pop() if parts and parts[-1].end is None else None
    if open_one is not None and open_one.kind == "held":
        parts.append(replace(open_one, end=at))
        open_one = None
    if event["attempt"] is not None:
        parts += _of_attempt(open_one, event, at)
    elif open_one is not None:
        parts.append(open_one)
    elif PAUSED in event["resource_status_reason"]:
        parts.append(Phase("held", at, None, event["resource_status"].partition("_")[0], None))


def _of_attempt(before: Phase | None, event: Json, at: float) -> Iterator[Phase]:
    """Return the phases that the event of an attempt ends and begins.

    :param before: the phase that was running.
    """
    action, _, status = event["resource_status"].partition("_")
    claimed = seconds_of(event["claimed_time"] or event["time"])
    attempt = event["attempt"]
    conductor = event.get("conductor")
    if status == "IN_PROGRESS":
        if event["ready_time"]:
            yield Phase("ready", seconds_of(event["ready_time"]), claimed, action, attempt)
        yield Phase("running", claimed, None, action, attempt, conductor)
        return
    begin = claimed
    if before is not None and before.attempt == attempt:
        begin = before.begin
    elif before is not None:
        yield replace(before, kind="again", end=claimed)
    yield Phase("failed" if status == "FAILED" else "done", begin, at, action, attempt, conductor)


def bars(by_name: Mapping[str, Sequence[Phase]], width: int) -> Iterator[Text]:
    """Return the lines of a timeline: an axis of seconds, then a bar for each resource.

    :param width: the characters of a line.
    """
    every = [phase for parts in by_name.values() for phase in parts]
    if not every:
        yield Text("nothing has happened yet")
        return
    first = min(phase.begin for phase in every)
    last = max(phase.begin if phase.end is None else phase.end for phase in every)
    span = max(last - first, 0.001)
    room = width - NAME - 12
    end = f"{span:.1f} s"
    yield Text(f"{'':{NAME}} 0 s{end:>{room - 3}}", IDLE)
    for name, parts in by_name.items():
        label = harmless(name)
        # The resource's own name comes last, and tells members of one nested stack apart.
        label = label if len(label) <= NAME else f"…{label[1 - NAME :]}"
        line = Text(f"{label:<{NAME}} ")
        cells = [""] * room
        for phase in parts:
            begin = int((phase.begin - first) / span * (room - 1))
            stop = last if phase.end is None else phase.end
            for cell in range(begin, int((stop - first) / span * (room - 1)) + 1):
                if not cells[cell] or RANK.index(phase.kind) > RANK.index(cells[cell]):
                    cells[cell] = phase.kind
        for kind in cells:
            line.append(GLYPHS.get(kind, " "), STYLES.get(kind))
        worked = sum((last if p.end is None else p.end) - p.begin for p in parts if p.kind != "ready")
        yield line.append(f" {worked:8.2f} s")
    yield Text("█ done or failed  ▓ running  ▒ held, or an earlier attempt  · ready, not claimed", IDLE)
