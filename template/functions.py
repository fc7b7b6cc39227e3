"""The table of functions that need nothing but their argument."""

import typing
from collections.abc import Callable, Mapping

from . import functions_data as data
from . import functions_text as text
from .versions import Version

Json = typing.Any

APPLY: Mapping[str, Callable[[Json, Version], Json]] = {
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
}
"""Name -> function of (evaluated argument, version).

:raises TemplateError: the argument is not what the function takes; the message says what would be right.
"""
