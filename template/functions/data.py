"""Functions that compute lists and maps."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from ..errors import LimitExceeded, TemplateError
from ..language import ANY_NUMBER, AWS_DATE, CostMeter, Function, ListForm, MapForm, Version, measure
from ..sandbox import evaluator
from ..sandbox.errors import EvaluationError, LimitReached, UnusableResult
from ..scalars import equality_key, written


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def map_merge(args: Json, version: Version, budget: CostMeter) -> Json:
    """Merge ``[map, map, …]``; later ones win, None counts as empty."""
    if not _is_list(args):
        raise TemplateError("must be a list of maps, e.g. [{a: 1}, {b: 2}]")
    merged: dict[str, Json] = {}
    for item in args:
        if item is not None and not isinstance(item, Mapping):
            raise TemplateError(f"items to merge must be maps, not {written(item)}")
        merged.update(item or {})
    return merged


def map_replace(args: Json, version: Version, budget: CostMeter) -> Json:
    """Replace keys and values: ``[map, {keys: {old: new}, values: {old: new}}]``."""
    form = "must be of the form [map, {keys: {old: new}, values: {old: new}}]"
    if not _is_list(args) or len(args) != 2:
        raise TemplateError(form)
    original, changes = ({} if arg is None else arg for arg in args)
    if (
        not isinstance(original, Mapping)
        or not isinstance(changes, Mapping)
        or set(changes) - {"keys", "values"}
    ):
        raise TemplateError(form)
    keys, values = ({} if changes.get(part) is None else changes[part] for part in ("keys", "values"))
    if not isinstance(keys, Mapping) or not isinstance(values, Mapping):
        raise TemplateError(form)
    replaced: dict[str, Json] = {}
    for key, value in original.items():
        new = keys.get(key)
        if new is None:
            new = key
        elif not isinstance(new, str):
            raise TemplateError(f"a new key must be a string, not {written(new)}")
        elif (new in original and new != key) or new in replaced:
            raise TemplateError(f'the new key "{new}" is in the map already')
        hashable = isinstance(value, str | int | float | bool | None)
        replaced[new] = values.get(value, value) if hashable else value
    return replaced


def filter_list(args: Json, version: Version, budget: CostMeter) -> Json:
    """Return the list of ``[values, list]`` without the values."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [[value, …], [item, …]]")
    values, items = args
    if not items:
        return items
    if not _is_list(items):
        raise TemplateError(f"can only filter a list, not {written(items)}")
    if values and not _is_list(values):
        raise TemplateError(f"the values must be a list, not {written(values)}")
    budget.step(_COMPARED * (len(items) + len(values or ())))
    removed = {equality_key(value) for value in values or ()}
    return [item for item in items if equality_key(item) not in removed]


def list_concat(args: Json, version: Version, budget: CostMeter) -> Json:
    """Concatenate ``[list, list, …]``; None counts as empty."""
    if not _is_list(args):
        raise TemplateError("must be a list of lists, e.g. [[a], [b, c]]")
    joined: list[Json] = []
    for item in args:
        if item is not None and not _is_list(item):
            raise TemplateError(f"can only concatenate lists, not {written(item)}")
        joined.extend(item or ())
    return joined


def list_concat_unique(args: Json, version: Version, budget: CostMeter) -> Json:
    """Concatenate lists, and keep the first of equal items."""
    unique: dict[str, Json] = {}
    for item in list_concat(args, version, budget):
        unique.setdefault(equality_key(item), item)
    return list(unique.values())


