"""The requests of users, which the API makes and the engine carries out, and results of previews; values."""

import functools
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...db.ids import ResourceId
from ...db.rows import Stack
from ...resources.contract.cloud import Trustor
from ...resources.heat_types import unavailable
from ...shapes import JsonMap
from ...template.budget import Budget
from ...template.environment import Environment
from ...template.language import CompiledTemplate, Residual, ResourceDefinition

EXISTING = "the stack's own environment"
"""Name under which it is merged as a file, below those of the request; it is not stored."""


MayUse = Callable[[str], bool]


def anything(type_name: str) -> bool:
    """Allow every type."""
    return True


class TypeForbidden(Exception):
    """The request may not use a resource type; in Heat's words."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"You are not authorized to use {type_name}.")


class TypeUnavailable(Exception):
    """The caller's cloud lacks the service of a resource type; see `unavailable`."""

    def __init__(self, type_name: str, service: str, reason: str = "") -> None:
        super().__init__(unavailable(type_name, service, reason))


@dataclass(frozen=True)
class Question:
    """A value of which only the cloud can say whether it meets a custom constraint.

    :ivar check: name of the constraint.
    """

    check: str
    value: str = field(repr=False)


class CallersCloud(typing.Protocol):
    """The cloud as the caller of a request sees it: with their token, in their project."""

    @property
    def project_id(self) -> str:
        """The project that the caller's token is for."""

    def has_service(self, service_type: str) -> bool:
        """Return whether the caller's service catalog has a service; True where there is no catalog."""

    def problems(self, questions: Collection[Question]) -> Mapping[Question, str]:
        """Return the problems of the values that do not meet their constraints.

        A question that the cloud does not answer in time has no problem: the step asks again.
        """


ResourcePath = tuple[str, ...]
"""Names of resources from a stack down to a resource of it, or of a stack nested in it."""


@dataclass(frozen=True)
class StoredData:
    """The data of resources that count at an update: those of a stack and of the stacks nested in it.

    :ivar read: reads them; it is called once, and only if somebody asks.
    """

    read: Callable[[], Mapping[ResourcePath, JsonMap]]

    @functools.cached_property
    def _by_path(self) -> Mapping[ResourcePath, JsonMap]:
        return self.read()

    @functools.cached_property
    def _below(self) -> Mapping[ResourcePath, Sequence[tuple[ResourcePath, JsonMap]]]:
        below: dict[ResourcePath, list[tuple[ResourcePath, JsonMap]]] = {}
        for path, data in sorted(self._by_path.items()):
            for depth in range(len(path)):
                below.setdefault(path[:depth], []).append((path[depth:], data))
        return below

    def of(self, path: ResourcePath) -> JsonMap:
        """Return the data of a resource; {}: it does not exist yet, or has none."""
        return self._by_path.get(path, {})

    def below(self, path: ResourcePath) -> Sequence[tuple[ResourcePath, JsonMap]]:
        """Return all data below a resource, by the paths from there: JSON, by which equal stacks differ."""
        return self._below.get(path, ())


NOTHING_STORED = StoredData(dict)
"""The data of a stack that does not exist yet."""


class Purpose:
    """A use of a compiled goal: it decides what is judged, and what is returned.

    :cvar is_draft: nobody makes the stack now: values that lack are not known yet, on any level, and defaults
        need not satisfy their constraints.
    :cvar is_new: nothing of the stack exists yet: all that it has is made by this template.
    :cvar keeps_nested: the compiled templates of nested stacks are returned, too.
    :cvar may_need_cloud: the template may use a cloud's services, also where this installation has no cloud.
    :cvar all_members: groups have all members, not only one that is checked for all.
    :cvar without_unavailable: resources of types that the caller's cloud or the installation lacks are not
        judged.
    """

    is_draft: bool = False
    is_new: bool = False
    keeps_nested: bool = False
    may_need_cloud: bool = False
    all_members: bool = False
    without_unavailable: bool = False


class _Created(Purpose):
    is_new = True


class _Reviewed(_Created):
    keeps_nested = True


