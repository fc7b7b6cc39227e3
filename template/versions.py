"""Checks of what a template's version allows, and the lists of versions and functions that the API shows."""

from collections.abc import Mapping, Sequence

from .errors import InvalidTemplateVersion
from .functions.table import FIRST, FUNCTIONS, REMOVED, VERSIONS, wrong_form
from .language import Json, Version
from .suggestions import closest

VERSION_KEY = "heat_template_version"


def find_version(template: Mapping[str, object]) -> Version:
    """Return the version that a template names.

    :raises InvalidTemplateVersion: it names none, or an unknown one.
    """
    known = ", ".join(VERSIONS)
    for key in ("HeatTemplateFormatVersion", "AWSTemplateFormatVersion"):
        if key in template:
            raise InvalidTemplateVersion(
                f'"{key}" is the CloudFormation format, which is not supported; write the template in HOT, '
                f"with {VERSION_KEY} one of: {known}"
            )
    if VERSION_KEY not in template:
        raise InvalidTemplateVersion(f"the template has no {VERSION_KEY}; it must be one of: {known}")
    name = str(template[VERSION_KEY])
    if name not in VERSIONS:
        raise InvalidTemplateVersion(f'"{name}" is not known; it must be one of: {known}', [VERSION_KEY])
    return VERSIONS[name]


def refuse_other(
    name: Json, argument: Json, version: Version, path: Sequence[str | int], first: Mapping[str, str] = FIRST
) -> None:
    """Refuse a function that the version does not have.

    A word like ``filter`` is one only where its argument has the form of the function's; else it is a key.

    :param first: the first version that has each function.
    :raises InvalidTemplateVersion: it needs a later version, or another format.
    """
    if name in REMOVED:
        raise InvalidTemplateVersion(
            f'the function "{name}" does not exist in HOT{closest(name, version.functions)}', path
        )
    if name in first and first[name] > version.date:
        if "_" not in name and wrong_form(name, argument) is not None:
            return
        text = f'the function "{name}" needs version {first[name]} or later; this is {version.date}'
        raise InvalidTemplateVersion(text, path)


def list_versions() -> list[dict[str, object]]:
    """Return all versions in the form of the API's answer."""
    return [
        {"version": f"{VERSION_KEY}.{version.date}", "type": "hot", "aliases": _alias(version)}
        for name, version in VERSIONS.items()
        if name == version.date
    ]


def _alias(version: Version) -> list[str]:
    return [f"{VERSION_KEY}.{version.alias}"] if version.alias else []


def list_functions(name: str, *, conditions: bool = False) -> list[dict[str, str]]:
    """Return the functions of a version (``heat_template_version.DATE``, the bare date or the alias).

    :raises InvalidTemplateVersion: the version is unknown.
    """
    version = find_version({VERSION_KEY: name.removeprefix(f"{VERSION_KEY}.")})
    names = version.functions | (version.condition_functions if conditions else frozenset())
    return [
        {"functions": function, "description": FUNCTIONS[function].description} for function in sorted(names)
    ]
