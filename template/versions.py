"""The versions of HOT, and which functions each one has.

Source: the Heat template guide's list of versions; every version has all functions of the ones before it
but those that it removes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import InvalidTemplateVersion

VERSION_KEY = "heat_template_version"

_OLDEST = "2013-05-23"
_ADDED: tuple[tuple[str, str | None, frozenset[str]], ...] = (
    (
        _OLDEST,
        None,
        frozenset(
            {"get_param", "get_resource", "get_attr", "get_file"}
            | {"list_join", "str_replace", "resource_facade"}
        ),
    ),
    ("2014-10-16", None, frozenset()),
    ("2015-04-30", None, frozenset({"repeat", "digest"})),
    ("2015-10-15", None, frozenset({"str_split"})),
    ("2016-04-08", None, frozenset({"map_merge"})),
    ("2016-10-14", "newton", frozenset({"yaql", "map_replace", "if"})),
    ("2017-02-24", "ocata", frozenset({"filter", "str_replace_strict"})),
    (
        "2017-09-01",
        "pike",
        frozenset({"make_url", "list_concat", "list_concat_unique", "str_replace_vstrict", "contains"}),
    ),
    ("2018-03-02", "queens", frozenset()),
    ("2018-08-31", "rocky", frozenset()),
    ("2021-04-16", "wallaby", frozenset()),
)

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

DESCRIPTIONS: Mapping[str, str] = {
    "get_param": "The value of a parameter, or of a part of it.",
    "get_resource": "The id by which another resource is known.",
    "get_attr": "An attribute of another resource, or a part of it.",
    "get_file": "The text of a file that was sent with the template.",
    "list_join": "Joins lists of strings to one string.",
    "str_replace": "Puts values in the place of words of a text.",
    "str_replace_strict": "Like str_replace; every word must stand in the text.",
    "str_replace_vstrict": "Like str_replace_strict; no value may be empty.",
    "resource_facade": "What the parent stack's template says of this stack's resource.",
    "repeat": "Repeats a piece of template for each item of a list.",
    "digest": "The digest of a text by a hash algorithm.",
    "str_split": "Splits a string to a list, or takes one part of it.",
    "map_merge": "Merges maps; later ones win.",
    "map_replace": "Replaces keys and values of a map.",
    "yaql": "Evaluates a YAQL expression on data.",
    "if": "One of two values, chosen by a condition.",
    "filter": "A list without certain values.",
    "make_url": "Composes a URL of its parts, quoted as it must be.",
    "list_concat": "Concatenates lists.",
    "list_concat_unique": "Concatenates lists and keeps the first of equal items.",
    "contains": "Whether a value is in a list.",
    "equals": "Whether two values are equal.",
    "not": "The contrary of a condition.",
    "and": "Whether all of the conditions hold.",
    "or": "Whether one of the conditions holds.",
}


@dataclass(frozen=True)
class Version:
    """What one version of HOT allows.

    :ivar date: its name; `alias` the release's name.
    """

    date: str
    alias: str | None
    functions: frozenset[str]
    condition_functions: frozenset[str]

    @property
    def has_conditions(self) -> bool:
        """Sections and keys of 2016-10-14: conditions, external_id, lower-case deletion policies."""
        return self.date >= "2016-10-14"

    @property
    def attr_path_inside(self) -> bool:
        """get_attr of the resource alone gives all attributes."""
        return self.date >= "2015-10-15"

    @property
    def json_in_text(self) -> bool:
        """str_replace and list_join put maps and lists in as JSON; list_join takes several lists."""
        return self.date >= "2015-10-15"

    @property
    def repeat_maps(self) -> bool:
        """repeat goes over the keys of maps too."""
        return self.date >= "2016-10-14"

    @property
    def repeat_permutations(self) -> bool:
        """repeat can go over several lists side by side."""
        return self.date >= "2017-09-01"

    @property
    def nullable_if(self) -> bool:
        """if without a third argument leaves the item out."""
        return self.date >= "2021-04-16"

    @property
    def parameter_modulo(self) -> bool:
        """Parameters can have the constraint modulo."""
        return self.date >= "2017-02-24"

    @property
    def parameter_tags(self) -> bool:
        """Parameters have tags."""
        return self.date >= "2018-03-02"


def _versions() -> dict[str, Version]:
    found: dict[str, Version] = {}
    functions: frozenset[str] = frozenset()
    for date, alias, added in _ADDED:
        functions |= added
        conditions: frozenset[str] = frozenset()
        if date >= "2016-10-14":
            conditions = frozenset({"get_param", "equals", "not", "and", "or"})
        if date >= "2017-09-01":
            conditions |= {"yaql", "contains"}
        version = Version(date, alias, functions, conditions)
        found[date] = version
        if alias:
            found[alias] = version
    return found


VERSIONS = _versions()

FIRST: Mapping[str, str] = {name: date for date, _, added in _ADDED for name in added}
"""Function -> the first version that has it."""

CONDITION_FIRST: Mapping[str, str] = {
    name: min(date for date, version in VERSIONS.items() if name in version.condition_functions)
    for name in VERSIONS["wallaby"].condition_functions
}
"""Function -> the first version that has it in conditions."""


def find_version(template: Mapping[str, object]) -> Version:
    """The version a template names.

    :raises InvalidTemplateVersion: it names none, or one that is not known.
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
    wanted = str(template[VERSION_KEY])
    if wanted not in VERSIONS:
        raise InvalidTemplateVersion(f'"{wanted}" is not known; it must be one of: {known}', [VERSION_KEY])
    return VERSIONS[wanted]


def list_versions() -> list[dict[str, object]]:
    """All versions in the shape of the API's answer."""
    return [
        {"version": f"{VERSION_KEY}.{version.date}", "type": "hot", "aliases": _alias(version)}
        for name, version in VERSIONS.items()
        if name == version.date
    ]


def _alias(version: Version) -> list[str]:
    return [f"{VERSION_KEY}.{version.alias}"] if version.alias else []


def list_functions(name: str, *, conditions: bool = False) -> list[dict[str, str]]:
    """The functions of a version (``heat_template_version.DATE`` or the bare date or alias).

    :raises InvalidTemplateVersion: it is not known.
    """
    version = find_version({VERSION_KEY: name.removeprefix(f"{VERSION_KEY}.")})
    names = version.functions | (version.condition_functions if conditions else frozenset())
    return [{"functions": function, "description": DESCRIPTIONS[function]} for function in sorted(names)]
