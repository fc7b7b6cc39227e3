"""Folding: evaluating at compile time all that can be known without the cloud."""

import difflib
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .errors import InvalidReference, InvalidTemplateVersion, TemplateError
from .functions import APPLY
from .functions_data import repeat_bindings, substitute
from .model import Json, Parameter, Residual
from .residual import is_deferred, node, plain, quote, select
from .versions import REMOVED, Version

Path = tuple[str | int, ...]


class _Omitted:
    """What a 2021-04-16 ``if`` without a third argument gives: the item is not there."""


OMITTED = _Omitted()


def closest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are: {', '.join(names[:20])}" if names else "; there are none"


@dataclass(frozen=True)
class Scope:
    """What names mean in one template.

    :ivar resources: names that may be referred to.
    :ivar disabled: names of resources whose condition is false.
    :ivar condition: evaluates the value of a condition (a name, a bool, or a condition function).
    :ivar facade: what the parent's template says of this stack's resource; None in a root stack.
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


def fold(tree: Json, scope: Scope, path: Path) -> Residual:
    """The tree with its functions evaluated as far as they can be.

    :raises TemplateError: with the path of the wrong part.
    """
    value = _fold(tree, scope, path)
    return None if value is OMITTED else value


def _fold(tree: Json, scope: Scope, path: Path) -> typing.Any:
    if isinstance(tree, Mapping):
        if len(tree) == 1:
            ((name, argument),) = tree.items()
            if name in scope.functions:
                return _function(str(name), argument, scope, path)
            if name in REMOVED:
                raise InvalidTemplateVersion(
                    f'the function "{name}" does not exist in HOT{closest(str(name), scope.functions)}', path
                )
        folded = {}
        for key, item in tree.items():
            value = _fold(item, scope, (*path, str(key)))
            if value is not OMITTED:
                folded[str(key)] = value
        return node("literal", folded) if "$fn" in folded else folded
    if isinstance(tree, list | tuple):
        items = (_fold(item, scope, (*path, index)) for index, item in enumerate(tree))
        return [item for item in items if item is not OMITTED]
    return tree


def _function(name: str, argument: Json, scope: Scope, path: Path) -> typing.Any:
    path = (*path, name)
    special = _SPECIAL.get(name)
    try:
        if special is not None:
            return special(argument, scope, path)
        folded = _fold(argument, scope, path)
        if is_deferred(folded):
            return node(name, folded, version=scope.version)
        return quote(APPLY[name](plain(folded), scope.version))
    except TemplateError as error:
        if error.path[: len(path)] == path:
            raise
        raise type(error)(error.message, path) from error


def _known(argument: Json, scope: Scope, path: Path, what: str) -> Json:
    """An argument that must be known at compile time."""
    folded = _fold(argument, scope, path)
    if is_deferred(folded):
        raise TemplateError(f"{what} must be known before any resource exists", path)
    return plain(folded)


def _get_param(argument: Json, scope: Scope, path: Path) -> Residual:
    args = argument if isinstance(argument, list) else [argument]
    if not args:
        raise TemplateError("must name a parameter")
    name = _known(args[0], scope, path, "the parameter's name")
    if not isinstance(name, str):
        raise TemplateError(f"the parameter's name must be a string, not {name!r}")
    steps = [_fold(part, scope, path) for part in args[1:]]
    if name in scope.pseudo:
        return scope.pseudo[name]
    if name not in scope.parameters:
        hint = closest(name, [*scope.parameters, *scope.pseudo])
        raise InvalidReference(f'the template has no parameter "{name}"{hint}')
    value = scope.parameters[name].value
    if not steps:
        return value if scope.parameters[name].hidden else quote(value)
    if scope.parameters[name].hidden or is_deferred(steps):
        inner = value if scope.parameters[name].hidden else quote(value)
        return node("select", inner, *steps)
    found = select(value, [plain(step) for step in steps])
    # As Heat: a path that leads nowhere is an empty string.
    return "" if found is None else quote(found)


def check_resource(name: Json, scope: Scope) -> str:
    """The name of a resource that exists.

    :raises InvalidReference: it does not.
    """
    if not isinstance(name, str):
        raise InvalidReference(f"the resource's name must be a string, not {name!r}")
    if name in scope.disabled:
        raise InvalidReference(f'the resource "{name}" does not exist: its condition is false')
    if name not in scope.resources:
        raise InvalidReference(f'the template has no resource "{name}"{closest(name, scope.resources)}')
    return name


def _get_resource(argument: Json, scope: Scope, path: Path) -> Residual:
    return node("get_resource", check_resource(_known(argument, scope, path, "the resource's name"), scope))


def _get_attr(argument: Json, scope: Scope, path: Path) -> Residual:
    if not isinstance(argument, list) or not argument:
        raise TemplateError("must be of the form [resource, attribute, key or index, …]")
    if len(argument) < 2 and not scope.version.attr_path_inside:
        raise TemplateError(
            "must name an attribute: [resource, attribute, …]; all attributes need 2015-10-15"
        )
    resource = check_resource(_known(argument[0], scope, path, "the resource's name"), scope)
    attribute = _known(argument[1], scope, path, "the attribute's name") if len(argument) > 1 else ""
    if not isinstance(attribute, str):
        raise TemplateError(f"the attribute's name must be a string, not {attribute!r}")
    steps = [_fold(part, scope, path) for part in argument[2:]]
    return node("get_attr", resource, attribute, *steps)


def _get_file(argument: Json, scope: Scope, path: Path) -> Residual:
    name = _known(argument, scope, path, "the file's name")
    if not isinstance(name, str):
        raise TemplateError(f"the file's name must be a string, not {name!r}")
    if name not in scope.files:
        raise InvalidReference(f'no file "{name}" was sent with the template{closest(name, scope.files)}')
    return quote(scope.files[name])


_FACADE = ("metadata", "deletion_policy", "update_policy")


def _resource_facade(argument: Json, scope: Scope, path: Path) -> Residual:
    if argument not in _FACADE:
        raise TemplateError(f"must be one of: {', '.join(_FACADE)}; not {argument!r}")
    if scope.facade is None:
        raise TemplateError("has a meaning only in a nested stack's template")
    return scope.facade.get(argument)


def _if(argument: Json, scope: Scope, path: Path) -> typing.Any:
    lengths = (2, 3) if scope.version.nullable_if else (3,)
    if not isinstance(argument, list) or len(argument) not in lengths:
        raise TemplateError("must be of the form [condition, value if true, value if false]")
    if scope.condition(argument[0], (*path, 0)):
        return _fold(argument[1], scope, (*path, 1))
    return _fold(argument[2], scope, (*path, 2)) if len(argument) == 3 else OMITTED


def _repeat(argument: Json, scope: Scope, path: Path) -> Residual:
    allowed = {"template", "for_each"} | ({"permutations"} if scope.version.repeat_permutations else set())
    if not isinstance(argument, Mapping) or not {"template", "for_each"} <= set(argument) <= allowed:
        raise TemplateError(f"must be a map with the keys {', '.join(sorted(allowed))}")
    if not isinstance(argument.get("permutations", True), bool):
        raise TemplateError("permutations must be true or false")
    loops = _fold(argument["for_each"], scope, (*path, "for_each"))
    if is_deferred(loops):
        kept = {**argument, "for_each": loops, "template": _fold(argument["template"], scope, path)}
        return node("repeat", kept, version=scope.version)
    bindings = repeat_bindings({**argument, "for_each": plain(loops)}, scope.version)
    items = (
        _fold(substitute(argument["template"], values), scope, (*path, "template")) for values in bindings
    )
    return [item for item in items if item is not OMITTED]


_Special = Callable[[Json, Scope, Path], typing.Any]
_SPECIAL: Mapping[str, _Special] = {
    "get_param": _get_param,
    "get_resource": _get_resource,
    "get_attr": _get_attr,
    "get_file": _get_file,
    "resource_facade": _resource_facade,
    "if": _if,
    "repeat": _repeat,
}
