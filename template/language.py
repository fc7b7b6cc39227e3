"""The template language as values: versions, functions, sizes of values, and a compiled template.

A leaf: the modules that implement functions import it, and the table of all functions imports those.

All values of a compiled template are plain JSON trees.  A *residual* is a JSON tree in which everything that
is known without the cloud has been folded.  The rest are function nodes, each a dict with exactly the keys
``$fn`` (name of the function) and ``args`` (list of residuals).  A literal dict that has a key ``$fn`` is
marked as ``{"$fn": "literal", "args": [{...}]}``.  See `residual.py` for evaluation.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..shapes import Json, JsonMap, TypeIdentity

HOT_KEY = "heat_template_version"
CFN_KEY = "HeatTemplateFormatVersion"
AWS_KEY = "AWSTemplateFormatVersion"
VERSION_KEYS = (HOT_KEY, CFN_KEY, AWS_KEY)
"""Keys of a template that name its version: HOT's, and two of CloudFormation's format."""
CFN_DATE = "2012-12-12"
"""The version of CloudFormation's format under CFN_KEY."""
AWS_DATE = "2010-09-09"
"""The version of CloudFormation's format under AWS_KEY."""
CFN_VERSIONS = (AWS_DATE, CFN_DATE)


@dataclass(frozen=True)
class Version:
    """One version of HOT, or of CloudFormation's format.

    :ivar date: its name; `alias` is the name of the release that brought it.  The dates of CloudFormation's
        format precede each of HOT's, so a comparison of dates gives it no later feature of HOT.
    :ivar key: the one of VERSION_KEYS under which a template names the version.
    :ivar is_cfn: the version belongs to CloudFormation's format.
    :ivar has_conditions: the version has conditions, in a section, at resources and at outputs.  A version of
        HOT then has external_id and lower-case deletion policies, too.
    """

    date: str
    alias: str | None
    functions: frozenset[str]
    condition_functions: frozenset[str]
    key: str = HOT_KEY
    is_cfn: bool = False
    has_conditions: bool = False

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
        """The function repeat iterates over the keys of maps, too."""
        return self.date >= "2016-10-14"

    @property
    def repeat_permutations(self) -> bool:
        """The function repeat can iterate over several lists in parallel."""
        return self.date >= "2017-09-01"

    @property
    def nullable_if(self) -> bool:
        """The function if without a third argument leaves the item out."""
        return self.date >= "2021-04-16"

    @property
    def parameter_modulo(self) -> bool:
        """Parameters can have the constraint modulo."""
        return self.date >= "2017-02-24"

    @property
    def parameter_tags(self) -> bool:
        """Parameters have tags."""
        return self.date >= "2018-03-02"


class CostMeter(typing.Protocol):
    """The budget of a request, as a function charges it; see `Budget`.

    :raises LimitExceeded: the budget is spent; raised by each method that charges.
    """

    def step(self, count: int = 1) -> None:
        """Charge work, before it is done."""

    def take(self, size: int) -> None:
        """Charge bytes, before they are allocated."""

    def take_text(self, characters: int, *, is_ascii: bool = True) -> None:
        """Charge a text, before it is made."""

    def take_list(self, length: int, each: int = 0) -> None:
        """Charge a list of items of `each` bytes, before it is made."""

    def take_value(self, value: Json, depth: int = 0) -> None:
        """Charge a value that exists already."""

    def check_text(self, characters: int) -> None:
        """Refuse a text that is too long to be made; charges nothing."""

    def json_text(self, value: Json) -> str:
        """Return a map or list as JSON, charged."""

    def spend(self, seconds: float) -> None:
        """Charge processor time of another process."""

    def seconds_left(self) -> float:
        """Return the processor time that is left."""


@dataclass(frozen=True)
class ListForm:
    """The argument of a function that takes a list of `least` to `most` items; `text` shows it to users."""

    least: int
    most: int
    text: str

    def problem(self, argument: Json) -> str | None:
        """Return why the argument does not have the form, None if it has."""
        if isinstance(argument, list) and self.least <= len(argument) <= self.most:
            return None
        return f"must be of the form {self.text}"


@dataclass(frozen=True)
class MapForm:
    """The argument of a function that takes a map with at least these keys."""

    keys: tuple[str, ...] = ()

    def problem(self, argument: Json) -> str | None:
        """Return why the argument does not have the form, None if it has."""
        if isinstance(argument, Mapping) and set(self.keys) <= set(argument):
            return None
        return f"must be a map{self.keys and ' with the keys ' + ' and '.join(self.keys) or ''}"


ANY_NUMBER = 1_000_000
"""Items of a list form without an upper bound."""

