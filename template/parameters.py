"""Parameters: declarations, and the values that they get."""

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..shapes import Json, JsonMap
from .constraints import Constraint, ConstraintError, Custom
from .conversion import as_members, convert
from .declared_constraints import KINDS, parse_constraint
from .environment import Environment
from .errors import (
    SUGGESTION,
    ErrorList,
    ImmutableParameter,
    InvalidDeclaration,
    LimitExceeded,
    ParameterMissing,
    TemplateError,
    UnknownParameter,
    named_at_once,
    not_provided,
)
from .formats import declaration_in_hot, find_version, section_of
from .language import Parameter, Path, Version
from .residual import failing, sealed
from .scalars import boolean, written
from .suggestions import closest

TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}
"""HOT's names of the types, and the names the API shows."""

_KEYS = ("type", "label", "description", "default", "hidden", "constraints", "immutable", "tags", "schema")
"""`schema` is accepted and, as in Heat, ignored."""

MASK = "******"


@dataclass(frozen=True)
class Declaration:
    """A parameter as declared.

    :ivar default: converted; `has_default` says whether there is one.
    :ivar written_default: the default as the template has it.
    :ivar is_wrong: the declaration has an error; the parameter counts as one of which nothing is known.
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
    written_default: Json = None
    is_wrong: bool = False


def parse_declarations(
    section: Json, version: Version, errors: ErrorList | None = None, *, is_draft: bool = False
) -> dict[str, Declaration]:
    """Parse the template's ``parameters`` section.

    :param errors: gets the errors of single declarations; None: all of them are raised.
    :param is_draft: defaults need not satisfy constraints.
    :raises TemplateError: the section is wrong; with the path of the wrong part.
    """
    if errors is None:
        with named_at_once() as errors:
            return parse_declarations(section, version, errors, is_draft=is_draft)
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise TemplateError("must be a map of parameters", ["parameters"])
    declared: dict[str, Declaration] = {}
    for name, body in section.items():
        declared[str(name)] = _declaration(str(name), body, version, errors, is_draft=is_draft)
    return declared


def find_unfit_defaults(template: JsonMap) -> Iterator[tuple[Path, str]]:
    """Yield the defaults of a template that do not satisfy their own constraints, each with the reason."""
    section = section_of(template, "parameters")
    section = section if isinstance(section, Mapping) else {}
    declarations = parse_declarations(section, find_version(template), ErrorList(), is_draft=True)
    for name, declared in declarations.items():
        if declared.has_default and not declared.is_wrong:
            path: Path = ("parameters", name, "default")
            try:
                _constrained(_without_custom(declared), declared.default, path)
            except TemplateError as error:
                yield path, error.message


def declarations_of(template: JsonMap) -> dict[str, Declaration]:
    """Return the valid declarations of a template's parameters, in either format.

    :raises TemplateError: the version is unknown.
    """
    section = section_of(template, "parameters")
    section = section if isinstance(section, Mapping) else {}
    declarations = parse_declarations(section, find_version(template), ErrorList())
    return {name: declared for name, declared in declarations.items() if not declared.is_wrong}


def declared_names(template: JsonMap) -> frozenset[str]:
    """Return the names of a template's parameters, in either format; none where the section is wrong."""
    declarations = section_of(template, "parameters")
    return frozenset(map(str, declarations)) if isinstance(declarations, Mapping) else frozenset()


def _declaration(
    name: str, body: Json, version: Version, errors: ErrorList, *, is_draft: bool
) -> Declaration:
    wrong = ErrorList()
    # Whoever uses a parameter with an error need not hear of it again.
    declared = Declaration(name, "string", has_default=True, is_wrong=True)
    with wrong.collect():
        declared = _parsed_declaration(name, body, version, wrong)
        if declared.has_default:
            path: Path = ("parameters", name, "default")
            declared = dataclasses.replace(
                declared, default=_converted(declared, declared.written_default, path)
            )
            if not is_draft:
                _constrained(_without_custom(declared), declared.default, path)
    if wrong.is_empty:
        return declared
    errors.add_all(wrong)
    return dataclasses.replace(declared, has_default=True, is_wrong=True)


def _parsed_declaration(name: str, body: Json, version: Version, errors: ErrorList) -> Declaration:
    path: Path = ("parameters", name)
    if not isinstance(body, Mapping):
        raise InvalidDeclaration("must be a map with at least a type", path)
    if version.is_cfn:
        body = declaration_in_hot(body, path)
    allowed = [key for key in _KEYS if key != "tags" or version.parameter_tags]
    for key in (str(key) for key in body if key not in allowed):
        errors.add(InvalidDeclaration(f'"{key}" is not a key of a parameter{closest(key, allowed)}', path))
    if body.get("type") not in tuple(TYPES):
        text = f"must be one of: {', '.join(TYPES)}; not {written(body.get('type'))}"
        raise InvalidDeclaration(text, (*path, "type"))
    value_type = str(body["type"])
    parsed = _constraints(body.get("constraints") or [], value_type, version, path, errors)
    return Declaration(
        name=name,
        type=value_type,
        constraints=parsed,
        has_default=body.get("default") is not None,
        written_default=body.get("default"),
        hidden=_flag(body, "hidden", path, errors),
        immutable=_flag(body, "immutable", path, errors),
        label=None if body.get("label") is None else str(body["label"]),
        description=str(body.get("description") or ""),
        tags=_tags(body.get("tags"), (*path, "tags"), errors),
    )


