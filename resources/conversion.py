"""Conversion of single values, as generous as Heat's: ``"5"`` is an integer, ``5`` a string.

Every function takes a value that is not None and raises ValueError with a text for the user.
"""

import math
import typing
from collections.abc import Callable, Mapping

Json = typing.Any


def to_string(value: Json) -> str:
    """Convert a boolean to ``True`` or ``False``, an integer to digits; other types are refused."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    raise ValueError(f"Value must be a string; got {value!r}")


def to_integer(value: Json) -> int:
    """Convert digits; a fraction, which Heat drops silently, is refused."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    raise ValueError(f"Value '{value}' is not an integer")


def to_number(value: Json) -> int | float:
    """Convert to an integer where the value is one; refuse infinity and NaN, which JSON cannot hold."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str | float):
        try:
            return int(value) if isinstance(value, str) else _finite(value)
        except ValueError:
            pass
        try:
            return _finite(float(value))
        except ValueError:
            pass
    raise ValueError(f"Value '{value}' is not a number")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def to_boolean(value: Json) -> bool:
    """Convert a boolean; of texts Heat's properties take ``true`` and ``false`` alone, in any case.

    So the words that parameters take (template/scalars.py) are not used here.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f'"{value}" is not a valid boolean')


def to_map(value: Json) -> dict[str, Json]:
    """Copy a map; JSON text is not parsed."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f'"{value}" is not a map')


def to_list(value: Json) -> list[Json]:
    """Copy a list; a string is not split."""
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(f'"{value!r}" is not a list')


#: By type name; ``any`` is absent, it takes everything as it is.
CONVERTERS: Mapping[str, Callable[[Json], Json]] = {
    "string": to_string,
    "integer": to_integer,
    "number": to_number,
    "boolean": to_boolean,
    "map": to_map,
    "list": to_list,
}

#: What a property given as null is, where it has no default.
EMPTY: Mapping[str, Callable[[], Json]] = {
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
    "map": dict,
    "list": list,
}
