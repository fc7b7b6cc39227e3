"""Events of Heat's as rows of Stoker's; pure.

Heat shows with each event the properties that its resource had.  An event is never opened again as a
resource's properties are, so none of its values may be a secret, nor one that was a secret at that time.

A resource whose status no event of Heat's explains gets one of the import: Heat has deleted the event, has
made none, or the import has changed the status.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ....db.ids import StackId
from ....db.rows import Event, Resource
from ....db.states import Status
from ....engine.context import Compiled
from ....sealing.redaction import MASK
from ....shapes import Json
from ....template.residual import holds_secret, members, quote
from ..heat.rows import STACK_TYPE, HeatEvent, HeatStack
from ..mapping.columns import EVENT

IMPORTED = "imported from Heat in this state"
"""The reason of an event of the import."""
_DELETE = "DELETE"
_STATUS_KEPT = frozenset({"INIT", "SIGNAL"})
"""Actions of events that leave the status of their resource alone: breakpoints and signals."""


def event_rows(
    stack: HeatStack, compiled: Compiled, rows: Mapping[str, Resource], now: float
) -> Iterator[Event]:
    """Yield the events of a stack: Heat's, then those of the import.

    :param rows: its present resources by name.
    :param now: the moment of the import.
    """
    has_secrets = _has_secrets(compiled, rows.values())
    for event in stack.events:
        if has_secrets:
            event = _masked(event, rows.get(event.resource_name))
        event = replace(event, resource_type=event.resource_type or STACK_TYPE)
        yield Event(stack_id=StackId(stack.id), **EVENT.to_stoker(event))
    yield from _unexplained(stack.events, rows.values(), now)


def _unexplained(events: Iterable[HeatEvent], resources: Iterable[Resource], now: float) -> Iterator[Event]:
    """Yield an event of each resource whose status is not that of its last event."""
    # A deletion counts for itself: mostly it is that of a resource of the same name that was replaced.
    last_states = {
        (event.resource_name, event.action == _DELETE): (event.action, event.status)
        for event in events
        if event.action not in _STATUS_KEPT
    }
    for row in resources:
        last_state = last_states.get((row.name, row.action == _DELETE))
        if row.is_untouched or last_state == (row.action, row.status):
            continue
        has_failed = row.status == Status.FAILED and row.reason
        reason = f"{IMPORTED}: {row.reason}" if has_failed else IMPORTED
        yield Event.at_resource(row, (row.action, row.status), reason, now)


def _has_secrets(compiled: Compiled, rows: Iterable[Resource]) -> bool:
    """Return whether a secret can have reached a property: a hidden parameter, or a value of a resource."""
    if holds_secret(compiled.parameters) or any(item.hidden for item in compiled.plan.parameters.values()):
        return True
    columns = [[row.properties, row.attributes, row.data, row.reference_id] for row in rows]
    return holds_secret(columns)


def _masked(event: HeatEvent, row: Resource | None) -> HeatEvent:
    """Return an event of which those properties are shown that its resource has now, and in clear.

    Of any other one nobody knows whether it was a secret at that time.

    :param row: the present resource of this name; None: there is none.
    """
    if event.properties is None:
        return event
    stored = {} if row is None else members(row.properties)
    properties: dict[str, Json] = {
        name: value if name in stored and stored[name] == quote(value) else MASK
        for name, value in event.properties.items()
    }
    return replace(event, properties=properties)
