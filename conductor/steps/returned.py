"""Columns of what a resource's type has returned in a step."""

import json

from ...db.work.claim import Claim
from ...engine.planning.plan import TaskDefinition
from ...engine.stored_resource import changed_properties, data_column, value_columns
from ...resources.contract.context import StepContext
from ...resources.contract.errors import PermanentError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import changed, resolve_reported
from ...resources.contract.steps import Park, Poll, Step
from ...resources.contract.views import ResourceView
from ...resources.guests import COLLECT_CONFIG, collect_config
from ...sealing.secrets import Secrets
from ...shapes import Json
from ...template.drift import DriftPolicy

MOST_STORED = 2 * 1024 * 1024
"""Bytes of an attribute's value as JSON.  It is stored, read by each step that refers to it, and shown."""


class TooLarge(PermanentError):
    """The value of an attribute is too large to be stored."""

    def __init__(self, name: str, size: int) -> None:
        text = f"the attribute {name} has {size} bytes as JSON; the limit of a stored attribute is"
        super().__init__(f"{text} {MOST_STORED}")


def check_storable(subject: str, value: Json) -> int:
    """Check that a value can be stored, for a plugin's bug would break the transaction otherwise.

    :return: its bytes as JSON.
    :raises PermanentError: the value is no JSON.
    """
    try:
        return len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise PermanentError(
            f"the resource type returned {subject} that cannot be stored: {error}"
        ) from error


def kept_data(plugin: ResourceType, step: Step, target: ResourceView, secrets: Secrets) -> dict[str, Json]:
    """Return the columns for the physical id and the data that a step has returned."""
    changes: dict[str, Json] = {"physical_id": target.physical_id}
    check_storable("a physical id", target.physical_id)
    if isinstance(step, Poll | Park):
        check_storable("progress", step.progress)
    if step.data is not None:
        check_storable("data", dict(step.data))
        changes["data"] = data_column(plugin, step.data, secrets)
    return changes


def kept_values(
    plugin: ResourceType, target: ResourceView, context: StepContext, secrets: Secrets
) -> dict[str, Json]:
    """Return the columns for values that others may refer to, with their secrets sealed.

    :raises TooLarge: one of them is too large: the template, or a service, decides how large they are.
    """
    values = dict(plugin.attribute_values(target))
    if COLLECT_CONFIG in plugin.attributes_schema:
        values.update(guest_attributes(plugin, target, context))
    if check_storable("attributes", values) > MOST_STORED:
        for name, value in values.items():
            if (size := check_storable(name, value)) > MOST_STORED:
                raise TooLarge(name, size)
    reference = plugin.reference_id(target)
    check_storable("a reference", reference)
    return value_columns(plugin, values, reference, secrets)


def guest_attributes(plugin: ResourceType, target: ResourceView, context: StepContext) -> dict[str, Json]:
    """Return the attribute of a server that says how its guest reads the metadata, with the keys."""
    transport = plugin.guest_transport(target)
    if transport is None:
        return {}
    return {COLLECT_CONFIG: collect_config(transport, context.guest_access(), plugin.guest_collectors)}


def live_changes(
    claim: Claim, plugin: ResourceType, target: ResourceView, context: StepContext, secrets: Secrets
) -> dict[str, Json]:
    """Return columns for properties that are not any more as they were given: an update sees the difference.

    :raises PermanentError: the remote resource is gone.
    """
    live = plugin.live_properties(target, context)
    schema = plugin.properties_schema
    check_storable("properties", dict(live))
    # Properties that others manage stay as these have set them.
    ignored = DriftPolicy.of(TaskDefinition.from_json(claim.resource.definition).drift).ignore
    resolved = resolve_reported(schema, live, target.properties, ignored)
    differing = {name: live[name] for name in changed(schema, target.properties, resolved) & resolved.keys()}
    if not differing or claim.resource.properties is None:
        return {}
    return {"properties": changed_properties(plugin, claim.resource.properties, differing, secrets)}
