"""The effect of an update on one resource.  Pure: used by the step that carries it out and by the preview."""

import enum
from collections.abc import Collection

from ..shapes import JsonMap
from .contract.errors import PermanentError
from .contract.plugin import ResourceType
from .contract.properties import changed, immutable_changed, replacement_needed


class UpdateDecision(enum.Enum):
    """The effect of an update on a resource."""

    SAME = enum.auto()
    IN_PLACE = enum.auto()
    REPLACE = enum.auto()


RESTRICTED = {UpdateDecision.IN_PLACE: "update", UpdateDecision.REPLACE: "replace"}
"""Words of an environment that forbid an effect."""


def decide_update(
    plugin: ResourceType, before: JsonMap, after: JsonMap, *, redefined: bool
) -> UpdateDecision:
    """Decide by the properties of a resource before and after the update.

    :param redefined: another part of its definition has changed.
    :raises PermanentError: an immutable property has changed.
    """
    schema = plugin.properties_schema
    names = changed(schema, before, after)
    if fixed := immutable_changed(schema, names):
        raise PermanentError(
            f"the properties {', '.join(sorted(fixed))} can never be changed", kind="NotSupported"
        )
    if plugin.always_replaced or replacement_needed(schema, names):
        return UpdateDecision.REPLACE
    if names and plugin.needs_replace(before, after):
        return UpdateDecision.REPLACE
    return UpdateDecision.IN_PLACE if names or redefined or plugin.always_updated else UpdateDecision.SAME


def may_replace(plugin: ResourceType, names: Collection[str]) -> bool:
    """Return whether a change of these properties may replace the resource, whatever their values."""
    overridden = type(plugin).needs_replace is not ResourceType.needs_replace
    return bool(names) and (overridden or bool(replacement_needed(plugin.properties_schema, names)))


def survives_failure(plugin: ResourceType, *, action: str, unhealthy: bool) -> bool:
    """Return whether an update may keep a resource whose last action failed; the step then asks the type.

    :param action: the action that failed.
    :param unhealthy: whether a user has marked the resource unhealthy, to have it replaced.
    """
    if action == "DELETE" or unhealthy or (action == "CHECK" and plugin.replaced_when_check_failed):
        return False  # A delete that was cancelled may have happened anyway.
    return type(plugin).needs_replace_failed is not ResourceType.needs_replace_failed


def observable(plugin: ResourceType) -> bool:
    """Return whether the type can report the real state of a resource."""
    return checkable(plugin) or type(plugin).live_properties is not ResourceType.live_properties


def checkable(plugin: ResourceType) -> bool:
    """Return whether the type implements checks."""
    return type(plugin).handle_check is not ResourceType.handle_check


def repairable(plugin: ResourceType) -> bool:
    """Return whether the type implements repairs."""
    return type(plugin).handle_repair is not ResourceType.handle_repair