Apply = Callable[[Json, Version, CostMeter], Json]


@dataclass(frozen=True)
class Function:
    """A function of the template language.

    :ivar description: one sentence; the API lists it.
    :ivar since: date of the first version of HOT that has it; None: none has, or conditions alone.
    :ivar in_conditions_since: date of the first version of HOT that has it in conditions; None: none has.
    :ivar until: date of the first version of HOT that does not have it any more; None: the newest has it.
    :ivar cfn: versions of CloudFormation's format that have it.
    :ivar cfn_conditions: versions of CloudFormation's format that have it in conditions.
    :ivar form: the form of the argument, checked at compile time while the argument cannot be evaluated yet.
    :ivar apply: computes the value from the evaluated argument; None for a function that needs more than its
        argument, which fold.py or residual.py evaluates.  It charges a text before it makes it, and every
        value in between that is larger than the argument; the caller charges a result of another type.  It
        raises TemplateError with a message that names the right form.
    """

    name: str
    description: str
    since: str | None
    in_conditions_since: str | None = None
    form: ListForm | MapForm | None = None
    apply: Apply | None = None
    until: str | None = None
    cfn: tuple[str, ...] = ()
    cfn_conditions: tuple[str, ...] = ()


"""None, bool, int, float, str, list[Json] or dict[str, Json]."""

Path = tuple[str | int, ...]
"""A place in a document, e.g. ``("resources", "web", "properties", "count")``."""

Residual = typing.Any
"""Json that may contain function nodes; it can be serialised as JSON."""


@dataclass(frozen=True)
class Reference:
    """One use of another resource of the stack.

    :ivar attribute: the attribute's name for get_attr; "" for get_attr of all attributes
        (``get_attr: [name]``); None for get_resource.
    :ivar path: the constant part of the path below the attribute, for error messages.
    """

    resource: str
    attribute: str | None = None
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class ResourceSettings:
    """The settings of one resource in the environment's ``resource_registry`` (wildcards applied).

    :ivar hooks: some of pre-create, pre-update, pre-delete, post-create, post-update and post-delete.
    :ivar restricted_actions: some of update and replace.
    :ivar timeout: seconds for one action of the resource; None: the default of the service, or of the type.
    :ivar retries: number of retries of a failed step; None: the service's default.
    :ivar hook_options: the options of hooks that have any: ``timeout`` (seconds), ``then`` (continue or fail,
        at the end of that time), ``abort`` (true: reaching the hook ends the stack's action).
    :ivar restored: properties that win over the template's, since the parent stack was restored.
    :ivar drift: settings for drift, as `drift.DriftPolicy.of` takes them; empty: the defaults.
    """

    hooks: frozenset[str] = frozenset()
    restricted_actions: frozenset[str] = frozenset()
    timeout: float | None = None
    retries: int | None = None
    hook_options: Mapping[str, JsonMap] = field(default_factory=dict)
    restored: JsonMap = field(default_factory=dict)
    drift: JsonMap = field(default_factory=dict)


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource as the template defines it.

    :ivar declared_type: the type as written in the template (shown to users).
    :ivar type: after the environment's mapping; TEMPLATE where that is a template.
    :ivar template: the URL or the file name of the template; "": the type is none.  The address of a
        template is no difference between two definitions.
    :ivar depends_on: names in ``depends_on``, sorted, without resources whose condition is false.
    :ivar requires: every name this one must wait for (depends_on and references), sorted.
    :ivar requested_attributes: attributes that others refer to, each with the path below it; only where
        the type has to know of them (engine/planning/group_attributes.py).
    :ivar deletion_policy: ``Delete``, ``Retain`` or ``Snapshot``; ``Retain`` wherever `external_id` is given.
    """

    name: str
    type: TypeIdentity
    declared_type: str
    properties: Mapping[str, Residual] = field(default_factory=dict)
    metadata: Residual = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    requires: tuple[str, ...] = ()
    deletion_policy: str = "Delete"
    update_policy: Mapping[str, Residual] = field(default_factory=dict)
    external_id: Residual = None
    description: str = ""
    settings: ResourceSettings = ResourceSettings()
    requested_attributes: tuple[tuple[str | int, ...], ...] = ()
    template: str = field(default="", compare=False)


@dataclass(frozen=True)
class OutputDefinition:
    """An output.

    :ivar value: the output's residual; None, too, where the output's condition is false.
    :ivar references: the resources and attributes that the value needs.
    """

    name: str
    value: Residual
    description: str = ""
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A declared parameter with its value.

    :ivar type: string, number, json, comma_delimited_list or boolean.
    :ivar value: typed value (list, dict, int, float, bool, str); for a hidden one the sealed node
        ``{"$fn": "sealed", "args": [token]}``.
    :ivar clear: the value in clear also where it is hidden; for conditions, never stored or shown.
    :ivar supplied: the value came from the user, not from the default.
    :ivar custom: names of its custom constraints, each with the author's words for it, or None.
    :ivar is_known: False while its value is not known; `value` is then a residual that fails.
    :ivar schema: the declaration in the form of Heat's API: Type, Description, NoEcho, Default, Label,
        AllowedValues, MinLength … (constraint keys as Heat's ``template validate`` prints them).  The
        default of a hidden parameter is in clear here, so this is never stored or shown with a stack.
    """

    name: str
    type: str
    value: Json
    supplied: bool
    hidden: bool
    immutable: bool
    schema: JsonMap = field(repr=False)
    tags: tuple[str, ...] = ()
    clear: Json = field(default=None, repr=False, compare=False)
    custom: tuple[tuple[str, str | None], ...] = ()
    is_known: bool = True


