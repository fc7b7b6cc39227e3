"""Conversion of parameters' values to their types."""

import json
import typing
from collections.abc import Callable, Mapping

from ..shapes import Json
from .load import check_tree
from .scalars import boolean, number


def convert(value: object, value_type: str) -> Json:
    """Convert a value to a parameter's type.

    :raises ValueError: the value does not fit the type.
    """
    return _CONVERT[value_type](value)


def as_members(value: Json) -> Json:
    """Return a list in the form in which Heat hands it to a nested stack's ``comma_delimited_list``.

    A list of maps becomes ``.member.INDEX.KEY=VALUE`` for each key, joined by commas; null is empty.

    :returns: any other value as it is.
    """
    if not isinstance(value, list) or not value:
        return value
    if not all(isinstance(item, Mapping) for item in value):
        return ["" if item is None else item for item in value]
    return ",".join(
        f".member.{index}.{key}={'' if member is None else member}"
        for index, item in enumerate(value)
        for key, member in item.items()
    )


def _string(value: object) -> str:
    """Return the text of any value, as Heat writes it; that of a list or map is Python's."""
    return str(value)


def _list(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split(",") if value else []
    if not isinstance(value, list):
        raise ValueError("must be a list, or a string with commas")
    if any(isinstance(item, Mapping | list | None) for item in value):
        raise ValueError("must be a list of strings")
    return [str(item) for item in value]


def _json(value: object) -> Json:
    """Return a value of JSON: keys are strings, numbers finite.  As in Heat it may be a scalar."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, allow_nan=False)
        parsed = json.loads(text, parse_constant=_refused) if text else {}
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"must be JSON: {error}") from error
    check_tree(parsed, "value")
    return parsed


def _refused(constant: str) -> typing.NoReturn:
    raise ValueError(f"{constant} is not JSON")


_CONVERT: Mapping[str, Callable[[object], Json]] = {
    "string": _string,
    "number": number,
    "boolean": boolean,
    "comma_delimited_list": _list,
    "json": _json,
}
