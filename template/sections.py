"""The sections of a template, and the keys in them, that its version has."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from ..shapes import Json, JsonMap
from .errors import (
    ErrorList,
    InvalidGroups,
    InvalidTemplateSection,
    TemplateError,
    WordedByHeat,
    named_at_once,
)
from .formats import FORMATS, RESOURCE_KEYS, find_version, normal_form
from .language import AWS_DATE, AWS_KEY, HOT_KEY, Path, Version
from .scalars import kind_of
from .suggestions import closest, nearest

MAX_NAME = 255
"""Characters of a resource's name, as many as Heat stores."""
_SECTIONS = (HOT_KEY, "description", "parameter_groups", "parameters", "resources", "outputs")
_LATER = ("conditions", "condition", "external_id")
"""Sections and keys of 2016-10-14."""
_DEFINITIONS = {"resources": "a resource", "outputs": "a output"}
"""Heat's words for a part of a section."""


def _unknown(key: object, allowed: Iterable[str], place_name: str, version: Version) -> str:
    if version.is_cfn and str(key).lower() in _LATER:
        return f'"{str(key).title()}" needs {AWS_KEY} {AWS_DATE}; this is {version.key} {version.date}'
    if key in _LATER:
        return f'"{key}" needs version 2016-10-14 or later'
    return f'"{key}" is not {place_name}{closest(str(key), allowed)}'


def _corrected(
    body: JsonMap,
    allowed: Collection[str],
    refusal: Callable[[object], TemplateError],
    errors: ErrorList,
) -> JsonMap:
    """Return a map that has only certain keys.

    Each other key is an error.  So that it does not lead to more of them, its value is taken for that of the
    key that was probably meant.

    :param refusal: returns the error for a key.
    """
    if all(key in allowed for key in body):
        return body
    corrected = {key: value for key, value in body.items() if key in allowed}
    for key in (key for key in body if key not in allowed):
        errors.add(refusal(key))
        guess = nearest(str(key), [name for name in allowed if name not in corrected])
        if guess is not None and key not in _LATER:
            corrected[guess] = body[key]
    return corrected


def check_sections(template: JsonMap, version: Version, errors: ErrorList) -> JsonMap:
    """Check the names of the sections: one that the version does not know is an error.

    :returns: the template, without such sections.
    """
    allowed = [*_SECTIONS, "conditions"]
    if version.is_cfn:
        allowed = [version.key, *FORMATS[version.key].sections.values()]
    if not version.has_conditions:
        allowed.pop(allowed.index("Conditions" if version.is_cfn else "conditions"))

    def refusal(key: object) -> TemplateError:
        text = _unknown(key, allowed, "a section of a template", version)
        return InvalidTemplateSection(f"{key}. {text}")

    return _corrected(template, allowed, refusal, errors)


def section(template: JsonMap, name: str) -> dict[str, Json]:
    """Return a section that is a map; an empty map where the template lacks it.

    :raises TemplateError: the section is no map.
    """
    value = template.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map, not {kind_of(value)}", [name])
    return {str(key): body for key, body in value.items()}


def checked_keys(
    path: Path, body: object, allowed: Collection[str], version: Version, errors: ErrorList
) -> JsonMap:
    """Return the body of a resource or an output, without the keys that it may not have: each is an error.

    :raises TemplateError: the body is no map.
    """
    if not isinstance(body, Mapping):
        raise TemplateError(f"must be a map, not {kind_of(body)}", path)
    kind = f"a valid keyword inside {_DEFINITIONS[str(path[0])]} definition"

    def refusal(key: object) -> TemplateError:
        return WordedByHeat(_unknown(key, allowed, kind, version), path)

    return _corrected(body, allowed, refusal, errors)


def resource_body(name: str, declared: object, version: Version, errors: ErrorList) -> JsonMap:
    """Return the body of a resource that has a name and a type.

    :raises TemplateError: it has none.
    """
    path: Path = ("resources", name)
    if not name or "/" in name or len(name) > MAX_NAME:
        text = f"it must have 1 to {MAX_NAME} characters, and no slash among them"
        wrong = 'Resource name may not contain "/"' if "/" in name else "The name of a resource is invalid"
        raise WordedByHeat(f"{wrong}: {text}", path)
    allowed = [*RESOURCE_KEYS, *(["condition", "external_id"] if version.has_conditions else [])]
    body = checked_keys(path, declared, allowed, version, errors)
    type_name = body.get("type")
    if not isinstance(type_name, str) or not type_name:
        text = (
            "Each resource must contain a type key."
            if type_name is None
            else f'Resource "{name}" type is not a string.'
        )
        raise WordedByHeat(text, (*path, "type"))
    return body


def check_outline(template: JsonMap) -> None:
    """Check the version and the sections, and that each resource has a name and a type; not what is in them.

    :raises TemplateError: the template cannot be used.
    """
    with named_at_once() as errors:
        version = find_version(template)
        outline = normal_form(check_sections(template, version, errors))
        with errors.within(FORMATS[version.key].native_path) as inside:
            for name, body in section(outline, "resources").items():
                with inside.collect():
                    resource_body(name, body, version, inside)


def parameter_groups(groups: object, parameters: Collection[str], errors: ErrorList) -> tuple[JsonMap, ...]:
    """Return the groups, each parameter in one at most.

    :param errors: gets an error where a group is malformed, names a parameter that the template does not
        have, or one that is in a group already.
    """
    if groups is None:
        return ()
    if not isinstance(groups, list):
        errors.add(InvalidGroups("must be a list of groups", ["parameter_groups"]))
        return ()
    grouped = set[str]()
    for index, group in enumerate(groups):
        path: Path = ("parameter_groups", index)
        with errors.collect():
            if not isinstance(group, Mapping):
                raise InvalidGroups(f"must be a map, not {kind_of(group)}", path)
            names = group.get("parameters")
            if not isinstance(names, list):
                raise InvalidGroups("must be a list of parameters' names", (*path, "parameters"))
            for name in names:
                with errors.collect():
                    _check_grouped(name, parameters, grouped, (*path, "parameters"))
                    grouped.add(name)
    return tuple(groups)


def _check_grouped(name: object, names: Collection[str], grouped: Container[str], path: Path) -> None:
    if not isinstance(name, str) or name not in names:
        raise InvalidGroups(f'the template has no parameter "{name}"{closest(str(name), names)}', path)
    if name in grouped:
        raise InvalidGroups(f'the parameter "{name}" is in a group already', path)
