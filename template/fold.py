"""Folding: evaluation at compile time of everything that is known without the cloud."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..shapes import Json, JsonMap
from .budget import Budget, check_depth, located
from .errors import (
    SUGGESTION,
    InvalidReference,
    LimitExceeded,
    TemplateError,
    UnknownResource,
    Unresolvable,
    ValueUnknown,
    not_provided,
)
from .formats import refuse_other
from .functions.table import APPLY, wrong_form
from .language import Parameter, Path, Residual, Size, Version, measure
from .residual import (
    failing,
    first_node,
    is_deferred,
    is_failing,
    is_node,
    mapping,
    node,
    plain,
    quote,
    select,
)
from .scalars import written
from .suggestions import closest


class _Omitted:
    """The result of ``if`` without a third argument (2021-04-16): the item is left out."""


OMITTED = _Omitted()
_LEAF = (str, int, float, type(None))
"""Types of the parts that have nothing inside; most parts of a template are of these."""


@dataclass(frozen=True)
class FoldScope:
    """The meaning of names in one template.

    :ivar resources: names that may be referred to.
    :ivar disabled: names of resources whose condition is false.
    :ivar condition: evaluates the value of a condition (a name, a bool, or a condition function).
    :ivar facade: the parent template's definition of this stack's resource; None in a root stack.
    :ivar budget: the budget of the request.
    :ivar mappings: the section Mappings of a template in CloudFormation's format.
    :ivar zones: names of the cloud's availability zones.
    :ivar sizes: the sizes of the values of parameters, as far as they were used.
    """

    version: Version
    parameters: Mapping[str, Parameter]
    pseudo: Mapping[str, str]
    files: Mapping[str, str]
    resources: frozenset[str]
    disabled: frozenset[str]
    condition: Callable[[Json, Path], bool]
    facade: Mapping[str, Residual] | None = None
    functions: frozenset[str] = field(default=frozenset())
    budget: Budget = field(default_factory=Budget)
    mappings: JsonMap = field(default_factory=dict)
    zones: Sequence[str] = ()
    sizes: dict[str, Size] = field(default_factory=dict)


def fold(tree: Json, scope: FoldScope, path: Path) -> Residual:
    """Return the tree with its functions evaluated as far as possible.

    :raises TemplateError: a part of the tree is wrong; with the part's path.
    """
    try:
        value = _fold(tree, scope, path)
    except LimitExceeded as error:
        raise located(error, *path) from error
    return None if value is OMITTED else value


def fold_parts(tree: Json, scope: FoldScope, path: Path) -> tuple[Residual, list[TemplateError]]:
    """Return the tree as `fold` does, and the errors in it; a part that has one becomes a failing node.

    :raises LimitExceeded: the tree costs too much.
    """
    try:
        return fold(tree, scope, path), []
    except LimitExceeded:
        raise
    except TemplateError as error:
        key = next(iter(error.path[len(path) :]), None)
        if isinstance(tree, Mapping) and not (len(tree) == 1 and key in scope.functions) and key is not None:
            parts = {str(name): fold_parts(item, scope, (*path, str(name))) for name, item in tree.items()}
            wrong = [each for _, inside in parts.values() for each in inside]
            if wrong:
                values = {name: value for name, (value, _) in parts.items()}
                return mapping(values), wrong
        elif isinstance(tree, list | tuple):
            items = [fold_parts(item, scope, (*path, index)) for index, item in enumerate(tree)]
            if wrong := [each for _, inside in items for each in inside]:
                return [value for value, _ in items], wrong
        return failing(error.message), [error]


def _fold(tree: Json, scope: FoldScope, path: Path) -> Residual | _Omitted:
    if isinstance(tree, Mapping):
        scope.budget.step(1 + len(tree))
        if len(tree) == 1:
            ((name, argument),) = tree.items()
            if name in scope.functions:
                return _function(str(name), argument, scope, path)
            refuse_other(name, argument, scope.version, path)
        folded = {}
        for key, item in tree.items():
            value = item if isinstance(item, _LEAF) else _fold(item, scope, (*path, str(key)))
            if value is not OMITTED:
                folded[str(key)] = value
        return node("literal", folded) if "$fn" in folded else folded
    if isinstance(tree, list | tuple):
        scope.budget.step(1 + len(tree))
        items = [
            item if isinstance(item, _LEAF) else _fold(item, scope, (*path, index))
            for index, item in enumerate(tree)
        ]
        return [item for item in items if item is not OMITTED]
    return tree


def _function(name: str, argument: Json, scope: FoldScope, path: Path) -> Residual | _Omitted:
    path = (*path, name)
    special = _SPECIAL.get(name)
    try:
        if special is not None:
            return special(argument, scope, path)
        return _applied(name, fold(argument, scope, path), scope, path)
    except ValueUnknown as error:
        return failing(error.message)
    except TemplateError as error:
        if error.path[: len(path)] == path:
            raise
        raise type(error)(error.message, path) from error


def _applied(name: str, folded: Residual, scope: FoldScope, path: Path) -> Residual:
    """Return the function's value, or a node for it where its argument is not known yet."""
    if _is_deferred(folded, scope.budget):
        wrong = None if is_node(folded) else wrong_form(name, folded)
        if wrong is not None:
            raise TemplateError(wrong)
        return node(name, folded, version=scope.version)
    value = APPLY[name](plain(folded), scope.version, scope.budget)
    if isinstance(value, str):  # It was charged where it was made.
        scope.budget.stored += len(value)
        return value
    scope.budget.store_value(value, len(path))
    return quote(value)


