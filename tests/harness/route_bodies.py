"""A right body for each route that takes an id: a wrong one would be refused before the id is searched."""

import typing

Json = typing.Any
TEMPLATE: Json = {
    "heat_template_version": "2021-04-16",
    "resources": {"one": {"type": "OS::Heat::Value", "properties": {"value": "a"}}},
    "outputs": {"o": {"value": "b"}},
}
_BODIES: dict[str, Json] = {
    "PUT stack_id": {"template": TEMPLATE},
    "PATCH stack_id": {"template": TEMPLATE},
    "PUT preview": {"template": TEMPLATE},
    "PATCH preview": {"template": TEMPLATE},
    "POST snapshots": {"name": "n"},
    "POST actions": {"suspend": None},
    "PATCH resource_name": {"mark_unhealthy": True, "resource_status_reason": "r"},
    "POST signal": {"status": "SUCCESS"},
    "PUT deployment_id": {"status": "COMPLETE"},
}
"""By method and end of the path."""


def right_body(method: str, path: str) -> Json:
    """Return a body that the handler of a route takes; None: it takes none."""
    return _BODIES.get(f"{method} {path.rpartition('/')[2].strip('{}')}")