class _Previewed(Purpose):
    is_new = True
    keeps_nested = True
    all_members = True


class _Moved(Purpose):
    may_need_cloud = True


@dataclass(frozen=True)
class Validated(Purpose):
    """The check of a template, of which somebody may make a stack later, elsewhere."""

    keeps_nested: bool = False
    without_unavailable: bool = False
    is_draft = True
    is_new = True
    may_need_cloud = True


STORED = Purpose()
"""The stack is stored, and conductors make it."""
CREATED = _Created()
"""The stack is stored for the first time, and conductors make all of it."""
REVIEWED = _Reviewed()
"""The stack is stored for the first time, after a review of all of it, with its nested stacks."""
PREVIEWED = _Previewed()
"""A user sees the stack that a creation would make."""
MOVED = _Moved()
"""The stack comes from another installation, which may have a cloud."""


@dataclass(frozen=True)
class Goal:
    """Everything that defines the desired state of a stack.

    :ivar template: the template as text or as a dict.
    :ivar files: contents by name or URL, for get_file, nested templates and environment files.
    :ivar environment_files: names in `files`, merged in this order on the server, before `environment`.
    :ivar generated: the template was made by a resource type; its size is not limited.
    :ivar may_use: decides whether a resource type may be used, on any level; a conductor does not call it.
    :ivar cloud: says which types are available, and checks custom constraints, on any level; None: nobody
        asks it, as when a conductor compiles.
    :ivar facade: the parts of a nested stack's resource that the stack's template may read, as residuals.
    :ivar secret: names of parameters that are hidden even if the template does not declare them hidden,
        because their values hold a secret.
    :ivar retained: names of parameters whose values are taken from the stack.  They are dropped where the
        template declares them no more.
    :ivar budget: the budget of the request; None: a new one.
    :ivar unknown: names of parameters that have no values yet.  Values that depend on them are not checked.
    :ivar purpose: the use that is made of the compiled goal.
    :ivar stored_data: the data that groups of the stack, and of those nested in it, have stored.
    """

    template: str | JsonMap
    environment: JsonMap = field(default_factory=dict)
    environment_files: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: JsonMap = field(default_factory=dict)
    facade: JsonMap | None = None
    generated: bool = False
    secret: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()
    may_use: MayUse = anything
    cloud: CallersCloud | None = field(default=None, repr=False, compare=False)
    budget: Budget | None = field(default=None, repr=False, compare=False)
    unknown: frozenset[str] = frozenset()
    purpose: Purpose = STORED
    stored_data: StoredData = field(default=NOTHING_STORED, repr=False, compare=False)


@dataclass(frozen=True)
class AdoptedResource:
    """An existing resource to be adopted; secrets in clear.

    :ivar physical_id: its physical id; None: it was never created, so it cannot be adopted.
    :ivar metadata: its metadata; None: the metadata of the template.
    :ivar nested: the document of the stack that it is; None: it is no nested stack.
    """

    physical_id: str | None = None
    metadata: JsonMap | None = None
    data: JsonMap = field(default_factory=dict)
    nested: JsonMap | None = None

    @classmethod
    def of(cls, entry: JsonMap) -> "AdoptedResource":
        """Return the resource of an entry of a document.

        The entry of a nested stack is that stack's own document, with the keys of the resource added.
        """
        return cls(
            physical_id=entry.get("resource_id"),
            metadata=entry.get("metadata"),
            data=entry.get("resource_data") or {},
            nested=None if entry.get("resources") is None else entry,
        )


@dataclass(frozen=True)
class Nesting:
    """The place of a nested stack, and what it has from the stack around it.

    :ivar parent: the stack around it.
    :ivar resource_id: the resource of that stack to which it belongs.
    :ivar deadline: function from the present moment to the moment at which the creation has timed out; both
        in seconds since the epoch.
    :ivar breakpoints_hold: whether breakpoints stop the creation.
    """

    parent: Stack
    resource_id: ResourceId
    deadline: Callable[[float], float]
    breakpoints_hold: bool = True


