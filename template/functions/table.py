"""The table of the template language's functions, and the versions that follow from it.

A new function takes a module of its own in this folder, its import here, and its place in FUNCTIONS.
"""

from collections.abc import Mapping

from ...shapes import Json
from ..language import AWS_DATE, AWS_KEY, CFN_DATE, CFN_KEY, Apply, Function, Version
from . import cfn, contextual, data, text

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        *contextual.FUNCTIONS,
        *text.FUNCTIONS,
        *data.FUNCTIONS,
        *cfn.FUNCTIONS,
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

REMOVED = frozenset(name for name, function in FUNCTIONS.items() if function.until is not None)
"""Functions that the first versions of HOT have, and the newest has not."""

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
    versions = {date: _cfn_version(key, date) for key, date in ((AWS_KEY, AWS_DATE), (CFN_KEY, CFN_DATE))}
    for date, alias in _RELEASES.items():
        names = frozenset(name for name in _known_at(date, FIRST) if not _is_removed(name, date))
        in_conditions = _known_at(date, CONDITION_FIRST)
        version = Version(date, alias, names, in_conditions, has_conditions=bool(in_conditions))
        versions[date] = version
        if alias:
            versions[alias] = version
    return versions


def _cfn_version(key: str, date: str) -> Version:
    names = frozenset(name for name, function in FUNCTIONS.items() if date in function.cfn)
    in_conditions = frozenset(name for name, function in FUNCTIONS.items() if date in function.cfn_conditions)
    return Version(date, None, names, in_conditions, key, is_cfn=True, has_conditions=bool(in_conditions))


def _known_at(date: str, first: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, since in first.items() if since <= date)


def _is_removed(name: str, date: str) -> bool:
    until = FUNCTIONS[name].until
    return until is not None and until <= date


VERSIONS = _versions()
"""Versions by date and by alias: those of CloudFormation's format, and those of HOT, oldest first."""


def wrong_form(name: str, argument: Json) -> str | None:
    """Return the problem of the outer form of an argument that cannot be evaluated yet, or None."""
    form = FUNCTIONS[name].form if name in FUNCTIONS else None
    return None if form is None else form.problem(argument)
