"""The ring on a terminal: a table with marks and bars, the sums, and the health."""

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from ...db.conductors import ACTIVE, DRAINING, STOPPED
from ...observe.instants import describe_age, instant
from ...observe.screen import BAD, HELD, IDLE, OK, bar
from ...observe.terminal import harmless
from ...shapes import JsonMap
from .columns import LastRequest

WIDTH = 20
"""Characters of a bar."""


COLUMNS = ("", "Host", "State", "Weight", "Shards", "Share", "", "Stacks", "Busy", "Ring", "Reported")
BAR = 5
SPARED = (9, BAR, 3, 10, 7)
"""The columns that a narrow terminal does without, the first one first."""
GAP = 3
"""Characters between two columns."""


class Conductors:
    """The table of the conductors, with as many columns as the terminal has room for.

    :param rows: the cells of each conductor.
    """

    def __init__(self, rows: Sequence[Sequence[Text]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table for a width."""
        columns = list(range(len(COLUMNS)))
        for column in SPARED:
            if sum(self._width(number) + GAP for number in columns) <= options.max_width:
                break
            columns.remove(column)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number in columns:
            name = "Share" if number == BAR + 1 and BAR not in columns else COLUMNS[number]
            right = name in ("Weight", "Shards", "Stacks", "Busy")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for row in self._rows:
            table.add_row(*(row[number] for number in columns))
        yield table

    def _width(self, number: int) -> int:
        return max(len(COLUMNS[number]), *(row[number].cell_len for row in self._rows), 1)


def ring_screen(ring: JsonMap) -> Group:
    """Return the drawing of the ring.

    :param ring: the view of the ring.
    """
    now = instant(ring["time"])
    conductors = Conductors([_cells(conductor, ring["version"], now) for conductor in ring["conductors"]])
    state = ring["health"]
    style = OK if state.startswith("healthy") else BAD if state.startswith("not settled") else HELD
    requests = [
        Text(f"{harmless(conductor['host'])} drains: {LastRequest.of(conductor, now).human_readable()}", HELD)
        for conductor in ring["conductors"]
        if conductor["wanted"] == DRAINING
    ]
    return Group(conductors, *requests, Text(ring["sums"]), Text(harmless(state), style))


def _cells(conductor: JsonMap, version: str, now: float) -> list[Text]:
    """Return the cells of a conductor.

    :param version: the version of the ring.
    """
    state = conductor["state"]
    style = _style(conductor)
    has_reported = conductor["incarnation"] is not None
    change = (
        f" → {conductor['wanted']}" if has_reported and state not in (conductor["wanted"], STOPPED) else ""
    )
    busy = f"{conductor['threads_busy']}/{conductor['threads']}" if has_reported else "?"
    is_full = has_reported and 0 < conductor["threads"] <= conductor["threads_busy"]
    reported = describe_age(now - instant(conductor["reported_time"])) if has_reported else "never"
    ring_version = conductor["ring_version"] or ""
    stacks = conductor["stacks_in_progress"]
    return [
        Text("●", style),
        Text(harmless(conductor["host"])),
        Text(f"{state}{change}", style),
        Text(f"{conductor['weight']:g}"),
        Text(str(conductor["shards"])),
        bar(conductor["share"], WIDTH, style),
        Text(f"{conductor['share']:.1%}"),
        Text("?" if stacks is None else str(stacks)),
        Text(busy, HELD if is_full else ""),
        Text(ring_version, "" if ring_version == version else HELD),
        Text(reported),
    ]


def _style(conductor: JsonMap) -> str:
    """Return the style of a conductor: alive and active, drained or stopped, lost."""
    if conductor["alive"] is None:
        return HELD
    if conductor["alive"]:
        return OK if conductor["state"] == ACTIVE else HELD
    return IDLE if conductor["state"] == STOPPED else BAD
