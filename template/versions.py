"""The lists of all versions of HOT and of CloudFormation's format, and of the functions of each."""

from .formats import find_version
from .functions.table import FUNCTIONS, VERSIONS
from .language import HOT_KEY, Version


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
