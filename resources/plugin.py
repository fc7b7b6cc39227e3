"""The contract between Stoker and a resource type.

A type is a class derived from `ResourceType`.  One instance serves all resources of the type and all
threads of a conductor: it keeps no state; what it must remember goes into the step it returns.  Each
action is a pair: ``handle_X`` starts it, ``check_X_complete`` looks once whether it has ended.  Both
return a step:

* `Done`: the action has ended well.
* `Poll`: look again after a while; `progress` is stored at once, and any conductor may do the next look.
* `Park`: nothing to look at until something else changes; holds neither thread nor timer.

and raise `RetryableError` or `PermanentError` (errors.py) when it failed.  A step may be repeated after
a crash: ``handle_X`` gets the same `ResourceView.key` again, and must not make a second thing for it.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import NotSupported, PermanentError
from .nested.children import Children
from .schema import SUPPORTED, Attribute, Property, SupportStatus

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

Json = typing.Any


def physical_name(stack_name: str, resource_name: str, key: str) -> str:
    """A name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
    tail = f"-{resource_name}-{key.replace('-', '')[:12]}"
    return (stack_name[: max(0, 255 - len(tail))] + tail)[-255:]


@dataclass(frozen=True)
class StackFacts:
    """The stack a resource belongs to."""

    id: str
    name: str
    tenant: str


