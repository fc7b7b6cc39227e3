"""The values of a compiled template: parameters, resource definitions, outputs.

All values here are plain JSON trees.  A *residual* is a JSON tree in which everything that is known without
the cloud has been folded.  The rest are function nodes, each a dict with exactly the keys ``$fn`` (name of
the function) and ``args`` (list of residuals).  A literal dict that has a key ``$fn`` is
marked as ``{"$fn": "literal", "args": [{...}]}``.  See `residual.py` for evaluation.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

Json = typing.Any
"""None, bool, int, float, str, list[Json] or dict[str, Json]."""

Path = tuple[str | int, ...]
"""A place in a document, e.g. ``("resources", "web", "properties", "count")``."""

Residual = typing.Any
"""Json that may contain function nodes; it can be serialised as JSON."""


@dataclass(frozen=True)
class Reference:
    """One use of another resource of the stack.

    :ivar attribute: None for get_resource; the attribute's name for get_attr; "" for get_attr of all
        attributes (``get_attr: [name]``).
    :ivar path: the constant part of the path below the attribute, for error messages.
    """

    resource: str
    attribute: str | None = None
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True)
class ResourceSettings:
    """The settings of one resource in the environment's ``resource_registry`` (wildcards applied).

    :ivar hooks: of pre-create, pre-update, pre-delete, post-create, post-update, post-delete.
    :ivar restricted_actions: of update, replace.
    :ivar timeout: seconds for one action of the resource; None: the service's default.
    :ivar retries: how often a failed step is retried; None: the service's default.
    :ivar hook_options: of those hooks that have any: ``timeout`` (seconds), ``then`` (continue or fail, at
        the end of that time), ``abort`` (true: reaching it ends the stack's action).
    :ivar restored: properties that win over the template's, since the parent stack was restored.
    """

    hooks: frozenset[str] = frozenset()
    restricted_actions: frozenset[str] = frozenset()
    timeout: float | None = None
    retries: int | None = None
    hook_options: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    restored: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource as the template defines it.

    :ivar declared_type: the type as written in the template (shown to users).
    :ivar type: after the environment's mapping; a type name, or the URL/file name of a provider template.
    :ivar depends_on: names in ``depends_on``, sorted, without resources whose condition is false.
    :ivar requires: every name this one must wait for (depends_on and references), sorted.
    :ivar requested_attributes: attributes that others refer to, each with the path below it; only where
        the type has to know of them (planning/group_attributes.py).
    :ivar deletion_policy: ``Delete``, ``Retain`` or ``Snapshot``; ``Retain`` wherever `external_id` is given.
    """

    name: str
    type: str
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


@dataclass(frozen=True)
class OutputDefinition:
    """An output.

    :ivar value: None, too, where the output's condition is false.
    :ivar references: resources and attributes the value needs.
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
    schema: Mapping[str, Json] = field(repr=False)
    tags: tuple[str, ...] = ()
    clear: Json = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class CompiledTemplate:
    """A compiled template.

    :ivar resources: in an order in which each resource follows all that it requires.
    """

    version: str
    description: str
    parameters: Mapping[str, Parameter]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    parameter_groups: tuple[Mapping[str, Json], ...] = ()


def is_template_name(type_name: str) -> bool:
    """Return whether the type is the name or the URL of a template."""
    return type_name.endswith((".yaml", ".template"))
