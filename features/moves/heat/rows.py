"""The rows of one tree of stacks in Heat's database, secrets in clear; values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....shapes import Json, JsonMap

STACK_TYPE = "OS::Heat::Stack"
"""Type in the events of stacks; a resource of this type is a root stack of its own in Heat."""
STATUSES = ("IN_PROGRESS", "COMPLETE", "FAILED")
ACTIONS = (
    *("INIT", "CREATE", "DELETE", "UPDATE", "ROLLBACK", "SUSPEND", "RESUME"),
    *("ADOPT", "SNAPSHOT", "CHECK", "RESTORE"),
)
"""The actions and the statuses of stacks and resources; those of events are any texts."""
SECTIONS = ("parameters", "parameter_defaults", "resource_registry", "event_sinks", "encrypted_param_names")


class Refused(Exception):
    """A tree cannot be moved.

    :ivar reasons: why, each with what to do.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def document_of(environment: JsonMap) -> dict[str, Json]:
    """Return an environment as the API takes it; Heat stores no value for a section that is empty."""
    return {name: value for name, value in environment.items() if name in SECTIONS and value}


@dataclass(frozen=True)
class HeatTemplate:
    """A template with its environment and its files.

    :ivar environment: the document, hidden parameters in clear.
    """

    template: JsonMap
    environment: JsonMap = field(repr=False)
    files: Mapping[str, str]


@dataclass(frozen=True)
class HeatEvent:
    """An event.

    :ivar properties: properties of the resource at that time, in clear; None: none were stored.
    """

    uuid: str
    stack_id: str
    resource_name: str
    resource_type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    at: float
    properties: JsonMap | None = field(default=None, repr=False)


@dataclass(frozen=True)
class HeatSnapshot:
    """A snapshot.

    :ivar data: the document of the stack at that moment; None: it was never completed.
    """

    id: str
    stack_id: str
    name: str | None
    action: str
    status: str
    reason: str
    created_at: float
    data: JsonMap | None = field(repr=False)


@dataclass(frozen=True)
class HeatResource:
    """A resource.

    :ivar physical_id: id of the remote resource; None: there is none yet.
    :ivar properties: properties as they were resolved for its last action; None: none was stored.
    :ivar attributes: values of attributes that Heat has cached, by name.
    :ivar is_secret: whether its properties and attributes are stored encrypted.
    :ivar data: values that the type has stored, by key.
    :ivar requires: ids of the resources that it needs.
    :ivar template_id: the template of its last action; None: the stack's.
    """

    id: int
    uuid: str
    stack_id: str
    name: str
    action: str
    status: str
    reason: str
    created_at: float
    updated_at: float
    physical_id: str | None = None
    metadata: JsonMap | None = field(default=None, repr=False)
    properties: JsonMap | None = field(default=None, repr=False)
    attributes: JsonMap = field(default_factory=dict, repr=False)
    is_secret: bool = False
    data: Mapping[str, str] = field(default_factory=dict, repr=False)
    requires: Sequence[int] = ()
    replaces: int | None = None
    replaced_by: int | None = None
    template_id: int | None = None


@dataclass(frozen=True)
class HeatStack:
    """A stack.

    :ivar owner_id: id of the stack that it is nested in; None: it is a root.
    :ivar timeout: minutes that an action may take; None: the default.
    :ivar is_backup: whether it keeps the old resources of an update by an engine without convergence.
    :ivar locked_by: the engine that has it locked; None: none has.
    :ivar creds_id: the row with its credential; None: it has none.
    """

    id: str
    name: str
    project_id: str
    action: str
    status: str
    reason: str
    created_at: float
    template_id: int
    previous_template_id: int | None = None
    updated_at: float | None = None
    deleted_at: float | None = None
    username: str | None = None
    owner_id: str | None = None
    parent_resource_name: str | None = None
    timeout: int | None = None
    disable_rollback: bool = True
    user_project_id: str | None = None
    is_backup: bool = False
    locked_by: str | None = None
    traversal: str | None = None
    creds_id: int | None = None
    trust_id: str | None = field(default=None, repr=False)
    trustor_id: str | None = None
    tags: Sequence[str] = ()
    resources: Sequence[HeatResource] = ()
    events: Sequence[HeatEvent] = ()
    snapshots: Sequence[HeatSnapshot] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether its last action has succeeded."""
        return self.status == "COMPLETE"


@dataclass(frozen=True)
class HeatConfig:
    """A software config."""

    id: str
    project_id: str
    name: str | None
    group: str | None
    config: JsonMap = field(repr=False)
    created_at: float = 0.0


@dataclass(frozen=True)
class HeatDeployment:
    """A software deployment."""

    id: str
    project_id: str
    config_id: str
    server_id: str
    action: str | None
    status: str | None
    reason: str
    created_at: float
    updated_at: float | None = None
    input_values: Json = field(default=None, repr=False)
    output_values: Json = field(default=None, repr=False)


@dataclass(frozen=True)
class HeatTree:
    """A root stack with all stacks nested in it.

    :ivar stacks: the nested stacks, those nearest to the root first.
    :ivar templates: the templates by id; one that Heat has purged is missing.
    :ivar faults: why the tree cannot be read as a whole, such as a wrong key, each with what to do.
    :ivar notes: what of it stays behind.
    """

    root: HeatStack
    stacks: Sequence[HeatStack] = ()
    templates: Mapping[int, HeatTemplate] = field(default_factory=dict)
    faults: Sequence[str] = ()
    notes: Sequence[str] = ()
