"""The shapes of values that cross folders.

What comes from outside, or is stored as JSON, is a `Json` until a parser has given it a type.
"""

import typing
from collections.abc import Mapping, Sequence

Json = typing.Any
"""A value as `json.loads` returns it."""
JsonMap = Mapping[str, Json]
"""A JSON object that its reader does not change."""
TypeIdentity = typing.NewType("TypeIdentity", str)
"""Identity of a type: its name, or one for all templates; template/language.py makes it of a name."""
ProgressToken = JsonMap
"""The progress of an action, as its step has left it for the next one; private to the resource type."""


class StoredDefinition(typing.TypedDict, total=False):
    """The definition of a task as its row has it: fields with their default value are left out."""

    type: str
    plugin: TypeIdentity
    template: str
    properties: JsonMap
    metadata: Json
    update_policy: JsonMap
    deletion_policy: str
    external_id: Json
    description: str
    retain: bool
    retries_permanent: bool
    requested_attributes: Sequence[Sequence[str | int]]


class EnvironmentDocument(typing.TypedDict):
    """An environment as the API answers it, and as nested stacks get it."""

    parameters: dict[str, Json]
    parameter_defaults: dict[str, Json]
    resource_registry: dict[str, Json]
    event_sinks: list[Json]
    encrypted_param_names: list[str]


class GraphView(typing.TypedDict):
    """A stack, the stacks nested in it, and their resources, for consoles and for the client.

    :ivar more_resources: the graph has more resources than the view.
    :ivar more_edges: the graph has more edges than the view.
    """

    stack: dict[str, Json]
    nested_stacks: list[dict[str, Json]]
    resources: list[dict[str, Json]]
    more_resources: bool
    more_edges: bool


class StackView(typing.TypedDict, total=False):
    """A stack as Heat's API shows it: in lists the first fields, alone all of them."""

    id: str
    links: list[dict[str, str]]
    stack_name: str
    description: str
    stack_status: str
    stack_status_reason: str
    creation_time: str | None
    updated_time: str | None
    deletion_time: str | None
    stack_owner: str | None
    parent: str | None
    stack_user_project_id: str
    tags: list[str] | None
    project: str
    template_description: str
    parameters: dict[str, Json]
    capabilities: list[str]
    notification_topics: list[str]
    disable_rollback: bool
    timeout_mins: int | None
    abort_on_breakpoint: bool
    breakpoints: list[dict[str, Json]]
    outputs: list[dict[str, Json]]
    not_stopped: list[dict[str, Json]]
