"""Formats and versions of templates: the names of sections and keys in HOT and in CloudFormation's format.

Every module after this one reads a template in its *normal form*: with HOT's names.  Functions, and the
declarations of parameters, stay as they are written.  Errors have the names of the format, by `native_path`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..shapes import Json, JsonMap
from .errors import InvalidTemplateVersion, TemplateError
from .functions.table import FIRST, REMOVED, VERSIONS, wrong_form
from .language import AWS_DATE, AWS_KEY, CFN_DATE, CFN_KEY, CFN_VERSIONS, HOT_KEY, VERSION_KEYS, Path, Version
from .scalars import as_text, written
from .suggestions import closest, did_you_mean

_SECTIONS = ("description", "parameters", "conditions", "resources", "outputs")
RESOURCE_KEYS = (
    "type",
    "properties",
    "metadata",
    "depends_on",
    "deletion_policy",
    "update_policy",
    "description",
)
"""Keys of a resource in each version."""
_RESOURCE = (*RESOURCE_KEYS, "condition")
_OUTPUT = ("description", "value", "condition")


_PARAMETER = {
    "Type": "type",
    "Default": "default",
    "Description": "description",
    "Label": "label",
    "NoEcho": "hidden",
}
_TYPES = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
_CONSTRAINTS = {
    ("range", "min"): "MinValue",
    ("range", "max"): "MaxValue",
    ("length", "min"): "MinLength",
    ("length", "max"): "MaxLength",
    ("allowed_values",): "AllowedValues",
    ("allowed_pattern",): "AllowedPattern",
}
"""Keys of a parameter in CloudFormation's format, by the places of their values in HOT's constraints."""
_CONSTRAINT_DESCRIPTION = "ConstraintDescription"


def _camel(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


@dataclass(frozen=True)
class Format:
    """One format.

    :ivar sections: HOT's name of a section -> its name in the format; others follow below it.
    """

    sections: Mapping[str, str]
    resource_keys: Mapping[str, str]
    output_keys: Mapping[str, str]
    parameter_keys: Mapping[str, str]

    def native_path(self, path: Path) -> Path:
        """Return a path in the normal form with the names that the template has."""
        if not path or path[0] not in self.sections:
            return path
        section = str(path[0])
        inner = list(path[1:])
        if section == "parameters" and inner[1:2] == ["constraints"]:
            key = _CONSTRAINTS.get(tuple(str(part) for part in inner[3:5]))
            inner[1:] = [] if key is None else [key]
        elif len(inner) > 1:
            keys = {"resources": self.resource_keys, "outputs": self.output_keys}
            inner[1] = keys.get(section, self.parameter_keys).get(str(inner[1]), inner[1])
        return (self.sections[section], *inner)


_HOT = Format({}, {}, {}, {})
_CFN = Format(
    sections={name: _camel(name) for name in (*_SECTIONS, "mappings")},
    resource_keys={name: _camel(name) for name in _RESOURCE},
    output_keys={name: _camel(name) for name in _OUTPUT},
    parameter_keys={name: native for native, name in _PARAMETER.items()},
)
FORMATS: Mapping[str, Format] = {HOT_KEY: _HOT, CFN_KEY: _CFN, AWS_KEY: _CFN}
"""Formats by the key that names the version."""


_INVALID = "The template version is invalid: "
"""Heat's words."""
_ALIKE = 0.8
"""Likeness from which a version is taken for a misspelt one; dates are all a bit alike."""
_NAMES = {key: [name for name, version in VERSIONS.items() if version.key == key] for key in VERSION_KEYS}
"""Names of versions by the key under which a template names one."""


def find_version(template: Mapping[str, object]) -> Version:
    """Return the version that a template names.

    :raises InvalidTemplateVersion: the template names no version, several, or an unknown one.
    """
    keys = [key for key in VERSION_KEYS if key in template]
    if not keys:
        hint = next((hint for key in template if (hint := did_you_mean(key, VERSION_KEYS, alike=_ALIKE))), "")
        if hint:
            raise InvalidTemplateVersion(f"{_INVALID}Template version was not provided{hint}")
        raise InvalidTemplateVersion(
            f"{_INVALID}Template version was not provided. "
            f"The template has no {HOT_KEY}, which must be one of: {', '.join(_NAMES[HOT_KEY])}; "
            f"nor {AWS_KEY}: {AWS_DATE}, nor {CFN_KEY}: {CFN_DATE}"
        )
    if len(keys) > 1:
        raise InvalidTemplateVersion(
            f"{_INVALID}Ambiguous versions ({', '.join(keys)}). The template must name one version"
        )
    name = str(template[keys[0]])
    versions = _NAMES[keys[0]]
    if name not in versions:
        hint = did_you_mean(name, versions, alike=_ALIKE) if len(versions) > 1 else ""
        right = f"a known version{hint}" if hint else _one_of(versions)
        raise InvalidTemplateVersion(
            f'{_INVALID}"{as_text(template[keys[0]])}". "{keys[0]}" should be {right}'
        )
    return VERSIONS[name]


