"""What a signal to a resource comes to: new metadata, and perhaps a group that is scaled."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

Json = typing.Any


@dataclass(frozen=True)
class Adjustment:
    """What a signal wants of a group of the same stack.

    :ivar group: its reference, as get_resource yields it.
    :ivar kind: one of heat/scaling.py's ADJUSTMENTS.
    :ivar least_step: members that a percentage adds or removes at least; None: one.
    :ivar cooldown: seconds after the change in which there is no other one; None: the group's own.
    """

    group: str
    kind: str
    by: float
    least_step: int | None = None
    cooldown: float | None = None


@dataclass(frozen=True)
class Scaling:
    """What an adjustment comes to: the new size, and the cooldown after it in seconds."""

    size: int
    cooldown: float


@dataclass(frozen=True)
class Signal:
    """What a signal did.

    :ivar metadata: the new metadata.
    :ivar reason: text for the event and the caller.
    :ivar adjustment: of a group, to be carried out by a conductor.
    """

    metadata: Mapping[str, Json]
    reason: str
    adjustment: Adjustment | None = None
