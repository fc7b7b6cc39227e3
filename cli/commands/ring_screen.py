"""The ring on a terminal: a table with marks and bars, the sums, and the health."""

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ...db.conductors import ACTIVE, DRAINING, STOPPED
from ...observe.instants import describe_age, instant
from ...observe.terminal import BAD, HELD, IDLE, OK, bar, harmless
from ...shapes import JsonMap
from .columns import LastRequest

WIDTH = 20
"""Characters of a bar."""


def ring_screen(ring: JsonMap) -> Group:
    """Return the drawing of the ring.

    :param ring: the view of the ring.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = ("", "Host", "State", "Weight", "Shards", "Share", "Stacks", "Busy", "Ring", "Reported")
    for name in columns:
        right = name in ("Weight", "Shards", "Stacks", "Busy")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    now = instant(ring["time"])
    for place in ring["conductors"]:
        table.add_row(*_cells(place, ring["version"], now))
    state = ring["health"]
    style = OK if state.startswith("healthy") else BAD if state.startswith("not settled") else HELD
    requests = [
        Text(f"{harmless(place['host'])} drains: {LastRequest.of(place, now).human_readable()}", HELD)
        for place in ring["conductors"]
        if place["wanted"] == DRAINING
    ]
    return Group(table, *requests, Text(ring["sums"]), Text(harmless(state), style))


def _cells(place: JsonMap, version: str, now: float) -> list[Text]:
    """Return the cells of a conductor.

    :param version: the version of the ring.
    """
    state = place["state"]
    style = _style(place)
    has_reported = place["incarnation"] is not None
    change = f" → {place['wanted']}" if has_reported and state not in (place["wanted"], STOPPED) else ""
    busy = f"{place['threads_busy']}/{place['threads']}" if has_reported else "?"
    is_full = has_reported and 0 < place["threads"] <= place["threads_busy"]
    reported = describe_age(now - instant(place["reported_time"])) if has_reported else "never"
    ring_version = place["ring_version"] or ""
    stacks = place["stacks_in_progress"]
    return [
        Text("●", style),
        Text(harmless(place["host"])),
        Text(f"{state}{change}", style),
        Text(f"{place['weight']:g}"),
        Text(str(place["shards"])),
        bar(place["share"], WIDTH, style).append(f" {place['share']:.1%}"),
        Text("?" if stacks is None else str(stacks)),
        Text(busy, HELD if is_full else ""),
        Text(ring_version, "" if ring_version == version else HELD),
        Text(reported),
    ]


def _style(place: JsonMap) -> str:
    """Return the style of a conductor: alive and active, drained or stopped, lost."""
    if place["alive"] is None:
        return HELD
    if place["alive"]:
        return OK if place["state"] == ACTIVE else HELD
    return IDLE if place["state"] == STOPPED else BAD
