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
from collections.abc import Mapping

from .context import Json, ResourceView, StepContext
from .errors import NotSupported, PermanentError
from .schema import SUPPORTED, Attribute, Property, SupportStatus
from .signals import Signal
from .steps import Done, Step


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
