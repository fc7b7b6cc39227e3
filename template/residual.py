"""Residuals: the parts of a template that only the cloud can resolve, and their evaluation.

A function node is ``{"$fn": name, "args": [argument, …]}``; see language.py.  Nodes for which facts of
other resources are needed: ``get_resource`` [name], ``get_attr`` [name, attribute or "", path…].  Node
for secrets: ``sealed`` [token].  ``select`` [value, path…] walks into a value, ``get_param`` [value, path…]
too, but gives "" where the path leads nowhere.  All others hold one argument and are applied by
`APPLY` of functions/table.py.

Only `fold`, `quote`, `mapping`, `sealed` and `partial` make residuals.  A value from outside (of a user, a
resource type, a signal, a nested stack's output) is data.  It becomes part of a residual by `quote`, which
marks as ``literal`` [map] each map that looks like a node.
"""

import functools
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..shapes import Json
from .budget import Budget, new_budget
from .errors import LimitExceeded, TemplateError
from .functions.table import APPLY, VERSIONS
from .language import MAX_VALUE_DEPTH, Reference, Residual, Version

FN = "$fn"
ARGS = "args"
_LOOKED_UP = frozenset({"get_resource", "get_attr", "select", "get_param"})
_AROUND = MAX_VALUE_DEPTH // 4
"""Levels that are kept free for the template around the value of another resource."""


class ResidualError(TemplateError):
    """A function cannot be evaluated with the values that the resources gave."""


class ResidualTooCostly(ResidualError):
    """It may be possible with more time or memory."""


class Lookup(typing.Protocol):
    """The source of the values of other resources and of secrets.

    For `evaluate` they are values, for `partial` they are residuals.
    """

    def reference_id(self, resource: str) -> Json:
        """Return the value of get_resource."""

    def attribute(self, resource: str, name: str) -> Json:
        """Return an attribute's value; the name "" means a dict of all attributes."""

    def unseal(self, token: str) -> Json:
        """Return the value of a sealed token."""


def node(function: str, *args: Residual, version: Version | None = None) -> dict[str, Residual]:
    """Return a function node, with the version where the function's meaning depends on it."""
    residual: dict[str, Residual] = {FN: function, ARGS: list(args)}
    if version is not None:
        residual["v"] = version.date
    return residual


def is_node(value: object) -> typing.TypeGuard[dict[str, Residual]]:
    """Return whether the value is a function node; a map with other contents under its keys is none."""
    return isinstance(value, dict) and FN in value and _is_formed(value)


def _is_formed(item: dict[str, Json]) -> bool:
    function = item[FN]
    args = item.get(ARGS)
    if not isinstance(function, str) or not isinstance(args, list):
        return False
    if function in ("literal", "sealed", "error"):
        return len(args) == 1 and isinstance(args[0], dict if function == "literal" else str)
    return function in _LOOKED_UP or function in APPLY


def quote(value: Json) -> Residual:
    """Return a literal as a residual: dicts that look like nodes are marked as literals."""
    if isinstance(value, Mapping):
        quoted = {key: quote(item) for key, item in value.items()}
        return node("literal", quoted) if FN in quoted else quoted
    if isinstance(value, list | tuple):
        return [quote(item) for item in value]
    return value


def failing(message: str) -> Residual:
    """Return the residual of a value that can never be evaluated: whoever reads it gets the message."""
    return node("error", message)


def mapping(values: Mapping[str, Residual]) -> Residual:
    """Return the residual of a map from names, which users choose, to residuals."""
    return node("literal", dict(values)) if FN in values else dict(values)


def members(tree: Residual) -> Mapping[str, Residual]:
    """Return the parts of a map's residual by name; none where a function makes the map."""
    if is_node(tree):
        return typing.cast(Mapping[str, Residual], tree[ARGS][0]) if tree[FN] == "literal" else {}
    return tree if isinstance(tree, Mapping) else {}


def unquoted(value: Residual) -> Json:
    """Return the data that was quoted; nothing in it is ever evaluated or opened."""
    if isinstance(value, dict):
        inner = value[ARGS][0] if is_node(value) and value[FN] == "literal" else value
        return {key: unquoted(item) for key, item in inner.items()}
    return [unquoted(item) for item in value] if isinstance(value, list) else value


def sealed(token: str) -> Residual:
    """Return the node of a secret."""
    return node("sealed", token)


