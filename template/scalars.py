"""Numbers and truth values as users spell them, equality as Heat defines it, and values in messages."""

import json
import math
import typing
from collections.abc import Mapping

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
FALSE = frozenset({"0", "f", "false", "off", "n", "no"})
"""The words of oslo.utils' strutils, as in Heat; pure folders import nothing of oslo."""

_LONGEST = 200
"""Characters of a value in a message."""


def written(value: object) -> str:
    """Return a value as JSON writes it, for a message; of a long one the beginning."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = kind_of(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def as_text(value: object) -> str:
    """Return a text as it is, and other values as `written` does, for a message that quotes the value."""
    return value if isinstance(value, str) else written(value)


def kind_of(value: object) -> str:
    """Return the name that a message gives to the type of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    kinds = ((Mapping, "a map"), (set, "a set"), (bytes, "binary data"))
    return next((name for types, name in kinds if isinstance(value, types)), "a list")


def boolean(value: object) -> bool:
    """Convert a truth value, or one of its spellings in any case.

    :raises ValueError: the value is none of these.
    """
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f"must be one of: {', '.join(sorted(TRUE | FALSE))}")


def number(value: object) -> int | float:
    """Convert a number or its text: to an int where the text is one, else to a float.

    :raises ValueError: the value is no number, or not finite, which JSON cannot hold.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a number")
    if isinstance(value, int):
        return value
    try:
        return int(value) if isinstance(value, str) else _finite(value)
    except ValueError:
        pass
    try:
        return _finite(float(value))
    except ValueError:
        raise ValueError("must be a finite number") from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def equality_key(value: object) -> str:
    """Return a text that is the same for values that Python, and so Heat, calls equal: 1, 1.0 and true are.

    Texts have hashes that differ from process to process.  A user can choose many numbers or tuples with the
    same hash, which makes a set of them slow, but not many such texts.
    """
    return repr(_comparable(value))


def _comparable(value: typing.Any) -> object:
    if isinstance(value, str):
        return f"s{value}"
    if isinstance(value, Mapping):
        return ["map", *([str(key), _comparable(value[key])] for key in sorted(value, key=str))]
    if isinstance(value, list | tuple):
        return ["list", *map(_comparable, value)]
    if isinstance(value, float) and not value.is_integer():
        return f"n{value!r}"
    return None if value is None else f"n{int(value):x}"