@dataclass(frozen=True)
class CreateRequest:
    """A stack to be created or adopted, by a user or as the nested stack of a resource.

    :ivar timeout_mins: minutes that the creation may take; None: the service's default.
    :ivar adopted: resources to take over, by name; None: all of them are created.
    :ivar abort_on_breakpoint: reaching a breakpoint ends the stack's action.
    :ivar trustor: the user who requests it, as Keystone knows them.
    :ivar is_limited: the quotas of the project apply, and for a nested stack the limit of its tree.
    :ivar nesting: the stack and the resource around it; None: it is a top-level stack.
    """

    project_id: str
    name: str
    goal: Goal
    owner: str | None = None
    timeout_mins: int | None = None
    disable_rollback: bool = True
    abort_on_breakpoint: bool = False
    tags: Sequence[str] = ()
    adopted: Mapping[str, AdoptedResource] | None = None
    trustor: Trustor | None = None
    is_limited: bool = True
    nesting: Nesting | None = None


@dataclass(frozen=True)
class UpdateRequest:
    """A stack to be updated.

    :ivar existing: parts that the goal leaves out are taken from the stack (PATCH).
    :ivar converge: compare each resource with the remote resource first, and repair differences and losses.
    :ivar clear_parameters: names of parameters of the stack that are not taken.
    :ivar timeout_mins: minutes that the update may take; None: as before.
    :ivar disable_rollback: a failure causes no rollback; None: as before.
    :ivar abort_on_breakpoint: reaching a breakpoint ends the stack's action; None: as before.
    :ivar tags: the stack's new tags; None: no tags, or with `existing` the present ones.
    :ivar trustor: the user who requests it, as Keystone knows them.
    :ivar is_limited: the quotas of the project apply.
    """

    goal: Goal
    existing: bool = False
    converge: bool = False
    clear_parameters: Sequence[str] = ()
    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    abort_on_breakpoint: bool | None = None
    tags: Sequence[str] | None = None
    trustor: Trustor | None = None
    is_limited: bool = True


@dataclass(frozen=True)
class PreviewedResource:
    """One resource of a previewed stack.

    :ivar properties: properties as residuals, with the defaults of the type.
    :ivar attributes: names of the attributes, which have no values yet.
    :ivar parent: name of the resource that the stack is; None: it is the root.
    """

    name: str
    type: str
    properties: Residual
    metadata: Residual
    description: str
    required_by: Sequence[str]
    attributes: Sequence[str]
    stack_name: str
    parent: str | None


PreviewedResources = Sequence["PreviewedResource | PreviewedResources"]
"""The resources of a stack; in the place of one that is a nested stack the resources of that."""


@dataclass(frozen=True)
class Preview:
    """A stack that was compiled but not stored."""

    name: str
    description: str
    parameters: Mapping[str, str]
    timeout_mins: int | None
    disable_rollback: bool
    tags: Sequence[str]
    resources: PreviewedResources


@dataclass(frozen=True)
class Branch:
    """A child to be compiled.

    :ivar environment: the environment of the child.
    :ivar secret: names of parameters whose values hold secrets.
    :ivar unknown: names of parameters whose values are not known yet.
    """

    template: JsonMap
    parameters: JsonMap
    environment: Environment
    facade: JsonMap | None
    secret: frozenset[str]
    depth: int
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CheckedStack:
    """A stack that was checked, with those nested in it.

    :ivar plan: the compiled template; None unless the tree `keeps` it.
    :ivar resources: number of resources, those of nested stacks included.
    :ivar stored: bytes that are stored of all these resources.
    :ivar children: the stacks that its resources are, by name; empty unless the tree `keeps` them.
    """

    plan: CompiledTemplate | None
    resources: int
    stored: int
    children: Mapping[str, "NestedChild"]


@dataclass(frozen=True)
class NestedChild:
    """A nested stack that was checked.

    :ivar definition: the definition of its resource.
    :ivar described: the description of its template, by `describe`; without parameters if a type has made it.
    :ivar copies: number of equal nested stacks that this one stands for.
    """

    definition: ResourceDefinition
    described: JsonMap
    branch: Branch
    stack: CheckedStack
    copies: int
