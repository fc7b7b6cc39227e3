"""The table of functions that need nothing but their argument."""

import typing
from collections.abc import Callable, Mapping

from . import functions_data as data
from . import functions_text as text
from .budget import Budget
from .versions import Version

Json = typing.Any

APPLY: Mapping[str, Callable[[Json, Version, Budget], Json]] = {
    "list_join": text.list_join,
    "str_replace": text.str_replace,
    "str_replace_strict": text.str_replace_strict,
    "str_replace_vstrict": text.str_replace_vstrict,
    "str_split": text.str_split,
    "digest": text.digest,
    "make_url": text.make_url,
    "map_merge": data.map_merge,
    "map_replace": data.map_replace,
    "filter": data.filter_list,
    "list_concat": data.list_concat,
    "list_concat_unique": data.list_concat_unique,
    "contains": data.contains,
    "equals": data.equals,
    "yaql": data.yaql_evaluate,
    "repeat": data.repeat,
}
"""Name -> function of (evaluated argument, version, budget of the request).

A text that a function makes is charged to the budget before it is made, and so is whatever is larger than the
argument; a value of another type is charged by who calls.

:raises LimitExceeded: it would cost too much.
:raises TemplateError: the argument is not what the function takes; the message says what would be right.
"""

_ANY = 1_000_000
_LISTS: Mapping[str, tuple[int, int, str]] = {
    "list_join": (2, _ANY, "[delimiter, list, …]"),
    "str_split": (2, 3, "[delimiter, string, index]"),
    "digest": (2, 2, "[algorithm, string]"),
    "map_merge": (0, _ANY, "[map, …]"),
    "map_replace": (2, 2, "[map, {keys: {old: new}, values: {old: new}}]"),
    "filter": (2, 2, "[[value, …], [item, …]]"),
    "list_concat": (0, _ANY, "[list, …]"),
    "list_concat_unique": (0, _ANY, "[list, …]"),
    "contains": (2, 2, "[value, [item, …]]"),
    "equals": (2, 2, "[value_1, value_2]"),
    "if": (2, 3, "[condition, value if true, value if false]"),
}
_MAPS: Mapping[str, tuple[str, ...]] = {
    "str_replace": ("template", "params"),
    "str_replace_strict": ("template", "params"),
    "str_replace_vstrict": ("template", "params"),
    "repeat": ("for_each", "template"),
    "yaql": ("expression",),
    "make_url": (),
}


def wrong_form(name: str, argument: Json) -> str | None:
    """What is wrong with the outer form of an argument that cannot be evaluated yet; None: nothing is."""
    if name in _LISTS:
        least, most, form = _LISTS[name]
        if not isinstance(argument, list) or not least <= len(argument) <= most:
            return f"must be of the form {form}"
    keys = _MAPS.get(name)
    if keys is not None and (not isinstance(argument, Mapping) or not set(keys) <= set(argument)):
        return f"must be a map{keys and ' with the keys ' + ' and '.join(keys) or ''}"
    return None