def contains(args: Json, version: Version, budget: CostMeter) -> bool:
    """Return whether the value of ``[value, list]`` is in the list, or in a string in its place."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [value, [item, …]]")
    value, items = args
    if not isinstance(items, Sequence):
        raise TemplateError(f"the second argument must be a list, not {written(items)}")
    if isinstance(items, str) and not isinstance(value, str):
        raise TemplateError(f"a string can only contain a string, not {written(value)}")
    return value in items


def equals(args: Json, version: Version, budget: CostMeter) -> bool:
    """Return whether the values of ``[value, value]`` are equal."""
    if not _is_list(args) or len(args) != 2:
        raise TemplateError("must be of the form [value_1, value_2]")
    return bool(args[0] == args[1])


def yaql_evaluate(args: Json, version: Version, budget: CostMeter) -> Json:
    """Evaluate ``{expression, data}`` in a helper process."""
    if not isinstance(args, Mapping) or "expression" not in args or set(args) - {"expression", "data"}:
        raise TemplateError("must be a map with the keys expression and data")
    expression = args["expression"]
    if not isinstance(expression, str):
        raise TemplateError(f"expression must be a string, not {written(expression)}")
    failed = f'cannot evaluate "{expression:.200}"'
    try:
        return evaluator.current().yaql(expression, args.get("data", {}), budget=budget)
    except LimitReached as error:
        raise LimitExceeded(f"{failed}: {error}") from error
    except UnusableResult as error:
        raise TemplateError(str(error)) from error
    except EvaluationError as error:
        raise TemplateError(f"{failed}: {error}") from error


_REPEAT = "must be a map with the keys for_each and template"
_COMPARED = 8
"""Steps of work that the comparison of one item takes."""
_NODE = 256
"""Bytes of a template in which one step of work replaces a variable."""


def repeat(args: Json, version: Version, budget: CostMeter) -> Json:
    """Repeat the template of ``{for_each, template, permutations}``; other keys are ignored.

    As in Heat the template is evaluated first; then the variables are replaced in its value.
    """
    if not isinstance(args, Mapping) or not {"for_each", "template"} <= set(args):
        raise TemplateError(_REPEAT)
    permutations = args.get("permutations", True) if version.repeat_permutations else True
    if not isinstance(permutations, bool):
        raise TemplateError("permutations must be true or false")
    loops = args["for_each"]
    template = args["template"]
    if not isinstance(loops, Mapping) or not loops:
        raise TemplateError("for_each must be a map of variables to lists")
    lists = {
        name: _loop(name, items, maps=version.repeat_maps and permutations) for name, items in loops.items()
    }
    lengths = {len(lists[name]) for name, items in loops.items() if items is not None}
    if not permutations and len(lengths) > 1:
        raise TemplateError("the lists of for_each must have the same length when permutations is false")
    times = math.prod(len(items) for items in lists.values()) if permutations else max(lengths, default=0)
    budget.check_text(times * max(len(json.dumps(template)), 16))
    size = measure(template).bytes
    budget.take(times * size)
    budget.step(times * len(lists) * (1 + size // _NODE))
    rows = itertools.product(*lists.values()) if permutations else zip(*lists.values(), strict=False)
    return [substitute(template, dict(zip(lists, row, strict=True)), budget) for row in rows]


def _loop(name: str, items: Json, *, maps: bool) -> list[Json]:
    if items is None:
        return []
    if not _is_list(items) and not (maps and isinstance(items, Mapping)):
        allowed = "a list or a map" if maps else "a list"
        raise TemplateError(f"for_each.{name} must be {allowed}, not {written(items)}")
    return list(items)


def substitute(tree: Json, values: JsonMap, budget: CostMeter) -> Json:
    """Return the tree with the variables of repeat replaced in all its strings and keys.

    A string that is nothing but the variable becomes the value itself, of any type; Heat takes
    strings only.
    """
    if isinstance(tree, str):
        for variable, value in values.items():
            if tree == variable and not isinstance(value, str):
                budget.take_value(value)
                return value
            if variable in tree:
                text = value if isinstance(value, str) else budget.json_text(value)
                length = len(tree) + tree.count(variable) * len(text)
                budget.check_text(length)
                budget.take_text(length, is_ascii=tree.isascii() and text.isascii())
                tree = tree.replace(variable, text)
        return tree
    if isinstance(tree, Mapping):
        return {
            _text(substitute(key, values, budget)): substitute(item, values, budget)
            for key, item in tree.items()
        }
    if isinstance(tree, list):
        return [substitute(item, values, budget) for item in tree]
    return tree


def _text(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, sort_keys=True)


FUNCTIONS = (
    Function(
        "map_merge",
        "Merges maps; later ones win.",
        "2016-04-08",
        form=ListForm(0, ANY_NUMBER, "[map, …]"),
        apply=map_merge,
    ),
    Function(
        "map_replace",
        "Replaces keys and values of a map.",
        "2016-10-14",
        form=ListForm(2, 2, "[map, {keys: {old: new}, values: {old: new}}]"),
        apply=map_replace,
    ),
    Function(
        "filter",
        "A list without the given values.",
        "2017-02-24",
        form=ListForm(2, 2, "[[value, …], [item, …]]"),
        apply=filter_list,
    ),
    Function(
        "list_concat",
        "Concatenates lists.",
        "2017-09-01",
        form=ListForm(0, ANY_NUMBER, "[list, …]"),
        apply=list_concat,
    ),
    Function(
        "list_concat_unique",
        "Concatenates lists and keeps the first of equal items.",
        "2017-09-01",
        form=ListForm(0, ANY_NUMBER, "[list, …]"),
        apply=list_concat_unique,
    ),
    Function(
        "contains",
        "True if a value is in a list.",
        "2017-09-01",
        "2017-09-01",
        form=ListForm(2, 2, "[value, [item, …]]"),
        apply=contains,
    ),
    Function(
        "equals",
        "True if two values are equal.",
        None,
        "2016-10-14",
        form=ListForm(2, 2, "[value_1, value_2]"),
        apply=equals,
    ),
    Function(
        "yaql",
        "Evaluates a YAQL expression on data.",
        "2016-10-14",
        "2017-09-01",
        form=MapForm(("expression",)),
        apply=yaql_evaluate,
    ),
    Function(
        "repeat",
        "Repeats a piece of template for each item of a list.",
        "2015-04-30",
        form=MapForm(("for_each", "template")),
        apply=repeat,
    ),
    Function(
        "Fn::Equals",
        "True if two values are equal.",
        None,
        form=ListForm(2, 2, "[value_1, value_2]"),
        apply=equals,
        cfn_conditions=(AWS_DATE,),
    ),
)
