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


def ring_screen(found: Presence, by_shard: Mapping[int, int]) -> Group:
    """Return what is drawn of the ring.

    :param by_shard: number of stacks in progress.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = ("", "Host", "State", "Weight", "Shards", "Share", "Stacks", "Busy", "Ring", "Reported")
    for name in columns:
        right = name in ("Weight", "Shards", "Stacks", "Busy")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    stacks, owned = stacks_by_owner(found.ring, by_shard), found.shards()
    for host in found.hosts:
        table.add_row(*_cells(found, host, owned.get(host, 0), stacks[host]))
    state = health(found)
    style = OK if state.startswith("healthy") else BAD if state.startswith("not settled") else HELD
    return Group(table, Text(sums(found, sum(by_shard.values()))), Text(harmless(state), style))


def _cells(found: Presence, host: str, owned: int, stacks: int) -> list[Text]:
    row = found.rows.get(host)
    state = found.state(host)
    weights = {member.host: member.weight for member in found.members}
    style = _style(found, host)
    share = owned / found.shard_count
    asked = f" → {row.wanted}" if row is not None and state not in (row.wanted, STOPPED) else ""
    busy = "?" if row is None else f"{row.threads_busy}/{row.threads}"
    is_full = row is not None and 0 < row.threads <= row.threads_busy
    reported = "never" if row is None else describe_age(found.now - row.heartbeat_at)
    version = "" if row is None else row.ring_version
    return [
        Text("●", style),
        Text(harmless(host)),
        Text(f"{state}{asked}", style),
        Text(f"{weights.get(host, 1.0 if row is None else row.weight):g}"),
        Text(str(owned)),
        bar(share, WIDTH, style).append(f" {share:.1%}"),
        Text("?" if found.group is None else str(stacks)),
        Text(busy, HELD if is_full else ""),
        Text(version, "" if version == found.ring.version else HELD),
        Text(reported),
    ]


def _style(found: Presence, host: str) -> str:
    """Return the style of a conductor: alive and active, drained or stopped, lost."""
    if found.is_alive(host) is None:
        return HELD
    if found.is_alive(host):
        return OK if found.state(host) == ACTIVE else HELD
    return IDLE if found.state(host) == STOPPED else BAD