def _one_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"one of: {', '.join(names)}"


def refuse_other(
    name: Json, argument: Json, version: Version, path: Sequence[str | int], first: Mapping[str, str] = FIRST
) -> None:
    """Refuse a function that the version does not have.

    A word like ``filter`` is one only where its argument has the form of the function's; else it is a key.

    :param first: the first version that has each function.
    :raises InvalidTemplateVersion: the function needs a later version, or another format.
    """
    if version.is_cfn:
        if isinstance(name, str) and name.startswith("Fn::") and name not in version.functions:
            names = version.functions | version.condition_functions
            text = f'{version.key} {version.date} has no function "{name}" here{closest(name, names)}'
            raise InvalidTemplateVersion(text, path)
        return
    if name in REMOVED:
        text = f'the function "{name}" is not in version {version.date} of HOT, only in older ones'
        raise InvalidTemplateVersion(f"{text}{closest(name, version.functions)}", path)
    if name in first and first[name] > version.date:
        if "_" not in name and wrong_form(name, argument) is not None:
            return
        text = f'the function "{name}" needs version {first[name]} or later; this is {version.date}'
        raise InvalidTemplateVersion(text, path)


def format_of(template: JsonMap) -> Format:
    """Return the format of a template; HOT where it names no version, or several."""
    keys = [key for key in VERSION_KEYS if key in template]
    return FORMATS[keys[0]] if len(keys) == 1 else _HOT


def format_at(date: str) -> Format:
    """Return the format of a version, by the date that is its name."""
    return _CFN if date in CFN_VERSIONS else _HOT


def normal_form(template: JsonMap) -> JsonMap:
    """Return a template with HOT's names of sections, and of the keys of resources and outputs.

    As in Heat, other keys of a resource or an output in CloudFormation's format are ignored.
    """
    form = format_of(template)
    if form is _HOT:
        return template
    names = {native: name for name, native in form.sections.items()}
    normal = {names.get(key, key): value for key, value in template.items()}
    for section, keys in (("resources", form.resource_keys), ("outputs", form.output_keys)):
        if isinstance(bodies := normal.get(section), Mapping):
            normal[section] = {name: _renamed(body, keys) for name, body in bodies.items()}
    return normal


def _renamed(body: Json, keys: Mapping[str, str]) -> Json:
    if not isinstance(body, Mapping):
        return body
    return {name: body[native] for name, native in keys.items() if native in body}


def declaration_in_hot(body: JsonMap, path: Path) -> dict[str, Json]:
    """Return the declaration of a parameter in CloudFormation's format as HOT has it.

    :param path: the path of the declaration.
    :raises TemplateError: the declaration has an unknown key or type.
    """
    keys = [*_PARAMETER, *_CONSTRAINTS.values(), _CONSTRAINT_DESCRIPTION]
    if unknown := [str(key) for key in body if key not in keys]:
        raise TemplateError(f'"{unknown[0]}" is not a key of a parameter{closest(unknown[0], keys)}', path)
    declaration = {name: body[native] for native, name in _PARAMETER.items() if native in body}
    if str(body.get("Type")) not in _TYPES:
        text = f"must be one of: {', '.join(_TYPES)}; not {written(body.get('Type'))}"
        raise TemplateError(text, (*path, "type"))
    constraints: dict[str, Json] = {}
    for (kind, *bound), native in _CONSTRAINTS.items():
        if native in body:
            if bound:
                constraints.setdefault(kind, {})[bound[0]] = body[native]
            else:
                constraints[kind] = body[native]
    description = {"description": body.get(_CONSTRAINT_DESCRIPTION)}
    return {
        **declaration,
        "type": _TYPES[str(body["Type"])],
        "hidden": is_no_echo(body),
        "constraints": [{kind: value, **description} for kind, value in constraints.items()],
    }


def is_no_echo(body: JsonMap) -> bool:
    """Return whether a declaration in CloudFormation's format hides the parameter: only by the word true."""
    return str(body.get("NoEcho")).lower() == "true"


def section_of(template: JsonMap, name: str) -> Json:
    """Return a section as the template has it, by HOT's name; None: the template lacks it."""
    return template.get(format_of(template).sections.get(name, name))


@contextlib.contextmanager
def errors_in(form: Format) -> Iterator[None]:
    """Name the places of errors as the format does.

    :raises TemplateError: the error of the block, with the path in the template.
    """
    try:
        yield
    except TemplateError as error:
        moved = error.moved(form.native_path)
        if moved.path == error.path:
            raise
        raise moved from error
