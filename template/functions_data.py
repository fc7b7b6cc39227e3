"""Functions over lists and maps.  Each takes its evaluated argument and the template's version."""

import functools
import itertools
import json
import typing
from collections.abc import Iterator, Mapping, Sequence

import yaql
from yaql.language import exceptions as yaql_errors

from .errors import TemplateError
from .versions import Version

Json = typing.Any


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _short(value: Json) -> str:
    return repr(value)[:120]


def map_merge(args: Json, version: Version) -> Json:
    """``[map, map, …]``; later ones win, None counts as empty."""
    if not _is_list(args):
        raise TemplateError("must be a list of maps, e.g. [{a: 1}, {b: 2}]")
    merged: dict[str, Json] = {}
    for item in args:
        if item is not None and not isinstance(item, Mapping):
            raise TemplateError(f"items to merge must be maps, not {_short(item)}")
        merged.update(item or {})
    return merged


def map_replace(args: Json, version: Version) -> Json:
    """``[map, {keys: {old: new}, values: {old: new}}]``."""
    form = "must be of the form [map, {keys: {old: new}, values: {old: new}}]"
    if not _is_list(args) or len(args) != 2:
        raise TemplateError(form)
    original, changes = args[0] or {}, args[1] or {}
    if (
        not isinstance(original, Mapping)
        or not isinstance(changes, Mapping)
        or set(changes) - {"keys", "values"}
    ):
        raise TemplateError(form)
    keys, values = changes.get("keys") or {}, changes.get("values") or {}
    if not isinstance(keys, Mapping) or not isinstance(values, Mapping):
        raise TemplateError(form)
    replaced: dict[str, Json] = {}
    for key, value in original.items():
        new = keys.get(key)
        if new is None:
            new = key
        elif (new in original and new != key) or new in replaced:
            raise TemplateError(f'the new key "{new}" is in the map already')
        hashable = isinstance(value, str | int | float | bool | None)
        replaced[new] = values.get(value, value) if hashable else value
    return replaced


def filter_list(args: Json, version: Version) -> Json:
    """``[values, list]``: the list without the values."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [[value, …], [item, …]]")
    values, items = args
    if not items:
        return items
    if not _is_list(items):
        raise TemplateError(f"can only filter a list, not {_short(items)}")
    if values and not _is_list(values):
        raise TemplateError(f"the values must be a list, not {_short(values)}")
    return [item for item in items if item not in (values or [])]


def list_concat(args: Json, version: Version) -> Json:
    """``[list, list, …]``; None counts as empty."""
    if not _is_list(args):
        raise TemplateError("must be a list of lists, e.g. [[a], [b, c]]")
    joined: list[Json] = []
    for item in args:
        if item is not None and not _is_list(item):
            raise TemplateError(f"can only concatenate lists, not {_short(item)}")
        joined.extend(item or ())
    return joined


def list_concat_unique(args: Json, version: Version) -> Json:
    """As list_concat, without repetitions."""
    unique: list[Json] = []
    seen: set[str] = set()
    for item in list_concat(args, version):
        key = json.dumps(item, sort_keys=True)
        if key not in seen:
            seen.add(key)
            unique.append(item)
    return unique


def contains(args: Json, version: Version) -> bool:
    """``[value, list]``."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [value, [item, …]]")
    value, items = args
    if not isinstance(items, Sequence):
        raise TemplateError(f"the second argument must be a list, not {_short(items)}")
    return value in items


def equals(args: Json, version: Version) -> bool:
    """``[value, value]``."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [value_1, value_2]")
    return bool(args[0] == args[1])


YAQL_ITERATIONS = 2000
YAQL_MEMORY = 1_000_000


@functools.cache
def _yaql_engine() -> tuple[typing.Any, typing.Any]:
    options = {"yaql.limitIterators": YAQL_ITERATIONS, "yaql.memoryQuota": YAQL_MEMORY}
    return yaql.YaqlFactory().create(options), yaql.create_context()


def yaql_evaluate(args: Json, version: Version) -> Json:
    """``{expression, data}``."""
    if not isinstance(args, Mapping) or "expression" not in args or set(args) - {"expression", "data"}:
        raise TemplateError("must be a map with the keys expression and data")
    if not isinstance(args["expression"], str):
        raise TemplateError(f"expression must be a string, not {_short(args['expression'])}")
    engine, context = _yaql_engine()
    try:
        value = engine(args["expression"]).evaluate(
            {"data": args.get("data", {})}, context.create_child_context()
        )
    except (yaql_errors.YaqlException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise TemplateError(f'cannot evaluate "{args["expression"]}": {error}') from error
    return _plain(value)


def _plain(value: Json) -> Json:
    """JSON of what YAQL gives: its generators, tuples and frozen dicts."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset | Iterator):
        return [_plain(item) for item in value]
    return str(value)


def repeat_bindings(args: Mapping[str, Json], version: Version) -> Iterator[dict[str, Json]]:
    """The values of the variables for each repetition, from the evaluated ``for_each``."""
    loops, permutations = args["for_each"], args.get("permutations", True)
    if not isinstance(loops, Mapping) or not loops:
        raise TemplateError("for_each must be a map of variables to lists")
    lists: list[list[Json]] = []
    for variable, items in loops.items():
        mapping = isinstance(items, Mapping) and version.repeat_maps and permutations
        if items is not None and not _is_list(items) and not mapping:
            raise TemplateError(f"for_each.{variable} must be a list, not {_short(items)}")
        lists.append(list(items or ()))
    if not permutations and len({len(items) for items in lists}) > 1:
        raise TemplateError("the lists of for_each must have the same length when permutations is false")
    rows = itertools.product(*lists) if permutations else zip(*lists, strict=True)
    return (dict(zip(loops, row, strict=True)) for row in rows)


def substitute(tree: Json, values: Mapping[str, Json]) -> Json:
    """The tree with each variable of repeat replaced in all its strings and keys.

    A string that is nothing but the variable becomes the value itself, of whatever type.
    """
    if isinstance(tree, str):
        if tree in values:
            return values[tree]
        for variable, value in values.items():
            if variable in tree:
                text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
                tree = tree.replace(variable, text)
        return tree
    if isinstance(tree, Mapping):
        return {str(substitute(key, values)): substitute(item, values) for key, item in tree.items()}
    if isinstance(tree, list):
        return [substitute(item, values) for item in tree]
    return tree