def _is_deferred(folded: Residual, budget: Budget) -> bool:
    """Return is_deferred, charged: nested functions read the same values again on each level."""
    deferred, visited = first_node(folded)
    budget.step(visited // 8)
    return deferred is not None


def _plain(folded: Residual, path: Path, noun: str) -> Json:
    """Return an argument that must be known at compile time.

    :raises ValueUnknown: the argument depends on a parameter whose value is not known yet.
    """
    if is_failing(folded):
        raise ValueUnknown(f"{noun} is not known", path)
    if is_deferred(folded):
        raise TemplateError(f"{noun} must be known before any resource exists", path)
    return plain(folded)


def _get_param(argument: Json, scope: FoldScope, path: Path) -> Residual:
    args = fold(argument, scope, path)
    name, *steps = args if isinstance(args, list) and args else [args]
    name = _plain(name, path, "the parameter's name")
    if not isinstance(name, str):
        raise TemplateError(f"the parameter's name must be a string, not {written(name)}")
    if name not in scope.parameters and name not in scope.pseudo:
        hint = closest(name, [*scope.parameters, *scope.pseudo])
        raise Unresolvable(f'{not_provided(name)}{SUGGESTION}parameter "{name}"{hint}')
    if name in scope.pseudo:
        value = scope.pseudo[name]
        as_is = False
    else:
        parameter = scope.parameters[name]
        value = parameter.value
        as_is = parameter.hidden or not parameter.is_known
    if steps and not as_is and not is_deferred(steps):
        selected = select(value, plain(steps), "")
        scope.budget.store_value(selected, len(path))
        return quote(selected)
    inner = value if as_is else _copy(name, value, scope, path)
    return node("get_param", inner, *steps) if steps else inner


def _copy(name: str, value: Json, scope: FoldScope, path: Path) -> Residual:
    """Return a copy of a parameter's value, charged."""
    if isinstance(value, str):
        scope.budget.store(len(value))
        return value
    size = scope.sizes.get(name) or scope.sizes.setdefault(name, measure(value))
    scope.budget.store(size.bytes)
    check_depth(len(path) + size.depth)
    return quote(value)


def check_resource(name: object, scope: FoldScope, path: Path) -> str:
    """Return the name of a resource, checked.

    :param path: the path of the function that names the resource.
    :raises InvalidReference: the template has no such resource.
    """
    if not isinstance(name, str):
        raise InvalidReference(f"the resource's name must be a string, not {written(name)}")
    if name in scope.disabled:
        hint = f'The resource "{name}" does not exist: its condition is false'
        raise UnknownResource.at(name, path[:-1], hint)
    if name not in scope.resources:
        hint = f'The template has no resource "{name}"{closest(name, scope.resources)}'
        raise UnknownResource.at(name, path[:-1], hint)
    return name


def _get_resource(argument: Json, scope: FoldScope, path: Path) -> Residual:
    name = _plain(fold(argument, scope, path), path, "the resource's name")
    return node("get_resource", check_resource(name, scope, path))


def _get_attr(argument: Json, scope: FoldScope, path: Path) -> Residual:
    if not isinstance(argument, list) or not argument:
        raise TemplateError("must be of the form [resource, attribute, key or index, …]")
    if len(argument) < 2 and not scope.version.attr_path_inside:
        raise TemplateError(
            "must name an attribute: [resource, attribute, …]; all attributes need 2015-10-15"
        )
    name, *rest = fold(argument, scope, path)
    resource = check_resource(_plain(name, path, "the resource's name"), scope, path)
    attribute = _plain(rest[0], path, "the attribute's name") if rest else ""
    if not isinstance(attribute, str):
        raise TemplateError(f"the attribute's name must be a string, not {written(attribute)}")
    return node("get_attr", resource, attribute, *rest[1:])


def _get_file(argument: Json, scope: FoldScope, path: Path) -> Residual:
    name = _plain(fold(argument, scope, path), path, "the file's name")
    if not isinstance(name, str):
        raise TemplateError(f"the file's name must be a string, not {written(name)}")
    if name not in scope.files:
        missing = f'No content found in the "files" section for {path[-1]} path: {name}.'
        raise Unresolvable(f'{missing}{SUGGESTION}file "{name}"{closest(name, scope.files)}')
    scope.budget.store(len(scope.files[name]))
    return scope.files[name]


_FACADE = {name: name for name in ("metadata", "deletion_policy", "update_policy")}
_CFN_FACADE = {"Metadata": "metadata", "DeletionPolicy": "deletion_policy", "UpdatePolicy": "update_policy"}


def _resource_facade(argument: Json, scope: FoldScope, path: Path) -> Residual:
    names = _FACADE if path[-1] == "resource_facade" else _CFN_FACADE
    if not isinstance(argument, str) or argument not in names:
        raise TemplateError(f"must be one of: {', '.join(names)}; not {written(argument)}")
    if scope.facade is None:
        raise TemplateError("can be used in the template of a nested stack only")
    return scope.facade.get(names[argument])


def _ref(argument: Json, scope: FoldScope, path: Path) -> Residual:
    name = _plain(fold(argument, scope, path), path, "the name")
    if not isinstance(name, str):
        raise TemplateError(f"must be the name of a parameter or of a resource, not {written(name)}")
    if name in scope.parameters and (name not in scope.resources or name in scope.disabled):
        return _get_param(name, scope, path)
    if name in scope.resources:
        return node("get_resource", check_resource(name, scope, path))
    if name in scope.pseudo:
        return scope.pseudo[name]
    hint = closest(name, [*scope.parameters, *scope.resources, *scope.pseudo])
    alternatives = f'{SUGGESTION[1:]}parameter and no resource "{name}"{hint}'
    raise UnknownResource.at(name, path[:-1], alternatives)


def _get_att(argument: Json, scope: FoldScope, path: Path) -> Residual:
    if not isinstance(argument, list) or len(argument) != 2:
        raise TemplateError("must be of the form [resource, attribute]")
    return _get_attr(argument, scope, path)


def _find_in_map(argument: Json, scope: FoldScope, path: Path) -> Residual:
    if (wrong := wrong_form("Fn::FindInMap", argument)) is not None:
        raise TemplateError(wrong)
    name, *keys = fold(argument, scope, path)
    name = _plain(name, (*path, 0), "the mapping's name")
    if not isinstance(name, str) or name not in scope.mappings:
        raise InvalidReference(f'the template has no mapping "{name}"{closest(str(name), scope.mappings)}')
    if is_deferred(keys):
        scope.budget.store_value(scope.mappings[name], len(path))
        return _applied("Fn::FindInMap", [quote(scope.mappings[name]), *keys], scope, path)
    value = APPLY["Fn::FindInMap"]([scope.mappings[name], *plain(keys)], scope.version, scope.budget)
    scope.budget.store_value(value, len(path))
    return quote(value)


def _get_azs(argument: Json, scope: FoldScope, path: Path) -> Residual:
    region = fold(argument, scope, path)
    if not isinstance(region, str | None) and not is_deferred(region):
        raise TemplateError(f"must be the name of a region, or an empty string, not {written(region)}")
    return list(scope.zones)


def _if(argument: Json, scope: FoldScope, path: Path) -> Residual | _Omitted:
    lengths = (2, 3) if scope.version.nullable_if else (3,)
    if not isinstance(argument, list) or len(argument) not in lengths:
        raise TemplateError("must be of the form [condition, value if true, value if false]")
    if scope.condition(argument[0], (*path, 0)):
        return _fold(argument[1], scope, (*path, 1))
    return _fold(argument[2], scope, (*path, 2)) if len(argument) == 3 else OMITTED


_Special = Callable[[Json, FoldScope, Path], Residual | _Omitted]
_SPECIAL: Mapping[str, _Special] = {
    "get_param": _get_param,
    "get_resource": _get_resource,
    "get_attr": _get_attr,
    "get_file": _get_file,
    "resource_facade": _resource_facade,
    "if": _if,
    "Ref": _ref,
    "Fn::GetAtt": _get_att,
    "Fn::FindInMap": _find_in_map,
    "Fn::GetAZs": _get_azs,
    "Fn::ResourceFacade": _resource_facade,
    "Fn::If": _if,
}
