"""``openstack stack watch``: a stack in progress, in place on a terminal and line by line elsewhere."""

import argparse
import datetime
import shlex
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

from osc_lib import exceptions as exc
from osc_lib.command import command
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ..observe.screen import BAD, IDLE, OK, RUNNING, make_console
from ..observe.terminal import harmless, write_lines
from ..shapes import Json
from .access import add_stack, client_of, find_stack, graph_of
from .graph import style_of

MARKS = {"COMPLETE": "✓", "FAILED": "✗", "IN_PROGRESS": "●"}
WAITING = "·"
AT_BREAKPOINT = "‖"
NAME = 40
"""Characters of a name that are shown in a line."""


class WatchStack(command.Command):
    """Watch a stack until its action ends; exit code 0: it is complete, 1: it failed, 130: Ctrl-C.

    At a breakpoint it names the held resources and the command to continue, and watches further
    unless it was asked to end.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add_stack(parser)
        parser.add_argument(
            "--interval",
            metavar="<seconds>",
            type=float,
            default=1.0,
            help="Seconds between two reads (default: %(default)s)",
        )
        parser.add_argument(
            "--lines",
            action="store_true",
            help="Print a line for each change on a terminal, too, for screen readers and recordings",
        )
        parser.add_argument(
            "--until-breakpoint",
            action="store_true",
            help="Exit with code 0, too, when only breakpoints hold the stack",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        try:
            return self._watch(parsed_args)
        except KeyboardInterrupt:
            stdout = typing.cast(typing.Any, self.app).stdout
            write_lines(stdout, "", f"Stack {parsed_args.stack} continues; only the watch has ended.")
            return INTERRUPTED

    def _watch(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.interval < MIN_INTERVAL:
            raise exc.CommandError(f"--interval must be {MIN_INTERVAL} or more, not {parsed_args.interval}")
        client = client_of(self)
        stack = find_stack(client, parsed_args.stack)
        read = _reader(client, stack, parsed_args.nested_depth)
        console = make_console(typing.cast(typing.Any, self.app).stdout)
        held = _held_reader(client, parsed_args.stack, stack.id)
        ends = held if parsed_args.until_breakpoint else None
        if parsed_args.lines or not console.is_terminal:
            return watch(read, PlainLines(console, held).show, parsed_args.interval, ends=ends)
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

            def show(graph: Json) -> None:
                live.update(Group(*screen(graph, time.time(), console.size.height)), refresh=True)

            code = watch(read, show, parsed_args.interval, ends=ends)
        if line := held(read()):
            console.print(line)
        return code


INTERRUPTED = 130
"""Exit code after Ctrl-C, as that of shells."""
MIN_INTERVAL = 0.2
"""Seconds between two reads at least."""


def _reader(client: typing.Any, stack: typing.Any, depth: int) -> Callable[[], Json]:
    """Return a function that returns the present graph, which is sent only where it has changed."""
    last: list[Json] = []

    def read() -> Json:
        graph = graph_of(client, stack, depth, last[0]["change"] if last else "")
        if graph is not None:
            last[:] = [graph]
        return last[0]

    return read


def _held_reader(client: typing.Any, typed: str, stack_id: str) -> Callable[[Json], str]:
    """Return a function that returns a line on the held resources; "": breakpoints do not hold all.

    :param typed: the stack's name or id, as the user has typed it.
    """
    last: list[tuple[str, str]] = []

    def held(graph: Json) -> str:
        if not is_paused(graph):
            return ""
        if not last or last[0][0] != graph["change"]:
            # The graph may be a second old, and the stack may have been continued since.
            breakpoints = find_stack(client, stack_id).to_dict().get("breakpoints") or []
            last[:] = [(graph["change"], held_line(breakpoints, typed) if breakpoints else "")]
        return last[0][1]

    return held


def watch(
    read: Callable[[], Json],
    show: Callable[[Json], object],
    interval: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    ends: Callable[[Json], object] | None = None,
) -> int:
    """Show a graph until its stack is not in progress; return the exit code.

    :param interval: the seconds between two reads.
    :param ends: a function that returns a true value for a graph at which it ends earlier, with 0.
    """
    while True:
        graph = read()
        show(graph)
        state: str = graph["stack"]["state"]
        if not state.endswith("IN_PROGRESS"):
            return 1 if state.endswith("FAILED") else 0
        if ends is not None and ends(graph):
            return 0
        sleep(interval)


def is_paused(graph: Json) -> bool:
    """Return whether breakpoints hold all that is left to do in a stack."""
    stack = graph["stack"]
    items = graph["resources"]
    if not stack["state"].endswith("IN_PROGRESS"):
        return False
    if stack["seconds_left"] is not None:
        return True
    # The deadline of this stack counts meanwhile, so only the resources say it.
    stacks = {item["id"] for item in graph["nested_stacks"]}
    states = {item["task"]["state"] for item in items if item["task"] and item["nested"] not in stacks}
    return states == {"held"}


MOST_NAMED = 10
"""Held resources that a line names."""


def held_line(breakpoints: Sequence[Json], stack: str) -> str:
    """Return the held resources with their breakpoints, and the command that resumes them.

    :param breakpoints: the breakpoints of the stack and its nested stacks, as ``stack show`` has them.
    :param stack: the stack's name or id, as the user has typed it.
    """
    named = [
        f"{harmless(item['resource_path'], REASON)} ({item['hook']})" for item in breakpoints[:MOST_NAMED]
    ]
    if len(breakpoints) > MOST_NAMED:
        named.append(f"{len(breakpoints) - MOST_NAMED} more")
    return f"held at breakpoints: {', '.join(named)}; openstack stack continue {shlex.quote(stack)}"


def screen(graph: Json, now: float, height: int) -> Iterator[Text]:
    """Return the lines of a terminal: resources in progress come first where there is no room for all.

    :param now: seconds since the epoch.
    :param height: the number of lines that there is room for.
    """
    items: Sequence[Json] = graph["resources"]
    yield _fitting(headline(graph, now))
    rows = list(_rows(graph))
    room = max(1, height - 2)
    if len(rows) > room:
        moving = [row for row in rows if style_of(row[1]) not in (OK, IDLE)]
        rows = (moving or rows)[: room - 1]
    predecessors_of = predecessors(graph)
    for depth, item in rows:
        yield _fitting(_line(depth, item, predecessors_of, now))
    if len(rows) < len(items):
        yield Text(f"… and {len(items) - len(rows)} more", IDLE)


def _fitting(line: Text) -> Text:
    """Return a line that is cut at the end of the terminal's."""
    line.no_wrap = True
    line.overflow = "ellipsis"
    return line


