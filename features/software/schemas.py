"""JSON Schemas of the requests for software configs and deployments."""

from ...shapes import Json

_NULLABLE_OBJECT = {"type": ["object", "null"]}
_SHORT_TEXT = {"type": ["string", "null"], "maxLength": 255}
_NULLABLE_LIST = {"type": ["array", "null"], "items": {"type": "object"}}

NEW_CONFIG: Json = {
    "type": "object",
    "properties": {
        "name": _SHORT_TEXT,
        "group": _SHORT_TEXT,
        "config": {},
        "inputs": _NULLABLE_LIST,
        "outputs": _NULLABLE_LIST,
        "options": _NULLABLE_OBJECT,
    },
}
"""Other keys are ignored, as in Heat: clients send a config, or a deployment, as they have read it."""

_DEPLOYMENT: dict[str, Json] = {
    "input_values": _NULLABLE_OBJECT,
    "action": _SHORT_TEXT,
    "status": _SHORT_TEXT,
    "status_reason": {"type": ["string", "number", "boolean", "null"], "maxLength": 65536},
}

NEW_DEPLOYMENT: Json = {
    "type": "object",
    "properties": {
        **_DEPLOYMENT,
        "server_id": {"type": "string", "minLength": 1, "maxLength": 255},
        "config_id": {"type": "string", "maxLength": 36},
        # Of the user who would send signals in Heat; they have an address that is signed instead.
        "stack_user_project_id": {"type": ["string", "null"], "maxLength": 64},
    },
    "required": ["server_id", "config_id"],
}

UPDATED_DEPLOYMENT: Json = {
    "type": "object",
    "properties": {
        **_DEPLOYMENT,
        "config_id": {"type": ["string", "null"], "maxLength": 36},
        "output_values": _NULLABLE_OBJECT,
    },
}
