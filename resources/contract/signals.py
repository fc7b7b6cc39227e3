"""The effects of a signal to a resource: new metadata, the scaling of a group, or a request to a service."""

from dataclasses import dataclass

from ...shapes import JsonMap


@dataclass(frozen=True)
class Adjustment:
    """The change of a group of the same stack that a signal requests.

    :ivar group: its reference, the value of get_resource.
    :ivar kind: one of the ADJUSTMENTS of heat/scaling_policy.py.
    :ivar least_step: members that a percentage adds or removes at least; None: one.
    :ivar cooldown: seconds after the change without another one; None: the group's own cooldown.
    """

    group: str
    kind: str
    by: float
    least_step: int | None = None
    cooldown: float | None = None


@dataclass(frozen=True)
class Scaling:
    """The result of an adjustment: the new size, and the cooldown after it in seconds.

    :ivar before: the size that the group had.
    """

    size: int
    cooldown: float
    before: int = 0


@dataclass(frozen=True)
class Signal:
    """The effects of a signal.

    :ivar metadata: the new metadata.
    :ivar reason: text for the event and the caller.
    :ivar adjustment: change of a group, which a conductor carries out.
    :ivar outputs: outputs of the software deployment that the resource is; the engine stores them.
    :ivar request: the request that a conductor hands to the type's `carry_out`; None: there is none.
    """

    metadata: JsonMap
    reason: str
    adjustment: Adjustment | None = None
    outputs: JsonMap | None = None
    request: JsonMap | None = None
