"""The sections of a template and their keys, before any function is evaluated."""

from collections.abc import Container, Iterable, Mapping

from .errors import InvalidReference, TemplateError
from .language import Version
from .model import Json, Path
from .suggestions import closest
from .versions import VERSION_KEY

_SECTIONS = (VERSION_KEY, "description", "parameter_groups", "parameters", "resources", "outputs")


_LATER = ("conditions", "condition", "external_id")
"""Sections and keys of 2016-10-14."""


def _unknown(key: Json, allowed: Iterable[str], what: str) -> str:
    if key in _LATER:
        return f'"{key}" needs version 2016-10-14 or later'
    return f'"{key}" is not {what}{closest(str(key), allowed)}'


def check_sections(template: Mapping[str, Json], version: Version) -> None:
    """Check the names of the sections.

    :raises TemplateError: the template has a section that its version does not know.
    """
    allowed = [*_SECTIONS, "conditions"] if version.has_conditions else list(_SECTIONS)
    for key in template:
        if key not in allowed:
            raise TemplateError(_unknown(key, allowed, "a section of a template"), [str(key)])


def section(template: Mapping[str, Json], name: str) -> dict[str, Json]:
    """Return a section that is a map; an empty map where the template lacks it.

    :raises TemplateError: the section is no map.
    """
    value = template.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TemplateError(f"must be a map, not {type(value).__name__}", [name])
    return {str(key): body for key, body in value.items()}


def checked_keys(path: Path, body: Json, allowed: Iterable[str], what: str) -> Mapping[str, Json]:
    """Return the body of something that has only certain keys.

    :raises TemplateError: the body has other keys, or is no map.
    """
    if not isinstance(body, Mapping):
        raise TemplateError(f"must be a map, not {type(body).__name__}", path)
    names = list(allowed)
    for key in body:
        if key not in names:
            raise TemplateError(_unknown(key, names, f"a key of {what}"), path)
    return body


def parameter_groups(
    template: Mapping[str, Json], parameters: Iterable[str]
) -> tuple[Mapping[str, Json], ...]:
    """Return the groups, each parameter in one at most.

    :raises TemplateError: the section is malformed, or a parameter is in two groups.
    :raises InvalidReference: a group names a parameter that the template does not have.
    """
    groups = template.get("parameter_groups")
    if groups is None:
        return ()
    if not isinstance(groups, list):
        raise TemplateError("must be a list of groups", ["parameter_groups"])
    known, grouped = set(parameters), set[str]()
    for index, group in enumerate(groups):
        path: Path = ("parameter_groups", index)
        if not isinstance(group, Mapping):
            raise TemplateError(f"must be a map, not {type(group).__name__}", path)
        names = group.get("parameters")
        if not isinstance(names, list):
            raise TemplateError("must be a list of parameters' names", (*path, "parameters"))
        for name in names:
            _check_grouped(name, known, grouped, (*path, "parameters"))
            grouped.add(name)
    return tuple(groups)


def _check_grouped(name: Json, known: set[str], grouped: Container[str], path: Path) -> None:
    if not isinstance(name, str) or name not in known:
        raise InvalidReference(f'the template has no parameter "{name}"{closest(str(name), known)}', path)
    if name in grouped:
        raise TemplateError(f'the parameter "{name}" is in a group already', path)
