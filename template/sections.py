"""The sections of a template, and the keys in them, that its version has."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from ..shapes import Json, JsonMap
from .errors import ErrorList, InvalidGroups, InvalidTemplateSection, TemplateError, WordedByHeat
from .formats import FORMATS
from .language import AWS_DATE, AWS_KEY, HOT_KEY, Path, Version
from .scalars import kind_of
from .suggestions import closest, nearest

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
