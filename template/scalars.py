"""Numbers and truth values as users spell them."""

import math
import typing

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
FALSE = frozenset({"0", "f", "false", "off", "n", "no"})


def boolean(value: typing.Any) -> bool:
    """A truth value from itself or one of its spellings, in any case.

    :raises ValueError: it is none.
    """
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError(f"must be one of: {', '.join(sorted(TRUE | FALSE))}")


def number(value: typing.Any) -> int | float:
    """A number from itself or its text: an int where the text is one, else a float.

    :raises ValueError: it is none, or not finite, which JSON cannot hold.
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
