"""The table of the kernel's duties over the slice.

A new duty is a class in a file of its own, an import and a line here; that of a feature is in the feature's
folder.  The conductor and the simulation take their duties from this table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...db.queries.due_soon import DueRows
from ...observe.recorder import SILENT
from ..scheduler import Duty, DutyPolicy
from ..timetable import Cadence
from .context import DutyContext
from .credentials import Credentials
from .event_delivery import EventDelivery
from .orphans import Orphans
from .rollbacks import Rollbacks
from .stack_purge import StackPurge
from .stack_timeouts import StackTimeouts
from .task_counts import TaskCounts
from .task_due import TaskDue
from .traversal_purge import TraversalPurge


@dataclass(frozen=True)
class DutyEntry:
    """An entry of the table.

    :ivar make: makes the duty; its class has the interval.
    :ivar for_metrics: runs only where metrics are collected.
    :ivar due: rows whose moments end a rest of the duties, besides those of the kernel.
    """

    make: Callable[[DutyContext], Duty]
    policy: DutyPolicy = DutyPolicy()
    for_metrics: bool = False
    due: Sequence[DueRows] = ()

    def is_needed(self, context: DutyContext) -> bool:
        """Return whether the duty has something to do in this installation."""
        return context.recorder is not SILENT or not self.for_metrics


ACTIVE = DutyPolicy(cadence=Cadence.ACTIVE)
"""The policy of duties whose rows the lookout forecasts: see db/queries/due_soon.py."""
_TIMED = replace(ACTIVE, is_timed=True)

DUTIES: dict[str, DutyEntry] = {
    "TaskDue": DutyEntry(TaskDue, replace(_TIMED, is_vital=True)),
    "StackTimeouts": DutyEntry(StackTimeouts, replace(_TIMED, has_own_thread=True, is_vital=True)),
    "Rollbacks": DutyEntry(Rollbacks, ACTIVE),
    "Credentials": DutyEntry(Credentials, _TIMED),
    "EventDelivery": DutyEntry(EventDelivery, _TIMED),
    "TraversalPurge": DutyEntry(TraversalPurge, replace(_TIMED, is_routine=True)),
    "StackPurge": DutyEntry(StackPurge, DutyPolicy(is_timed=True, is_routine=True)),
    "Orphans": DutyEntry(Orphans, replace(ACTIVE, is_vital=True)),
    "Census": DutyEntry(TaskCounts, for_metrics=True),
}
"""Duties by name.  The names are labels of metrics, so they never change."""


def make_duties(context: DutyContext, entries: Mapping[str, DutyEntry] = DUTIES) -> dict[str, Duty]:
    """Return a new object of each duty, by name."""
    return {name: entry.make(context) for name, entry in entries.items() if entry.is_needed(context)}


def policies(entries: Mapping[str, DutyEntry] = DUTIES) -> dict[str, DutyPolicy]:
    """Return the policy of each duty."""
    return {name: entry.policy for name, entry in entries.items()}
