"""The table of the template language's functions, and the versions that follow from it.

A new function takes a module of its own in this folder, its import here, and its place in FUNCTIONS.
"""

from collections.abc import Mapping, Sequence

from ..errors import InvalidTemplateVersion
from ..language import Apply, Function, Json, Version
from ..suggestions import closest
from . import contextual, data, text

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        *contextual.FUNCTIONS,
        *text.FUNCTIONS,
        *data.FUNCTIONS,
    )
}

APPLY: Mapping[str, Apply] = {
    name: function.apply for name, function in FUNCTIONS.items() if function.apply is not None
}
"""Functions that need nothing but their argument."""

_RELEASES: Mapping[str, str | None] = {
    "2013-05-23": None,
    "2014-10-16": None,
    "2015-04-30": None,
    "2015-10-15": None,
    "2016-04-08": None,
    "2016-10-14": "newton",
    "2017-02-24": "ocata",
    "2017-09-01": "pike",
    "2018-03-02": "queens",
    "2018-08-31": "rocky",
    "2021-04-16": "wallaby",
}
"""Version -> name of the release that brought it, where it can be used in the version's place.

Source: the Heat template guide's list of versions.  Each version has all functions of the ones before it.
"""

REMOVED = frozenset(
    {
        "Ref",
        "Fn::GetAZs",
        "Fn::Select",
        "Fn::Join",
        "Fn::Split",
        "Fn::Replace",
        "Fn::Base64",
        "Fn::MemberListToMap",
        "Fn::ResourceFacade",
    }
)
"""Functions of the CloudFormation format, which Stoker does not read in any version."""

FIRST: Mapping[str, str] = {
    name: function.since for name, function in FUNCTIONS.items() if function.since is not None
}
"""Function -> the first version that has it."""

CONDITION_FIRST: Mapping[str, str] = {
    name: function.in_conditions_since
    for name, function in FUNCTIONS.items()
    if function.in_conditions_since is not None
}
"""Function -> the first version that has it in conditions."""


def _versions() -> dict[str, Version]:
    found: dict[str, Version] = {}
    for date, alias in _RELEASES.items():
        version = Version(date, alias, _known_at(date, FIRST), _known_at(date, CONDITION_FIRST))
        found[date] = version
        if alias:
            found[alias] = version
    return found


def _known_at(date: str, first: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, since in first.items() if since <= date)


VERSIONS = _versions()
"""Versions by date and by alias."""


def wrong_form(name: str, argument: Json) -> str | None:
    """Return what is wrong with the outer form of an argument that cannot be evaluated yet, or None."""
    form = FUNCTIONS[name].form if name in FUNCTIONS else None
    return None if form is None else form.problem(argument)


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
