"""Versions of HOT and of CloudFormation's format, and the functions that each of them has."""

from collections.abc import Mapping

from .errors import InvalidTemplateVersion
from .formats import version_keys
from .functions.table import FUNCTIONS, VERSIONS
from .language import AWS_DATE, AWS_KEY, CFN_DATE, CFN_KEY, HOT_KEY, Version

_INVALID = "The template version is invalid: "
"""Heat's words."""


def find_version(template: Mapping[str, object]) -> Version:
    """Return the version that a template names.

    :raises InvalidTemplateVersion: it names none, several, or an unknown one.
    """
    keys = version_keys(template)
    if not keys:
        known = ", ".join(_known(HOT_KEY))
        raise InvalidTemplateVersion(
            f"{_INVALID}Template version was not provided. "
            f"The template has no {HOT_KEY}, which must be one of: {known}; "
            f"nor {AWS_KEY}: {AWS_DATE}, nor {CFN_KEY}: {CFN_DATE}"
        )
    if len(keys) > 1:
        raise InvalidTemplateVersion(
            f"{_INVALID}Ambiguous versions ({', '.join(keys)}). The template must name one version"
        )
    name, known_names = str(template[keys[0]]), _known(keys[0])
    if name not in known_names:
        raise InvalidTemplateVersion(f'{_INVALID}"{name}". "{keys[0]}" should be {_one_of(known_names)}')
    return VERSIONS[name]


def _known(key: str) -> list[str]:
    return [name for name, version in VERSIONS.items() if version.key == key]


def _one_of(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"one of: {', '.join(names)}"


def list_versions() -> list[dict[str, object]]:
    """Return all versions in the form of the API's answer."""
    return [
        {
            "version": f"{version.key}.{version.date}",
            "type": "cfn" if version.is_cfn else "hot",
            "aliases": _alias(version),
        }
        for name, version in VERSIONS.items()
        if name == version.date
    ]


def _alias(version: Version) -> list[str]:
    return [f"{version.key}.{version.alias}"] if version.alias else []


def list_functions(name: str, *, conditions: bool = False) -> list[dict[str, str]]:
    """Return the functions of a version (``heat_template_version.DATE``, the bare date or the alias).

    :raises InvalidTemplateVersion: the version is unknown.
    """
    key, dot, date = name.partition(".")
    version = find_version({key: date} if dot else {HOT_KEY: name})
    names = version.functions | (version.condition_functions if conditions else frozenset())
    return [
        {"functions": function, "description": FUNCTIONS[function].description} for function in sorted(names)
    ]