def _without_custom(declared: Declaration) -> Declaration:
    """Return the declaration by which defaults are judged.

    As in Heat a default that is not used need not satisfy custom constraints: it is often empty.
    """
    plain = tuple(item for item in declared.constraints if not isinstance(item, Custom))
    return dataclasses.replace(declared, constraints=plain)


def _constraints(
    declared: Json, value_type: str, version: Version, path: Path, errors: ErrorList
) -> tuple[Constraint, ...]:
    if not isinstance(declared, list):
        errors.add(InvalidDeclaration("must be a list of constraints", (*path, "constraints")))
        return ()
    kinds = [kind for kind in KINDS if kind != "modulo" or version.parameter_modulo]
    parsed: list[Constraint] = []
    for index, item in enumerate(declared):
        try:
            parsed.append(parse_constraint(item, value_type, (*path, "constraints", index), kinds))
        except LimitExceeded as error:
            errors.add(error)
        except TemplateError as error:
            errors.add(InvalidDeclaration(error.message, error.path))
    return tuple(parsed)


def _flag(body: JsonMap, key: str, path: Path, errors: ErrorList) -> bool:
    try:
        return boolean(False if body.get(key) is None else body[key])
    except ValueError:
        errors.add(InvalidDeclaration("must be true or false", (*path, key)))
        return True  # If it is to hide the value, no error shows it.


def _tags(value: object, path: Path, errors: ErrorList) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        errors.add(InvalidDeclaration("must be a list of strings", path))
        return ()
    return tuple(value)


def _checked(declared: Declaration, value: Json, path: Path) -> Json:
    """Return the converted value, if it satisfies the constraints."""
    return _constrained(declared, _converted(declared, value, path), path)


def _converted(declared: Declaration, value: Json, path: Path) -> Json:
    """Return the value as one of the parameter's type.

    A hidden value is neither in the error nor in the error that caused it, which a log may show.
    """
    try:
        return convert(value, declared.type)
    except ValueError as error:
        if not declared.hidden:
            raise TemplateError(f"{error}, not {written(value)}", path) from error
    raise TemplateError(f"must be a {declared.type}", path)


def _constrained(declared: Declaration, value: Json, path: Path) -> Json:
    for constraint in declared.constraints:
        try:
            constraint.check(value)
        except ConstraintError as error:
            if not declared.hidden:
                raise TemplateError(str(error), path) from error
        except LimitExceeded as error:
            raise LimitExceeded(error.message, path) from error
        else:
            continue
        text = f"the value does not satisfy the constraint {constraint.name}"
        raise TemplateError(constraint.description or text, path)
    return value


@dataclass(frozen=True)
class GivenValues:
    """The values that a stack's parameters are given.

    :ivar supplied: the values of the request, which win over the environment's.
    :ivar secret: names that are hidden in any case, besides those that the environment hides.
    :ivar unknown: names of parameters whose values are not known yet.
    :ivar from_resource: `supplied` are the properties of a resource, whose nested stack this is.
    :ivar is_draft: nobody makes the stack now: a missing value is one that is not known yet, and defaults of
        the template need not satisfy constraints.
    """

    environment: Environment
    supplied: JsonMap
    secret: Collection[str] = ()
    unknown: Collection[str] = ()
    from_resource: bool = False
    is_draft: bool = False


