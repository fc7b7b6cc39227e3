"""Views of drift, which Heat does not have."""

from ...db.rows import Stack
from ...observe.instants import iso
from ...shapes import Json
from .rows import DriftKind, ShownDrift, TreeDrift


def drift_view(stack: Stack, drift: TreeDrift) -> dict[str, Json]:
    """Return the view of the drift of a stack and of all that is nested in it."""
    return {
        "stack_name": stack.name,
        "stack_id": stack.id,
        "drift_status": drift.state,
        "observed_time": iso(drift.observed_at),
        "healing_time": iso(drift.healed_at),
        "unknown": list(drift.reasons),
        "resources": [_resource(resource) for resource in drift.resources],
    }


def _resource(resource: ShownDrift) -> dict[str, Json]:
    return {
        "resource_name": resource.name,
        "resource_path": resource.path,
        "resource_type": resource.type,
        "physical_resource_id": resource.physical_id or "",
        "stack_name": resource.stack_name,
        "stack_id": resource.stack_id,
        "difference": resource.kind,
        "since": iso(resource.since),
        "properties": [
            {"name": name, "template": values["template"], "cloud": values["cloud"]}
            for name, values in sorted(resource.properties.items())
            if resource.kind is DriftKind.CHANGED
        ],
    }