def headline(graph: Json, now: float) -> Text:
    """Return the line on the stack itself: its state, how much is done, and since when."""
    stack = graph["stack"]
    items = graph["resources"]
    done = sum(style_of(item) == OK for item in items)
    state: str = stack["state"]
    style = BAD if state.endswith("FAILED") else OK if state.endswith("COMPLETE") else RUNNING
    text = Text.assemble(
        (harmless(stack["name"], NAME), "bold"), "  ", (state, style), f"  {done}/{len(items)}"
    )
    if stack["seconds_left"] is not None:
        text.append(f"  paused at breakpoints: openstack stack continue {stack['id']}", HELD_STYLE)
    elif state.endswith("IN_PROGRESS") and stack["deadline"]:
        text.append(f"  times out in {_seconds(seconds_of(stack['deadline']) - now)}", IDLE)
    if state.endswith("FAILED"):
        text.append(f"  {harmless(stack['reason'], REASON)}", BAD)
    return text


HELD_STYLE = "yellow"
REASON = 200


def _rows(graph: Json) -> Iterator[tuple[int, Json]]:
    """Return depth and resource of each line: those of a nested stack below its resource."""
    inside: dict[str, list[Json]] = {}
    for item in graph["resources"]:
        inside.setdefault(item["stack"], []).append(item)
    waiting = [(0, item) for item in reversed(inside.get(graph["stack"]["id"], []))]
    while waiting:
        depth, item = waiting.pop()
        yield depth, item
        waiting += [(depth + 1, one) for one in reversed(inside.get(item["nested"] or "", []))]


def _path(item: Json, holders: Mapping[str, Json]) -> str:
    """Return the names from the resource of the stack down to this one, such as ``web/0``.

    :param holders: resources by the ids of their nested stacks.
    """
    names = [item["name"]]
    while item["stack"] in holders:
        item = holders[item["stack"]]
        names.append(item["name"])
    return "/".join(reversed(names))


