"""The ring on a terminal: a table with marks and bars, the sums, and the health."""

from collections.abc import Mapping

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ...db.conductors import ACTIVE, STOPPED
from ...engine.diagnosis.presence import Presence
from ...engine.diagnosis.ring import health, stacks_by_owner, sums
from ...observe.instants import describe_age
from ...observe.terminal import BAD, HELD, IDLE, OK, bar, harmless

WIDTH = 20
"""Characters of a bar."""


def ring_screen(presence: Presence, by_shard: Mapping[int, int]) -> Group:
    """Return the drawing of the ring.

    :param by_shard: the number of stacks in progress, by shard.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = ("", "Host", "State", "Weight", "Shards", "Share", "Stacks", "Busy", "Ring", "Reported")
    for name in columns:
        right = name in ("Weight", "Shards", "Stacks", "Busy")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    stacks = stacks_by_owner(presence.ring, by_shard)
    owned = presence.shards()
    for host in presence.hosts:
        table.add_row(*_cells(presence, host, owned.get(host, 0), stacks[host]))
    state = health(presence)
    style = OK if state.startswith("healthy") else BAD if state.startswith("not settled") else HELD
    return Group(table, Text(sums(presence, sum(by_shard.values()))), Text(harmless(state), style))


def _cells(presence: Presence, host: str, owned: int, stacks: int) -> list[Text]:
    row = presence.rows.get(host)
    state = presence.state(host)
    weights = {member.host: member.weight for member in presence.members}
    style = _style(presence, host)
    share = owned / presence.shard_count
    change = f" → {row.wanted}" if row is not None and state not in (row.wanted, STOPPED) else ""
    busy = "?" if row is None else f"{row.threads_busy}/{row.threads}"
    is_full = row is not None and 0 < row.threads <= row.threads_busy
    reported = "never" if row is None else describe_age(presence.now - row.heartbeat_at)
    version = "" if row is None else row.ring_version
    return [
        Text("●", style),
        Text(harmless(host)),
        Text(f"{state}{change}", style),
        Text(f"{weights.get(host, 1.0 if row is None else row.weight):g}"),
        Text(str(owned)),
        bar(share, WIDTH, style).append(f" {share:.1%}"),
        Text("?" if presence.group is None else str(stacks)),
        Text(busy, HELD if is_full else ""),
        Text(version, "" if version == presence.ring.version else HELD),
        Text(reported),
    ]


def _style(presence: Presence, host: str) -> str:
    """Return the style of a conductor: alive and active, drained or stopped, lost."""
    if presence.is_alive(host) is None:
        return HELD
    if presence.is_alive(host):
        return OK if presence.state(host) == ACTIVE else HELD
    return IDLE if presence.state(host) == STOPPED else BAD
