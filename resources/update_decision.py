"""What an update means for one resource: pure, for the step that carries it out and for the preview of it."""

import enum
from collections.abc import Collection, Mapping

from .context import Json
from .errors import PermanentError
from .plugin import ResourceType
from .properties import changed, immutable_changed, replacement_needed


class UpdateDecision(enum.Enum):
    """What is to be done."""

    SAME = enum.auto()
    IN_PLACE = enum.auto()
    REPLACE = enum.auto()


RESTRICTED = {UpdateDecision.IN_PLACE: "update", UpdateDecision.REPLACE: "replace"}
"""Words with which an environment forbids it."""


def decide_update(
    plugin: ResourceType, before: Mapping[str, Json], after: Mapping[str, Json], *, redefined: bool
) -> UpdateDecision:
    """Compare the properties that a resource was given with those it shall have.

    :param redefined: something else of its definition has changed.
    :raises Final: a property has changed that never may.
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
    """Whether the resource may have to be replaced when these properties change, whatever their values."""
    overridden = type(plugin).needs_replace is not ResourceType.needs_replace
    return bool(names) and (overridden or bool(replacement_needed(plugin.properties_schema, names)))


def survives_failure(plugin: ResourceType, *, action: str) -> bool:
    """Whether a resource whose last action failed may be kept by an update; the step asks the type then.

    :param action: the one that failed.
    """
    if action == "DELETE" or (action == "CHECK" and plugin.replaced_when_check_failed):
        return False  # A deletion that was stopped may have taken place all the same.
    return type(plugin).needs_replace_failed is not ResourceType.needs_replace_failed


def observable(plugin: ResourceType) -> bool:
    """Whether the type can tell anything of what is really there."""
    return checkable(plugin) or type(plugin).live_properties is not ResourceType.live_properties


def checkable(plugin: ResourceType) -> bool:
    """Whether the type can compare a thing with what it should be."""
    return type(plugin).handle_check is not ResourceType.handle_check