@dataclass(frozen=True)
class CompiledTemplate:
    """A compiled template.

    :ivar resources: the resources, each after all that it requires.
    :ivar refreshed: names of resources whose attributes are read again at the end, because outputs refer to
        attributes that change when other resources are made.
    :ivar uncertain: names of resources whose conditions depend on values that are not known.  They are among
        the resources, unless they are wrong.
    :ivar pseudo: the pseudo parameters of the template's format, by name.
    """

    version: str
    description: str
    parameters: Mapping[str, Parameter]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    parameter_groups: tuple[JsonMap, ...] = ()
    refreshed: tuple[str, ...] = ()
    uncertain: frozenset[str] = frozenset()
    pseudo: Mapping[str, str] = field(default_factory=dict)


TEMPLATE = TypeIdentity(".template")
"""The type of all resources whose type is a template, whatever its address and its content.

A user who writes it names a template, as with all names that end so; so it is nothing else's name.
"""


def is_template_name(type_name: str) -> bool:
    """Return whether the type is the name or the URL of a template."""
    return type_name.endswith((".yaml", ".template"))


def type_identity(type_name: str) -> TypeIdentity:
    """Return what a type is, as in Heat: its name, or TEMPLATE for the name or the URL of any template."""
    return TEMPLATE if is_template_name(type_name) else TypeIdentity(type_name)


def template_of(type_name: str) -> str:
    """Return the name of the template that a type is; "": it is none."""
    return type_name if is_template_name(type_name) else ""


MAX_VALUE_DEPTH = 200
"""Levels of maps and lists inside each other, those of the template around a value included.  A document may
have half as many.  The recursive functions over values rely on it."""


class Weights(typing.NamedTuple):
    """Bytes of an empty text, map and list, of each entry and item in them, and of any other value."""

    text: int
    map: int
    list: int
    entry: int
    item: int
    other: int


MEMORY = Weights(text=49, map=64, list=56, entry=81, item=8, other=24)
"""Weights of values in the memory of CPython."""
STORED = Weights(text=3, map=2, list=2, entry=5, item=1, other=5)
"""Weights of values as JSON, in the database."""
WIDE = 4
"""Bytes of a character in a text that is not pure ASCII."""


@dataclass(frozen=True)
class Size:
    """Size of a value: bytes, and levels of maps and lists."""

    bytes: int
    depth: int


def measure(value: Json) -> Size:
    """Return the size of a value."""
    total = 0

    def add(size: int) -> None:
        nonlocal total
        total += size

    depth = walk(value, add, MEMORY, MAX_VALUE_DEPTH)
    return Size(total, depth)


def walk(value: Json, charge: Callable[[int], None], weights: Weights, deepest: int) -> int:
    """Charge the parts of a value, each container before its contents.

    :returns: how many levels it has; the walk ends one level below `deepest`.
    """
    level = [value]
    depth = 0
    while level and depth <= deepest:
        leaves = 0
        nested = 0
        below = list[Json]()
        for item in level:
            if isinstance(item, str):
                leaves += weights.text + (len(item) if item.isascii() else len(item) * WIDE)
            elif item is None or isinstance(item, int | float):
                leaves += weights.other
            elif isinstance(item, list | tuple):
                nested = 1
                charge(weights.list + len(item) * weights.item)
                below.extend(item)
            elif isinstance(item, Mapping):
                nested = 1
                charge(weights.map + len(item) * weights.entry)
                leaves += sum(map(len, map(str, item)))
                below.extend(item.values())
            else:
                leaves += weights.other
        charge(leaves)
        depth = depth + nested
        level = below
    return depth