def token_of(value: Residual) -> str | None:
    """Return the token of a secret's node; None: the value is something else."""
    if not is_node(value) or value[FN] != "sealed" or value.keys() != {FN, ARGS}:
        return None
    token: str = value[ARGS][0]
    return token


def retokened(tree: Residual, change: Callable[[str], str]) -> Residual:
    """Return the tree with `change` of each secret's token in its place."""
    if isinstance(tree, list):
        return [retokened(item, change) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if (token := token_of(tree)) is not None:
        return sealed(change(token))
    if is_node(tree) and tree[FN] == "literal":
        [inner] = tree[ARGS]
        return {**tree, ARGS: [{key: retokened(item, change) for key, item in inner.items()}]}
    return {key: retokened(item, change) for key, item in tree.items()}


def nodes(tree: Residual) -> Iterator[dict[str, Residual]]:
    """Yield the function nodes of the tree but literals, in the order of the document, outer ones first."""
    stack = [tree]
    while stack:
        item = stack.pop()
        if is_node(item):
            if item[FN] != "literal":
                yield item
                stack.extend(reversed(item[ARGS]))
            else:
                stack.extend(reversed(item[ARGS][0].values()))
        elif isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def holds_secret(tree: Residual) -> bool:
    """Return whether the tree, or a value computed from it, contains a secret."""
    return any(item[FN] == "sealed" for item in nodes(tree))


def is_failing(tree: Residual) -> bool:
    """Return whether a part of the tree can never be evaluated, or only once a parameter has a value."""
    return any(item[FN] == "error" for item in nodes(tree))


def is_deferred(tree: Residual) -> bool:
    """Return whether anything in the tree is left to evaluate."""
    return next(nodes(tree), None) is not None


def first_node(tree: Residual) -> tuple[dict[str, Residual] | None, int]:
    """Return the first of `nodes`, or None, and the number of visited parts of the tree."""
    stack = [tree]
    visited = 0
    while stack:
        item = stack.pop()
        visited += 1
        if is_node(item):
            if item[FN] != "literal":
                return item, visited
            stack.extend(reversed(item[ARGS][0].values()))
        elif isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return None, visited


def references(tree: Residual) -> tuple[Reference, ...]:
    """Return the uses of other resources in the tree, each once, in the order of the document."""
    found_references: dict[Reference, None] = {}
    for item in nodes(tree):
        args = item[ARGS]
        if item[FN] == "get_resource":
            found_references[Reference(args[0])] = None
        elif item[FN] == "get_attr":
            path = tuple(part for part in args[2:] if isinstance(part, str | int))
            found_references[Reference(args[0], args[1], path)] = None
    return tuple(found_references)


class ReadOnce:
    """A lookup that reads each attribute once.

    To convert a large one takes long, and a template may select of it often.
    """

    def attribute(self, resource: str, name: str) -> Json:
        """Return an attribute of a resource, or all of them for an empty name."""
        return self._read_once(resource, name)

    @functools.cached_property
    def _read_once(self) -> Callable[[str, str], Json]:
        return functools.cache(self._read)

    def _read(self, resource: str, name: str) -> Json:
        raise NotImplementedError


@dataclass(frozen=True)
class _Run:
    """Lookup, budget and kind of one evaluation."""

    lookup: Lookup
    budget: Budget
    keep_sealed: bool


def evaluate(tree: Residual, lookup: Lookup, budget: Budget | None = None) -> Json:
    """Return the value of a residual.

    :param budget: the budget of the request or step; None: a new one with the service's usual limits.
    :raises ResidualError: a function cannot work with the values it gets, or they become too large.
    """
    return _within(budget, tree, lookup, keep_sealed=False)


def partial(tree: Residual, lookup: Lookup, budget: Budget | None = None) -> Residual:
    """Return the tree with everything evaluated that needs no secret; secrets stay sealed.

    :param budget: the budget of the request or step; None: a new one with the service's usual limits.
    """
    return _within(budget, tree, lookup, keep_sealed=True)


def _within(budget: Budget | None, tree: Residual, lookup: Lookup, *, keep_sealed: bool) -> Json:
    if not tree:
        return tree
    if budget is None:
        with new_budget() as own_budget:
            return _evaluate(tree, _Run(lookup, own_budget, keep_sealed))
    return _evaluate(tree, _Run(lookup, budget, keep_sealed))


def _evaluate(tree: Residual, run: _Run) -> Json:
    if isinstance(tree, dict):
        if is_node(tree):
            return _evaluate_node(tree, run)
        return {key: _evaluate(item, run) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_evaluate(item, run) for item in tree]
    return tree


def _evaluate_node(item: dict[str, Residual], run: _Run) -> Json:
    function = item[FN]
    args = item[ARGS]
    if function == "literal":
        inner = {key: _evaluate(part, run) for key, part in args[0].items()}
        return node("literal", inner) if run.keep_sealed else inner
    if function == "sealed":
        return item if run.keep_sealed else run.lookup.unseal(args[0])
    if function == "error":
        raise ResidualError(args[0])
    if function == "get_resource":
        return _from_resource("get_resource", run.lookup.reference_id(args[0]), run)
    values = [_evaluate(arg, run) for arg in args]
    if function == "get_attr":
        name, attribute, *path = values
        attribute_value = run.lookup.attribute(name, attribute)
        if not path:
            return _from_resource("get_attr", attribute_value, run)
        values = [attribute_value, *path]
        function = "select"
    if run.keep_sealed and function in ("select", "get_param"):
        values = _into(values, None if function == "select" else "")
        # It is charged before anybody looks through it: of a large value a template may select many times.
        _from_resource(item[FN], values[0], run)
        if len(values) == 1:
            return values[0]
    if run.keep_sealed and is_deferred(values):
        return {**item, FN: function, ARGS: values}
    return _apply(item, function, [plain(value) for value in values] if run.keep_sealed else values, run)


def _into(values: list[Residual], missing: Json) -> list[Residual]:
    """Return the arguments of a selection after as many steps of its path as lead into no secret.

    So a plain value beside a secret is plain, and of a large value only the part is read that is selected.
    """
    value, *path = values
    while path and isinstance(path[0], str | int) and not isinstance(path[0], bool):
        parts = members(value) if isinstance(value, dict) else {}
        if isinstance(value, list):
            value = _member(value, path[0], missing)
        elif parts:
            value = parts.get(str(path[0]), missing)
        else:
            break  # The selection itself knows what such a path means.
        path = path[1:]
    return [value, *path]


def _member(items: list[Residual], index: str | int, missing: Json) -> Residual:
    try:
        return items[int(index)]
    except (ValueError, IndexError):
        return missing


def _from_resource(function: str, value: Json, run: _Run) -> Json:
    """Return a value of another resource, charged: a template may use it many times."""
    try:
        run.budget.take_value(value, _AROUND)
    except TemplateError as error:
        raise _error_of(error, f"{function}: {error.message}") from error
    return value


def _apply(item: dict[str, Residual], function: str, values: Sequence[Json], run: _Run) -> Json:
    try:
        if function in ("select", "get_param"):
            value = select(values[0], values[1:], None if function == "select" else "")
        else:
            value = APPLY[function](values[0], _version(item), run.budget)
        run.budget.take_value(value, _AROUND)
        return quote(value) if run.keep_sealed else value
    except TemplateError as error:
        problem = error
    if any(part[FN] == "sealed" for part in nodes(item[ARGS])):
        # Neither the message nor the cause of the error may show the secret.
        raise _error_of(problem, f"{function}: cannot be evaluated with the value of a hidden parameter")
    raise _error_of(problem, f"{function}: {problem.message}") from problem


def _error_of(problem: TemplateError, text: str) -> ResidualError:
    return ResidualTooCostly(text) if isinstance(problem, LimitExceeded) else ResidualError(text)


def _version(item: dict[str, Residual]) -> Version:
    return VERSIONS[item.get("v", "wallaby")]


def plain(tree: Residual) -> Json:
    """Return the value of a residual in which nothing is deferred."""
    if is_node(tree):
        return {key: item if isinstance(item, str) else plain(item) for key, item in tree[ARGS][0].items()}
    if isinstance(tree, dict):
        return {key: item if isinstance(item, str) else plain(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [item if isinstance(item, str) else plain(item) for item in tree]
    return tree


def select(value: Json, path: Sequence[Json], missing: Json = None) -> Json:
    """Walk into maps by key, into lists and strings by index; `missing` where the path leads nowhere."""
    for part in path:
        try:
            if isinstance(value, Mapping):
                value = value[part] if part in value else value[str(part)]
            elif isinstance(value, Sequence):
                value = value[int(part)]
            else:
                return missing
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            return missing
    return value
