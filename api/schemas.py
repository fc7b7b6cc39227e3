"""JSON schemas of requests' bodies, and the check of a body against one."""

import itertools
from collections.abc import Callable, Mapping

import jsonschema

from ..db.conductors import REASON_LENGTH
from ..shapes import Json
from ..template.scalars import written
from ..template.suggestions import did_you_mean
from .errors import bad_request, shortened

ERRORS = 100
"""Most errors that are compared to find the most useful one; a long list may have many more."""

MOST_ENTRIES = 100_000
"""Most entries of a list or map of a body that are checked one by one: a second of work."""

NAME_PATTERN = r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}"
_NULLABLE_OBJECT = {"type": ["object", "null"]}

_GOAL: dict[str, Json] = {
    "template": {"type": ["object", "string", "null"]},
    "template_url": {"type": ["string", "null"]},
    "environment": {"type": ["object", "string", "null"]},
    "environment_files": {"type": ["array", "null"], "items": {"type": "string"}},
    "files": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    "files_container": {"type": ["string", "null"]},
    "parameters": _NULLABLE_OBJECT,
}

_OPTIONS: dict[str, Json] = {
    "disable_rollback": {"type": ["boolean", "string", "null"]},
    # Ours.
    "abort_on_breakpoint": {"type": ["boolean", "string", "null"]},
    "timeout_mins": {"type": ["integer", "string", "null"]},
    "tags": {"type": ["string", "array", "null"], "items": {"type": "string"}},
}

CREATE: Json = {
    "type": "object",
    "properties": {
        **_GOAL,
        **_OPTIONS,
        "stack_name": {"type": "string"},
        "adopt_stack_data": {"type": ["object", "string", "null"]},
        # The client's `stack adopt` has it in place of timeout_mins.
        "timeout": {"type": ["integer", "string", "null"]},
    },
    "required": ["stack_name"],
    "additionalProperties": False,
}

UPDATE: Json = {
    "type": "object",
    "properties": {
        **_GOAL,
        **_OPTIONS,
        "existing": {"type": ["boolean", "string"]},
        "clear_parameters": {"type": ["array", "null"], "items": {"type": "string"}},
        "converge": {"type": ["boolean", "string", "null"]},
        "stack_name": {"type": "string"},
    },
    "additionalProperties": False,
}

VALIDATE: Json = {
    "type": "object",
    "properties": {**_GOAL, **_OPTIONS},
    "additionalProperties": False,
}

SNAPSHOT: Json = {
    "type": "object",
    "properties": {"name": {"type": ["string", "null"], "maxLength": 255}},
    "additionalProperties": False,
}

ADOPTED: Json = {
    "type": "object",
    "properties": {
        "template": {"type": "object"},
        "environment": _NULLABLE_OBJECT,
        "files": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
        "resources": {
            "type": ["object", "null"],
            "additionalProperties": {
                "type": ["object", "null"],
                "properties": {
                    "resource_id": {"type": ["string", "null"], "maxLength": 2048},
                    "metadata": _NULLABLE_OBJECT,
                    "resource_data": _NULLABLE_OBJECT,
                    "template": _NULLABLE_OBJECT,
                    "resources": _NULLABLE_OBJECT,
                },
            },
        },
    },
    "required": ["template"],
}
"""Other keys may be there: the output of abandon has many more."""

_HELD: Json = {
    "type": ["object", "null"],
    "properties": {
        "resources": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1000},
        "hook": {"type": "string"},
    },
    "additionalProperties": False,
}

GO_ON: Json = {"type": "object", "properties": {"continue": _HELD, "step": _HELD}}

MARK_UNHEALTHY: Json = {
    "type": "object",
    "properties": {
        "mark_unhealthy": {"type": ["boolean", "string"]},
        "resource_status_reason": {"type": ["string", "null"]},
    },
    "required": ["mark_unhealthy"],
    "additionalProperties": False,
}

_WEIGHTS: Json = {
    "type": ["object", "null"],
    "maxProperties": 1000,
    "propertyNames": {"maxLength": 255, "minLength": 1},
    "additionalProperties": {"type": "number"},
}

RING_PLAN: Json = {
    "type": "object",
    "properties": {
        "leave": {"type": ["array", "null"], "maxItems": 1000, "items": {"type": "string", "maxLength": 255}},
        "join": _WEIGHTS,
        "weight": _WEIGHTS,
    },
    "minProperties": 1,
    "additionalProperties": False,
}

DRAIN: Json = {
    "type": "object",
    "properties": {
        # Without control characters: it is a part of log lines and tables.
        "reason": {
            "type": ["string", "null"],
            "maxLength": REASON_LENGTH,
            "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        },
    },
    "additionalProperties": False,
}


def validated(value: Json, schema: Json, context: str = "") -> Json:
    """Return the value, if it fits the schema.

    :param context: the beginning of the error's text.
    :raises Fault: 400, with the path of the wrong value.
    """
    _refuse_many(value, schema, context)
    errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
    error = jsonschema.exceptions.best_match(itertools.islice(errors, ERRORS))
    if error is not None:
        raise bad_request(context + _explained(error))
    return value


def _refuse_many(value: Json, schema: Json, context: str = "", where: str = "") -> None:
    """Refuse a list or map of more entries than are worth the time that each takes to be checked.

    :raises Fault: 400, with the path of the list or map.
    """
    each = schema.get("items"), schema.get("additionalProperties")
    if (
        isinstance(value, list | dict)
        and len(value) > MOST_ENTRIES
        and any(isinstance(e, dict) for e in each)
    ):
        raise bad_request(f"{context}{where}: has {len(value)} entries, above the limit of {MOST_ENTRIES}")
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            _refuse_many(value.get(name), inner, context, f"{where}.{name}" if where else name)


def _explained(error: jsonschema.ValidationError) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    explain = _EXPLAIN.get(str(error.validator))
    message = shortened(error.message) if explain is None else explain(error.instance, error)
    return f"{shortened(where)}: {message}" if where else message


def _unknown_fields(instance: Json, error: jsonschema.ValidationError) -> str:
    schema = error.schema
    names = sorted(schema.get("properties", {})) if isinstance(schema, Mapping) else []
    unknown = next(name for name in instance if name not in names)
    hint = did_you_mean(unknown, names) or f"; known: {', '.join(names)}"
    return f'"{shortened(unknown)}" is not a field of it{hint}'


def _wrong_type(instance: Json, error: jsonschema.ValidationError) -> str:
    types: Json = error.validator_value
    return f"{written(instance)} is not of type {types if isinstance(types, str) else ' or '.join(types)}"


def _missing_field(instance: Json, error: jsonschema.ValidationError) -> str:
    names: Json = error.validator_value
    lacking = [f'"{name}"' for name in names if name not in instance]
    return f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} required"


_EXPLAIN: Mapping[str, Callable[[Json, jsonschema.ValidationError], str]] = {
    "type": _wrong_type,
    "required": _missing_field,
    "additionalProperties": _unknown_fields,
    "minLength": lambda instance, error: f"must have {error.validator_value} characters or more",
    "maxLength": lambda instance, error: f"must have {error.validator_value} characters or fewer",
    "maxItems": lambda instance, error: (
        f"{len(instance)} items are above the limit of {error.validator_value}"
    ),
}
"""Explanations of an error in words of JSON, by the rule of the schema that is broken."""