@dataclass(frozen=True)
class ResourceView:
    """A resource as a step sees it.

    :ivar id: number of the resource row, unique in the installation.
    :ivar properties: resolved and converted by the schema, defaults filled in; secrets in clear.
    :ivar previous: the properties last applied (update only), else empty.
    :ivar update_policy: resolved by the type's schema for it.
    :ivar data: what earlier steps of this resource kept; private to the plugin.
    :ivar key: idempotency key; the same for every repetition of this action, new for the next action.
    :ivar physical_id: id of the thing outside, None before it exists.
    :ivar wanted: attributes that others refer to, each with the constant path below it; of a NestedType that
        `asks_members` only.
    """

    id: int
    name: str
    type: str
    stack: StackFacts
    properties: Mapping[str, Json]
    key: str
    physical_id: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    previous: Mapping[str, Json] = field(default_factory=dict)
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    wanted: Sequence[Sequence[str | int]] = ()

    @property
    def physical_name(self) -> str:
        """A name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
        return physical_name(self.stack.name, self.name, self.key)


@dataclass(frozen=True)
class Done:
    """The action has ended.

    :ivar physical_id: None leaves it as it is.
    :ivar data: None leaves it as it is.
    """

    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Poll:
    """Look again.

    :ivar progress: JSON for the next look; not None.
    :ivar after: seconds until then.
    """

    progress: Json
    after: float = 1.0
    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Park:
    """Wait for a signal (a change of another resource's metadata) or for the end of a child stack.

    :ivar waits_on: ``resource:ID`` or ``stack:ID``.
    :ivar seen: generation of the metadata when the step looked; a later one wakes the task at once.
    :ivar after: seconds until the task is looked at even so; None: only the resource's timeout.
    """

    progress: Json
    waits_on: str
    seen: int = 0
    after: float | None = None
    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


Step = Done | Poll | Park


@dataclass(frozen=True)
class Sibling:
    """Another resource of the same stack, as it is now.

    :ivar generation: grows with each change of the metadata.
    """

    id: int
    name: str
    physical_id: str | None
    metadata: Mapping[str, Json]
    generation: int


@dataclass(frozen=True)
class Presigned:
    """Where everybody who knows the signature may signal one resource, and do nothing else.

    :ivar endpoint: takes the signature as X-Auth-Token.
    :ivar signature: a secret.
    """

    endpoint: str
    signature: str = field(repr=False)

    @property
    def url(self) -> str:
        """All in one: a secret, too."""
        return f"{self.endpoint}?Signature={self.signature}"


class StepContext(typing.Protocol):
    """What a conductor offers a running step.  All methods may be called from the step's thread only."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def checkpoint(self) -> None:
        """To be called now and then by long steps.

        :raises Cancelled: the step shall end; let it pass.
        """

    def pause(self, seconds: float) -> None:
        """Sleep, but end early when the step is cancelled.

        :raises Cancelled: the step shall end; let it pass.
        """

    def peer(self, name: str) -> Sibling:
        """Read another resource of the stack (one database read).

        :raises Final: there is none of that name.
        """

    def signal_url(self, resource_name: str) -> str:
        """Where a signal for a resource of this stack can be posted, with a token of Keystone's."""

    def presigned(self) -> Presigned:
        """Where a signal for this resource can be posted without one."""

    def session(self) -> "Session":
        """A session of keystoneauth's in the name of the stack's user, in its project; his token may have
        expired.  For types that say `uses_credentials`.

        :raises Final: the stack has no credential, or Keystone does not take it any more.
        :raises TryAgain: Keystone is away.
        """

    @property
    def children(self) -> Children:
        """Stacks that the resource consists of."""


@dataclass(frozen=True)
class Adjustment:
    """What a signal wants of a group of the same stack.

    :ivar group: its reference, as get_resource yields it.
    :ivar kind: one of heat/scaling.py's ADJUSTMENTS.
    :ivar least_step: members that a percentage adds or removes at least; None: one.
    :ivar cooldown: seconds after the change in which there is no other one; None: the group's own.
    """

    group: str
    kind: str
    by: float
    least_step: int | None = None
    cooldown: float | None = None


@dataclass(frozen=True)
class Scaling:
    """What an adjustment comes to: the new size, and the cooldown after it in seconds."""

    size: int
    cooldown: float


@dataclass(frozen=True)
class Signal:
    """What a signal did.

    :ivar metadata: the new metadata.
    :ivar reason: text for the event and the caller.
    :ivar adjustment: of a group, to be carried out by a conductor.
    """

    metadata: Mapping[str, Json]
    reason: str
    adjustment: Adjustment | None = None


class ResourceType:
    """Base of all resource types; see the module's text for the contract."""

    properties_schema: typing.ClassVar[Mapping[str, Property]] = {}
    attributes_schema: typing.ClassVar[Mapping[str, Attribute]] = {}
    description: typing.ClassVar[str] = ""
    support_status: typing.ClassVar[SupportStatus] = SUPPORTED
    #: Every update of the stack replaces the resource, even where nothing of it has changed.
    always_replaced: typing.ClassVar[bool] = False
    #: Every update of the stack updates the resource, which finds out itself whether something has changed.
    always_updated: typing.ClassVar[bool] = False
    #: What ``update_policy`` in a template may say, in the way of a properties schema.
    update_policy_schema: typing.ClassVar[Mapping[str, Property]] = {}
    #: An update replaces what a check has found broken, or the user has marked unhealthy, without asking
    #: `needs_replace_failed`.
    replaced_when_check_failed: typing.ClassVar[bool] = True
    #: Its steps call `work.session()`: stacks are given a credential when they are made.
    uses_credentials: typing.ClassVar[bool] = False
    #: Seconds one action may take; None: the service's default.
    default_timeout: typing.ClassVar[float | None] = None

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Start to make it; if `target.physical_id` is set, a lost attempt has made it: go on from there."""
        return Done()

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is made."""
        return Done()

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Start to bring it from `target.previous` to `target.properties`; `changed` are the names."""
        return Done()

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether the update has ended."""
        return Done()

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Start to remove it; a thing that is gone already is no error."""
        return Done()

    def check_delete_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is gone."""
        return Done()

    def handle_cancel(self, target: ResourceView, progress: Json, work: StepContext) -> None:
        """Stop what the action with this progress token has set going outside: the action is cancelled.

        A type that does not override it is not asked.  A StepError that it raises is logged, and changes
        nothing.
        """

    def handle_suspend(self, target: ResourceView, work: StepContext) -> Step:
        """Start to suspend it."""
        return Done()

    def check_suspend_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is suspended."""
        return Done()

    def handle_resume(self, target: ResourceView, work: StepContext) -> Step:
        """Start to resume it."""
        return Done()

    def check_resume_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is resumed."""
        return Done()

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Compare the thing outside with what it should be."""
        return Done()

    def check_check_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether the comparison has ended."""
        return Done()

    def handle_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Start to take a snapshot.  The `data` of this action's steps is kept with the snapshot, on top of
        the data that the resource has now; the resource's own stays as it is."""
        return Done()

    def check_snapshot_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether the snapshot is taken."""
        return Done()

    def handle_delete_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Start to remove what a snapshot made outside; what is gone already is no error.

        :param target: the resource as it was then, with the snapshot's `data`, and with the `key` that
            handle_snapshot had: of a snapshot that was lost half-way the key may be all there is.
        """
        return Done()

    def check_delete_snapshot_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is gone."""
        return Done()

    def handle_restore(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Properties that the resource gets instead of those of its snapshot's template, by name.

        They become part of the stack's template, so none of them may hold a secret.  Called where the request
        is served: it computes, and calls nobody.

        :param properties: those it had when the snapshot was taken, resolved.
        :param data: the snapshot's.
        """
        return {}

    def handle_adopt(self, target: ResourceView, work: StepContext) -> Step:
        """Take over a thing that is there already: `target` has its physical id, and the data that another
        stack had of it.  A failure leaves the thing alone.

        :raises Final: it is not there.
        """
        check_named(target)
        return self.handle_check(target, work)

    def check_adopt_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Look once whether it is taken over."""
        return self.check_check_complete(target, progress, work)

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Find what a lost attempt with this idempotency key has made: its physical id, or None.

        Asked before a creation is begun again, and before the deletion of what has no physical id; so nothing
        is made twice, and nothing stays behind.
        """
        return None

    def needs_replace(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
        """Whether this change needs a new resource although the schema allows an update."""
        return False

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Whether an update has to replace a resource whose last action failed.

        May look at the thing outside.  One that is kept is updated like any other.
        """
        return True

    def prepare_for_replace(self, target: ResourceView, work: StepContext) -> None:
        """Make room for the replacement, e.g. give a name or an address free; may be called again after a
        crash."""

    def restore_after_replace(self, target: ResourceView, work: StepContext) -> None:
        """Take back what `prepare_for_replace` did: the resource is kept, and its replacement goes; may be
        called again after a crash."""

    def live_properties(self, target: ResourceView, work: StepContext) -> Mapping[str, Json]:
        """What the service behind says of the properties now, as far as it tells: for an update that shall
        look at the real state (``converge``).

        :raises Final: the thing is gone.
        """
        return {}

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check rules over several properties.

        Called at plan time with what is known by then, as `validate_properties` returns it: what is
        deferred is absent, what is not given is None; and before a step with all resolved properties.

        :raises PropertyError: with the property's name and what would be right.
        """

    def reference_id(self, target: ResourceView) -> Json:
        """What get_resource yields."""
        return target.physical_id if target.physical_id is not None else target.name

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """All attributes, by name; asked for once after each action that ended well.

        One that is missing here is None.
        """
        return {}

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Take a signal.

        :raises NotSupported: the type takes none.
        :raises SignalError: the details are of no use; says what would be.
        """
        raise NotSupported(f"Resource {target.name} of type {target.type} does not take signals")


def check_named(target: ResourceView) -> None:
    """For an adoption.

    :raises Final: the document names no thing.
    """
    if target.physical_id is None:
        raise PermanentError("Resource ID was not provided.", kind="Exception")