def resolve_parameters(
    section: Json,
    values: GivenValues,
    *,
    version: Version,
    seal: Callable[[Json], str],
    errors: ErrorList | None = None,
) -> dict[str, Parameter]:
    """Return the declared parameters with their values.

    A value comes from the request, the environment, its parameter_defaults, or the template's default, in
    this order.

    :param section: the template's ``parameters``.
    :param seal: makes the token of a hidden value.
    :param errors: gets the errors of single parameters, whose values are then not known; None: all errors
        are raised.
    :raises ParameterMissing: a parameter has no value.
    :raises UnknownParameter: a value is for none of the parameters.
    :raises TemplateError: a declaration or a value is wrong.
    """
    if errors is None:
        with named_at_once() as errors:
            return resolve_parameters(section, values, version=version, seal=seal, errors=errors)
    declarations = parse_declarations(section, version, errors, is_draft=values.is_draft)
    environment = values.environment
    supplied = {**environment.parameters, **values.supplied}
    for name in supplied:
        if name not in declarations:
            hint = closest(str(name), declarations)
            text = f'The Parameter ({name}) was not defined in template.{SUGGESTION}parameter "{name}"{hint}'
            errors.add(UnknownParameter(text, ["parameters", str(name)]))
    if values.from_resource:
        supplied |= {
            name: _from_property(declarations[name], value)
            for name, value in values.supplied.items()
            if name in declarations
        }
    hidden = {*environment.encrypted_param_names, *values.secret}
    has_more = environment.operator is not None
    defaults = environment.defaults if has_more else environment.parameter_defaults
    parameters = {}
    for name, declared in declarations.items():
        declared = dataclasses.replace(declared, hidden=declared.hidden or name in hidden)
        if name not in values.unknown and not declared.is_wrong:
            with errors.collect():
                parameters[name] = _resolve(declared, supplied, defaults, seal, is_draft=values.is_draft)
        if name not in parameters:
            parameters[name] = _unknown(declared)
    return parameters


def _from_property(declared: Declaration, value: Json) -> Json:
    """Return the value of a resource's property in the form in which its nested stack takes it.

    :raises TemplateError: a property that is a string takes no list or map, though a parameter does.
    """
    if declared.type == "string" and isinstance(value, Mapping | list):
        addition = "" if declared.hidden else f", not {written(value)}"
        raise TemplateError(f"must be a string{addition}", ("parameters", declared.name))
    return as_members(value) if declared.type == "comma_delimited_list" else value


def _unknown(declared: Declaration) -> Parameter:
    """Return a parameter whose value is not known: a value made of it cannot be evaluated."""
    return Parameter(
        name=declared.name,
        type=declared.type,
        value=failing(not_provided(declared.name)),
        supplied=False,
        hidden=declared.hidden,
        immutable=declared.immutable,
        schema=schema(declared),
        tags=declared.tags,
        is_known=False,
    )


def _resolve(
    declared: Declaration,
    values: JsonMap,
    defaults: JsonMap,
    seal: Callable[[Json], str],
    *,
    is_draft: bool,
) -> Parameter:
    path: Path = ("parameters", declared.name)
    if values.get(declared.name) is not None:
        value = _checked(declared, values[declared.name], path)
        supplied = True
    elif defaults.get(declared.name) is not None:
        value = _checked(declared, defaults[declared.name], path)
        supplied = True
    elif declared.has_default:
        value = declared.default
        supplied = False
        if not is_draft:
            _constrained(declared, value, (*path, "default"))
    elif is_draft:
        return _unknown(declared)
    else:
        raise ParameterMissing(f"{not_provided(declared.name)} It has no default", path)
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
        custom=tuple(
            (item.check_name, item.description) for item in declared.constraints if isinstance(item, Custom)
        ),
    )


def schema(declared: Declaration) -> dict[str, Json]:
    """Return a declaration in the form of Heat's ``template validate``.

    It is for users who sent the template, so the default of a hidden parameter is in clear.
    """
    view: dict[str, Json] = {
        "Type": TYPES[declared.type],
        "Description": declared.description,
        "NoEcho": "true" if declared.hidden else "false",
        "Label": declared.label if declared.label is not None else declared.name,
    }
    if declared.has_default:
        view["Default"] = declared.written_default
    for constraint in declared.constraints:
        view.update(constraint.view())
    descriptions = [item.description for item in declared.constraints if item.description]
    if descriptions:
        view["ConstraintDescription"] = " ".join(descriptions)
    if declared.tags:
        view["Tags"] = list(declared.tags)
    return view


def parameter_strings(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Return the values of a stack's parameters as the API shows them, as far as they are known."""
    resolved = {name: item for name, item in parameters.items() if item.is_known}
    return {name: MASK if item.hidden else _text(item) for name, item in resolved.items()}


def _text(parameter: Parameter) -> str:
    if parameter.type == "comma_delimited_list":
        return ",".join(parameter.value)
    if parameter.type == "json":
        return json.dumps(parameter.value)
    return str(parameter.value)


def check_immutable(old: Mapping[str, Parameter], new: Mapping[str, Parameter]) -> None:
    """Check that an update changes no immutable parameter; a parameter that is new may have any value.

    :raises ImmutableParameter: the update changes some; in Heat's words.
    """
    changed: Sequence[str] = [
        name
        for name, parameter in new.items()
        if parameter.immutable and name in old and _differ(old[name], parameter)
    ]
    if changed:
        names = ", ".join(sorted(changed))
        raise ImmutableParameter(f"The following parameters are immutable and may not be updated: {names}")


def _differ(old: Parameter, new: Parameter) -> bool:
    if old.clear is not None and new.clear is not None:
        # Tokens of the same secret differ once the key has changed.
        return bool(old.clear != new.clear)
    return bool(old.value != new.value)
