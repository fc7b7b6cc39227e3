"""Units in numbers: a size or a time that users write with a unit, where only the number is allowed."""

import re
import typing

_WITH_UNIT = re.compile(r"\s*([0-9]{1,12})\s*([A-Za-z]{1,8})\s*")
_UNIT = re.compile(r"\b(GiB|GB|MiB|MB|KiB|KB|seconds|minutes)\b", re.IGNORECASE)
"""A unit in the description of a property."""
_SIZES = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}
_TIMES = {
    word: seconds
    for words, seconds in (
        ("s sec secs second seconds", 1),
        ("m min mins minute minutes", 60),
        ("h hr hour hours", 3600),
        ("d day days", 86400),
    )
    for word in words.split()
}


def unit_hint(name: str, description: str, value: typing.Any) -> str:
    """Return the end of an error's text: the number to write instead of one with a unit; "": none is known.

    :param name: name of the property.
    :param description: description of the property, which names the unit of its values.
    """
    match = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
    unit = _UNIT.search(description)
    if match is None or unit is None:
        return ""
    base_unit = unit[0] if unit[0].endswith("B") else unit[0].lower()
    number = _converted(int(match[1]), match[2].lower(), base_unit.lower())
    return f"; {name} is in {base_unit}" + (f": write {number}" if number is not None else "")


def _converted(number: int, unit: str, base_unit: str) -> int | None:
    """Return the number in the property's own unit; None: it is none, or the units do not fit."""
    if base_unit in _TIMES:
        factor = _TIMES.get(unit)
        size = _TIMES[base_unit]
    else:
        factor = _SIZES.get(unit[:1]) if unit[1:] in ("", "b", "ib") else None
        size = _SIZES[base_unit[:1]]
    if factor is None or number * factor % size:
        return None
    return number * factor // size
