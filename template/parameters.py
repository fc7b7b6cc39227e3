"""Parameters: declarations, and the values they get."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .constraints import Constraint, ConstraintError, parse_constraint
from .environment import Environment
from .errors import ImmutableParameter, ParameterMissing, TemplateError, UnknownParameter
from .fold import closest
from .model import Json, Parameter
from .residual import sealed
from .versions import Version

TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}
"""HOT's names of the types, and the names the API shows."""

_KEYS = ("type", "label", "description", "default", "hidden", "constraints", "immutable", "tags")
_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})
MASK = "******"

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Declaration:
    """A parameter as declared.

    :ivar default: converted; `has_default` says whether there is one.
    """

    name: str
    type: str
    constraints: tuple[Constraint, ...] = ()
    default: Json = None
    has_default: bool = False
    hidden: bool = False
    immutable: bool = False
    label: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()


def convert(value: Json, value_type: str) -> Json:
    """A value as its type wants it.

    :raises ValueError: it cannot be one.
    """
    return _CONVERT[value_type](value)


def _string(value: Json) -> str:
    if isinstance(value, Mapping | list):
        raise ValueError("must be a string")
    return str(value)


def _number(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a number")
    if isinstance(value, int | float):
        return value
    try:
        return int(value)
    except ValueError:
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            raise ValueError("must be a finite number") from None
        return number


def _boolean(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"must be one of: {', '.join(sorted(_TRUE | _FALSE))}")


def _list(value: Json) -> list[str]:
    if isinstance(value, list):
        return [item if isinstance(item, str) else _item(item) for item in value]
    if isinstance(value, Mapping) or value is None:
        raise ValueError("must be a list, or a string with commas")
    return str(value).split(",") if value != "" else []


def _item(value: Json) -> str:
    if isinstance(value, Mapping | list | None):
        raise ValueError("must be a list of strings")
    return str(value)


def _json(value: Json) -> Json:
    if isinstance(value, Mapping | list):
        return value
    if isinstance(value, str):
        try:
            parsed = json.loads(value) if value else {}
        except ValueError as error:
            raise ValueError(f"must be JSON: {error}") from error
        if isinstance(parsed, dict | list):
            return parsed
    raise ValueError("must be a JSON map or list")


_CONVERT: Mapping[str, Callable[[Json], Json]] = {
    "string": _string,
    "number": _number,
    "boolean": _boolean,
    "comma_delimited_list": _list,
    "json": _json,
}


def parse_declarations(section: Json, version: Version) -> dict[str, Declaration]:
    """The template's ``parameters`` section.

    :raises TemplateError: with the path of what is wrong.
    """
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise TemplateError("must be a map of parameters", ["parameters"])
    return {str(name): _declaration(str(name), body, version) for name, body in section.items()}


def _declaration(name: str, body: Json, version: Version) -> Declaration:
    path: Path = ("parameters", name)
    if not isinstance(body, Mapping):
        raise TemplateError("must be a map with at least a type", path)
    allowed = [key for key in _KEYS if key != "tags" or version.parameter_tags]
    unknown = [str(key) for key in body if key not in allowed]
    if unknown:
        raise TemplateError(f'"{unknown[0]}" is not a key of a parameter{closest(unknown[0], allowed)}', path)
    if body.get("type") not in TYPES:
        wanted = f"must be one of: {', '.join(TYPES)}; not {body.get('type')!r}"
        raise TemplateError(wanted, (*path, "type"))
    value_type = str(body["type"])
    constraints = body.get("constraints") or []
    if not isinstance(constraints, list):
        raise TemplateError("must be a list of constraints", (*path, "constraints"))
    parsed = tuple(
        parse_constraint(item, value_type, (*path, "constraints", index))
        for index, item in enumerate(constraints)
    )
    declared = Declaration(
        name=name,
        type=value_type,
        constraints=parsed,
        has_default=body.get("default") is not None,
        hidden=_flag(body, "hidden", path),
        immutable=_flag(body, "immutable", path),
        label=None if body.get("label") is None else str(body["label"]),
        description=str(body.get("description") or ""),
        tags=_tags(body.get("tags"), (*path, "tags")),
    )
    if not declared.has_default:
        return declared
    default = _checked(declared, body["default"], (*path, "default"))
    return Declaration(**{**declared.__dict__, "default": default})


def _flag(body: Mapping[str, Json], key: str, path: Path) -> bool:
    try:
        return _boolean(body.get(key, False))
    except ValueError as error:
        raise TemplateError("must be true or false", (*path, key)) from error


def _tags(value: Json, path: Path) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise TemplateError("must be a list of strings", path)
    return tuple(value)


def _checked(declared: Declaration, value: Json, path: Path) -> Json:
    """The converted value, if it satisfies the constraints; a hidden one never stands in the error."""
    try:
        converted = convert(value, declared.type)
    except ValueError as error:
        shown = "" if declared.hidden else f", not {value!r}"
        text = str(error) if not declared.hidden else f"must be a {declared.type}"
        raise TemplateError(f"{text}{shown}", path) from error
    for constraint in declared.constraints:
        try:
            constraint.check(converted)
        except ConstraintError as error:
            text = str(error)
            if declared.hidden and not constraint.description:
                text = f"the value does not satisfy the constraint {constraint.name}"
            raise TemplateError(text, path) from error
    return converted


def resolve_parameters(
    section: Json,
    environment: Environment,
    supplied: Mapping[str, Json],
    *,
    version: Version,
    seal: Callable[[Json], str],
) -> dict[str, Parameter]:
    """The value of each declared parameter: from the request, the environment, its parameter_defaults, or the
    template's default, in this order.

    :param section: the template's ``parameters``.
    :param seal: makes the token of a hidden value.
    :raises ParameterMissing: a parameter has no value.
    :raises UnknownParameter: a value is for none of the parameters.
    :raises TemplateError: a declaration or a value is wrong.
    """
    declarations = parse_declarations(section, version)
    given = {**environment.parameters, **supplied}
    for name in given:
        if name not in declarations:
            raise UnknownParameter(f'the template has no parameter "{name}"{closest(name, declarations)}')
    return {name: _resolve(declared, given, environment, seal) for name, declared in declarations.items()}


def _resolve(
    declared: Declaration, given: Mapping[str, Json], environment: Environment, seal: Callable[[Json], str]
) -> Parameter:
    path: Path = ("parameters", declared.name)
    if given.get(declared.name) is not None:
        value, supplied = _checked(declared, given[declared.name], path), True
    elif environment.parameter_defaults.get(declared.name) is not None:
        value, supplied = _checked(declared, environment.parameter_defaults[declared.name], path), True
    elif declared.has_default:
        value, supplied = declared.default, False
    else:
        raise ParameterMissing(f'the parameter "{declared.name}" has no value and no default')
    return Parameter(
        name=declared.name,
        type=declared.type,
        value=sealed(seal(value)) if declared.hidden else value,
        supplied=supplied,
        hidden=declared.hidden,
        immutable=declared.immutable,
        schema=schema(declared),
        tags=declared.tags,
        clear=value,
    )


def schema(declared: Declaration) -> dict[str, Json]:
    """A declaration in the shape of Heat's ``template validate``."""
    shown: dict[str, Json] = {
        "Type": TYPES[declared.type],
        "Description": declared.description,
        "NoEcho": "true" if declared.hidden else "false",
        "Label": declared.label if declared.label is not None else declared.name,
    }
    if declared.has_default:
        shown["Default"] = MASK if declared.hidden else declared.default
    for constraint in declared.constraints:
        shown.update(constraint.shown())
        if constraint.description:
            shown["ConstraintDescription"] = constraint.description
    if declared.tags:
        shown["Tags"] = list(declared.tags)
    return shown


def parameter_strings(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """As the API shows the values of a stack's parameters."""
    return {name: MASK if item.hidden else _text(item) for name, item in parameters.items()}


def _text(parameter: Parameter) -> str:
    if parameter.type == "comma_delimited_list":
        return ",".join(parameter.value)
    if parameter.type == "json":
        return json.dumps(parameter.value)
    return str(parameter.value)


def check_immutable(old: Mapping[str, Parameter], new: Mapping[str, Parameter]) -> None:
    """:raises ImmutableParameter: an update changes a parameter that may not change."""
    changed: Sequence[str] = [
        name
        for name, parameter in new.items()
        if parameter.immutable and name in old and old[name].value != parameter.value
    ]
    if changed:
        raise ImmutableParameter(f"these parameters are immutable: {', '.join(changed)}")
