"""The collaborators of the routes for consoles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ...api.shared_views import SharedViews
from ...db import conductors
from ...ring.observer import GroupStatus
from .graph_views import SharedGraph
from .presence import FleetSettings, Presence

KEPT = 50_000
"""Resources of all graphs that a process keeps: some 100 MB at the most."""


COUNTED_EVERY = 2.0
"""Seconds for which counts of stacks are returned again."""


def _weight(graph: SharedGraph) -> int:
    return 1 + len(graph.graph.resources)


@dataclass(frozen=True)
class ConsoleServices:
    """The collaborators of the routes for consoles.

    :ivar shard_count: the number of shards of the installation.
    :ivar fleet: the options that a diagnosis of stacks needs.
    :ivar group: a function that returns the conductors in their group, or the reason why they are unknown.
    :ivar counts: numbers of stacks by action and status, for each project.
    :ivar graphs: the graphs that requests share, by stack and depth.
    """

    shard_count: int = 1
    fleet: FleetSettings = FleetSettings(takeover=0.0, grace=0.0)
    counts: SharedViews[Mapping[tuple[str, str], int]] = field(
        default_factory=lambda: SharedViews(keep=COUNTED_EVERY)
    )
    group: Callable[[], GroupStatus | str] = lambda: "the group is not read"
    graphs: SharedViews[SharedGraph] = field(default_factory=lambda: SharedViews(most=KEPT, weigh=_weight))

    def presence(self, conn: Connection, group: GroupStatus | str, now: float) -> Presence:
        """Read the conductors' reports.

        :param group: the result of `group`, from before the transaction.
        :param now: seconds since the epoch.
        """
        rows = {row.host: row for row in conductors.list_all(conn)}
        status, why = (None, group) if isinstance(group, str) else (group, None)
        return Presence(now, rows, status, why, self.shard_count)