def predecessors(graph: Json) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of the unfinished resources that each needs, by stack and name."""
    names: dict[tuple[str, str], list[str]] = {}
    for item in graph["resources"]:
        if style_of(item) != OK:
            for name in item["required_by"]:
                names.setdefault((item["stack"], name), []).append(item["name"])
    return names


def note_of(item: Json, predecessors_of: Mapping[tuple[str, str], list[str]]) -> str:
    """Return the cause of a resource's wait or failure; "": nothing is to be said."""
    task = item["task"]
    if item["breakpoint"]:
        return f"held at {item['breakpoint']}"
    if item["state"].endswith("FAILED"):
        return harmless(item["reason"], REASON)
    if task is None:
        needs = predecessors_of.get((item["stack"], item["name"]), [])
        waits = ", ".join(harmless(name, NAME) for name in needs[:3])
        return f"waits for {waits}{' and others' if len(needs) > 3 else ''}" if needs else ""
    parts = {"parked": f"waits for a {task['waits_for']}", "ready": "waits for a conductor"}
    notes = [parts.get(task["state"], "")]
    if task["attempt"] > 1:
        notes.append(f"attempt {task['attempt']}")
    if task.get("conductor"):
        notes.append(f"on {harmless(task['conductor'], NAME)}")
    return ", ".join(part for part in notes if part)


def _line(depth: int, item: Json, predecessors_of: Mapping[tuple[str, str], list[str]], now: float) -> Text:
    style = style_of(item)
    if item["breakpoint"]:
        mark = AT_BREAKPOINT
    else:
        mark = WAITING if style == IDLE else MARKS.get(item["state"].partition("_")[2], WAITING)
    name = f"{'  ' * depth}{mark} {harmless(item['name'], NAME)}"
    text = Text.assemble((f"{name:<28}", style), "  ", (f"{item['state']:<20}", style))
    if item["task"] is not None and item["task"]["since"] and style != OK:
        text.append(f"  {_seconds(now - seconds_of(item['task']['since'])):>6}")
    if note := note_of(item, predecessors_of if style != OK else {}):
        text.append(f"  {note}", IDLE if style == IDLE else style)
    return text


def seconds_of(moment: str) -> float:
    """Return an instant of the API as seconds since the epoch."""
    return datetime.datetime.fromisoformat(moment).timestamp()


def _seconds(span: float) -> str:
    span = max(0.0, span)
    return f"{span:.0f} s" if span < 600 else f"{span / 60:.0f} min"


class PlainLines:
    """Writes to a stream that is no terminal: one line for each change of a state."""

    def __init__(self, console: Console, held: Callable[[Json], str]) -> None:
        """Write to a console.

        :param held: a function that returns the line on held resources of a graph; "": there is none.
        """
        self._console = console
        self._held = held
        self._seen: dict[object, str] = {}

    def show(self, graph: Json) -> None:
        """Write the changes since the graph before."""
        for line in self.changed(graph):
            self._console.print(f"{time.strftime('%H:%M:%S')} {line}")

    def changed(self, graph: Json) -> Iterator[str]:
        """Return the lines for the changes since the graph before."""
        predecessors_of = predecessors(graph)
        holders = {item["nested"]: item for item in graph["resources"] if item["nested"]}
        for item in graph["resources"]:
            # Who waits for others is not worth a line before it starts.
            note = (
                ""
                if item["state"].startswith("INIT") and not item["task"]
                else note_of(item, predecessors_of)
            )
            line = f"{harmless(_path(item, holders))} {item['state']}{f' ({note})' if note else ''}"
            if style_of(item) != IDLE and self._seen.get(item["id"]) != line:
                self._seen[item["id"]] = line
                yield line
        stack = graph["stack"]
        line = f"stack {harmless(stack['name'])} {stack['state']}: {harmless(stack['reason'], REASON)}"
        if self._seen.get("stack") != line:
            self._seen["stack"] = line
            yield line
        line = self._held(graph)
        if self._seen.get("held", "") != line:
            self._seen["held"] = line
            if line:
                yield line
