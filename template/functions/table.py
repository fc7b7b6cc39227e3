"""The table of the template language's functions, and the versions that follow from it.

A new function takes a module of its own in this folder, its import here, and its place in FUNCTIONS.
"""

from collections.abc import Mapping, Sequence

from ..errors import InvalidTemplateVersion
from ..language import AWS_DATE, AWS_KEY, CFN_DATE, CFN_KEY, Apply, Function, Json, Version
from ..suggestions import closest
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
    found = {date: _cfn_version(key, date) for key, date in ((AWS_KEY, AWS_DATE), (CFN_KEY, CFN_DATE))}
    for date, alias in _RELEASES.items():
        known = frozenset(name for name in _known_at(date, FIRST) if not _is_removed(name, date))
        version = Version(date, alias, known, _known_at(date, CONDITION_FIRST))
        found[date] = version
        if alias:
            found[alias] = version
    return found


def _cfn_version(key: str, date: str) -> Version:
    return Version(
        date,
        None,
        frozenset(name for name, function in FUNCTIONS.items() if date in function.cfn),
        frozenset(name for name, function in FUNCTIONS.items() if date in function.cfn_conditions),
        key,
    )


def _known_at(date: str, first: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, since in first.items() if since <= date)


def _is_removed(name: str, date: str) -> bool:
    until = FUNCTIONS[name].until
    return until is not None and until <= date


VERSIONS = _versions()
"""Versions by date and by alias: those of CloudFormation's format, and those of HOT, oldest first."""


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
    if version.is_cfn:
        if isinstance(name, str) and name.startswith("Fn::") and name not in version.functions:
            known = version.functions | version.condition_functions
            text = f'{version.key} {version.date} has no function "{name}" here{closest(name, known)}'
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
