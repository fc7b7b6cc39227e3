"""What an update means for one resource, once all values are known."""

import enum

from ..db.claims import Claim
from ..db.states import Status
from ..resources.contract import ResourceType, Target
from ..resources.errors import Final
from ..resources.properties import changed, immutable_changed, replacement_needed


class Verdict(enum.Enum):
    """What is to be done."""

    SAME = enum.auto()
    IN_PLACE = enum.auto()
    REPLACE = enum.auto()


def judge(plugin: ResourceType, claim: Claim, target: Target) -> Verdict:
    """Compare what the resource was given with what it shall be.

    One whose last action failed is replaced, as in Heat: nobody knows what state it is in.

    :raises Final: a property has changed that never may.
    """
    resource, schema = claim.resource, plugin.properties_schema
    if resource.status == Status.FAILED:
        return Verdict.REPLACE
    names = changed(schema, target.previous, target.properties)
    if fixed := immutable_changed(schema, names):
        raise Final(f"the properties {', '.join(sorted(fixed))} can never be changed", kind="NotSupported")
    if plugin.always_replaced or replacement_needed(schema, names):
        return Verdict.REPLACE
    if names and plugin.needs_replace(target.previous, target.properties):
        return Verdict.REPLACE
    if not names and resource.definition == claim.task.definition:
        return Verdict.SAME
    return Verdict.IN_PLACE
