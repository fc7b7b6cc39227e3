"""The collaborators of the routes for consoles."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..ring.observer import GroupStatus
from .shared_views import SharedViews
from .views.graphs import SharedGraph

KEPT = 50_000
"""Resources of all graphs that a process keeps: some 100 MB at the most."""


def _weight(found: SharedGraph) -> int:
    return 1 + len(found.graph.resources)


@dataclass(frozen=True)
class ConsoleServices:
    """The collaborators of the routes for consoles.

    :ivar group: returns which conductors are in their group; or why that cannot be known.
    :ivar graphs: by stack and depth, as requests share them.
    """

    group: Callable[[], GroupStatus | str] = lambda: "the group is not read"
    graphs: SharedViews[SharedGraph] = field(default_factory=lambda: SharedViews(most=KEPT, weigh=_weight))
