"""The places of secrets' tokens in the stored columns.

Everything else is literal: a text or a map that only looks like a token was written by a user.
"""

from collections.abc import Callable, Mapping

from ..shapes import Json, JsonMap
from ..template.language import VERSION_KEYS
from ..template.residual import retokened, sealed, token_of
from .stored import metadata_retokened

Change = Callable[[str], str]


def replaced(table: str, values: JsonMap, change: Change) -> dict[str, Json]:
    """Return the columns of a row with `change` of each token in its place.

    :param table: its name.
    """
    shapes = {**_SHAPES, ("resource", "metadata"): _metadata(values.get("definition"))}
    return {
        name: None if value is None else shapes[table, name](value, change) for name, value in values.items()
    }


def _metadata(definition: Json) -> Callable[[Json, Change], Json]:
    return lambda value, change: metadata_retokened(value, definition, change)


def _whole(value: Json, change: Change) -> Json:
    """Replace the token of a value that is sealed as a whole, or not at all."""
    token = token_of(value)
    return value if token is None else sealed(change(token))


def _residual(value: Json, change: Change) -> Json:
    return retokened(value, change)


def _fields(value: Json, change: Change) -> Json:
    """Replace the tokens of residuals by name; no name stands for a function here."""
    return {name: retokened(item, change) for name, item in value.items()}


def _outputs(value: Json, change: Change) -> Json:
    return {name: {**item, "value": retokened(item["value"], change)} for name, item in value.items()}


def _goal(value: Json, change: Change) -> Json:
    return {**value, "parameters": retokened(value["parameters"], change)}


def _body(value: Json, change: Change) -> Json:
    """Replace the tokens of a content: only environments hold any, and they name no version."""
    return value if any(key in value for key in VERSION_KEYS) else _fields(value, change)


_SHAPES: Mapping[tuple[str, str], Callable[[Json, Change], Json]] = {
    ("setting", "value"): _whole,
    ("credential", "body"): _whole,
    ("imported_key", "secret"): _whole,
    ("content", "body"): _body,
    ("stack", "parameters"): _residual,
    ("stack", "previous"): _goal,
    ("stack", "outputs"): _outputs,
    ("snapshot", "goal"): _goal,
    ("task", "definition"): _fields,
    ("resource", "definition"): _fields,
    ("resource", "properties"): _residual,
    ("resource", "reference_id"): _residual,
    ("resource", "attributes"): _fields,
    ("resource", "data"): _whole,
    ("software_config", "body"): _whole,
    ("software_deployment", "input_values"): _whole,
    ("software_deployment", "output_values"): _whole,
}
