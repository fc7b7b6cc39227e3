"""The contract between Stoker and a resource type.

A type is a class derived from `ResourceType`.  One instance serves all resources of the type and all
threads of a conductor.  It keeps no state: it returns its state with the step.
Each action is a pair: ``handle_X`` starts it, ``check_X_complete`` polls once whether it has ended.
Both return a step (steps.py):

* `Done`: the action is complete.
* `Poll`: poll again after a while; `progress` is stored at once, and any conductor may poll next.
* `Park`: wait until something else changes; this holds neither a thread nor a timer.

They raise `RetryableError` or `PermanentError` (errors.py) when the action failed.  A step may be repeated
after a crash: ``handle_X`` gets the same `ResourceView.key`, and must not create a second thing for it.
"""

import typing
from collections.abc import Mapping, Sequence, Set

from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from .context import CloudCalls, Collection, StepContext
from .errors import PermanentError, SignalNotSupported
from .implied import ImpliedDependency
from .known_stack import KnownResource, KnownStack, StackRule
from .preflight import CloudFacts, CloudRule, QuotaAmount, QuotaNeeds, needs_of
from .schema import SUPPORTED, Attribute, Property, SupportStatus
from .signals import Signal
from .steps import Done, Poll, Step
from .views import ResourceView

NOT_KNOWN: typing.Final = object()
"""The value, or the part of one, that is not known when a template is compiled."""
ADOPTED_ID = "adopted_id"
"""Key in the data of an adopted resource whose type is `stored_here`: the id that the document names.

It becomes the physical id once the type has found that the resource may have the thing.
"""


class ResourceType:
    """Base of all resource types; the module's docstring has the contract."""

    #: The name that templates use, if its module is in a folder of types.  Classes derived from it have none.
    type_name: typing.ClassVar[str] = ""
    #: The registry gives an instance the defaults of the configuration.
    properties_schema: Mapping[str, Property] = {}
    attributes_schema: typing.ClassVar[Mapping[str, Attribute]] = {}
    description: typing.ClassVar[str] = ""
    support_status: typing.ClassVar[SupportStatus] = SUPPORTED
    #: Resources that come first although no property refers to them.
    implied_dependencies: typing.ClassVar[Sequence[ImpliedDependency]] = ()
    #: Every update of the stack replaces the resource, even if it has not changed.
    always_replaced: typing.ClassVar[bool] = False
    #: Every update of the stack updates the resource, which detects changes itself.
    always_updated: typing.ClassVar[bool] = False
    #: `handle_update` is also called if only another part of the definition, such as the metadata, has
    #: changed.
    updated_when_redefined: typing.ClassVar[bool] = False
    #: Schema of ``update_policy`` in a template.
    update_policy_schema: typing.ClassVar[Mapping[str, Property]] = {}
    #: An update replaces a resource that failed a check without calling `needs_replace_failed`.  False: one
    #: that this keeps is repaired (`handle_repair`).  What a user marked unhealthy is replaced in any case.
    replaced_when_check_failed: typing.ClassVar[bool] = True
    #: Its steps call `StepContext.session`, so stacks get a credential when they are created.
    uses_credentials: typing.ClassVar[bool] = False
    #: Type of the OpenStack service that it needs, such as ``compute``.  If the service catalog of a user
    #: lacks the service, the type is not available to this user.  None: it needs no service.
    service: typing.ClassVar[str | None] = None
    #: Its resources need the service for some of their properties only, or leave it to nested stacks.
    works_without_cloud: typing.ClassVar[bool] = False
    #: The mark by which a thing is recognized after a lost creation, for the reference of types.
    identity: typing.ClassVar[str] = ""
    #: Its things are rows of Stoker's own database, and belong to the resource that has made them.  So a
    #: template cannot name one by ``external_id``: the id may be one of another project.
    stored_here: typing.ClassVar[bool] = False
    #: Its signals are outputs, which `Signal.outputs` stores.  They may be as large as the metadata of a
    #: handle, and reach the resource even while it is being deleted.
    takes_outputs: typing.ClassVar[bool] = False
    #: Its attributes follow the signals to a resource that its properties refer to: once it is complete,
    #: each such signal has `refresh` called.
    follows_signals: typing.ClassVar[bool] = False
    #: The collectors that the guest of a server asks before the collector of its transport.
    guest_collectors: typing.ClassVar[Sequence[str]] = ()
    #: `validate_in_stack` checks something.
    has_rules_in_stack: typing.ClassVar[bool] = False
    #: Rules over all resources of a template that has one of the type, for what a service would refuse in any
    #: case.  Each is called once for a template, even if several types declare it.
    stack_rules: typing.ClassVar[Sequence[StackRule]] = ()
    #: Amounts that a resource takes of its project's quotas, by the name that its service has for the quota.
    quota: typing.ClassVar[Mapping[str, QuotaAmount]] = {}
    #: The property that gives its thing to another project or user, whose quotas it takes then; "": none.
    owner_property: typing.ClassVar[str] = ""
    #: Rules over the resources that an action makes and the cloud, for a preflight.  Each is called once for
    #: a template, even if several types declare it.
    cloud_rules: typing.ClassVar[Sequence[CloudRule]] = ()
    #: What is lost with a thing that is replaced, in words, such as ``its data``; "": nothing that matters.
    lost_with_it: typing.ClassVar[str] = ""
    #: A ``deletion_policy`` of ``Snapshot`` keeps a copy, which `handle_snapshot_delete` makes.
    snapshot_on_delete: typing.ClassVar[bool] = False
    #: Amounts that this copy takes of the project's quotas, as in `quota`.
    copy_quota: typing.ClassVar[Mapping[str, QuotaAmount]] = {}
    #: The property by which `variant` chooses; "": the type has no variants.
    chosen_by: typing.ClassVar[str] = ""
    #: The type of which this one is an older name: an update from one name to the other keeps the resource.
    renamed_to: typing.ClassVar[str] = ""
    #: The type of which it is a variant: no template can name it.
    variant_of: typing.ClassVar[str | None] = None
    #: Seconds that each try of an action may take if neither the environment nor ``[stacks]
    #: resource_timeout`` sets a timeout; None: only the stack's timeout limits it.
    default_timeout: typing.ClassVar[float | None] = None

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Start to create it; if `target.physical_id` is set, a lost attempt has created it: continue."""
        return Done()

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether it is created."""
        return Done()

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Start to update it from `target.previous` to `target.properties`; `changed` are the names."""
        return Done()

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether the update is complete."""
        return Done()

    def handle_repair(self, target: ResourceView, context: StepContext) -> Step:
        """Start to bring a thing whose check has failed back to the state that a check expects.

        It is called only on types without `replaced_when_check_failed`, for things that
        `needs_replace_failed` keeps.  The update of the properties that have changed follows.
        """
        return Done()

    def check_repair_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether the thing is repaired."""
        return Done()

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Start to delete it; a thing that does not exist is no error."""
        return Done()

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether it is deleted."""
        return Done()

    def handle_cancel(self, target: ResourceView, progress: Json, context: StepContext) -> None:
        """Stop the outside work of the action with this progress token: the action is cancelled.

        It is called only on types that override it.  A StepError from it is only logged.
        """

    def handle_snapshot_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Start to make the copy that stays when the thing is deleted; the deletion follows.

        It is called for types with `snapshot_on_delete`.  Only the progress of its steps is stored.
        """
        return self.handle_snapshot(target, context)

    def check_snapshot_delete_complete(
        self, target: ResourceView, progress: Json, context: StepContext
    ) -> Step:
        """Poll whether the copy is made."""
        return self.check_snapshot_complete(target, progress, context)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Start to suspend it."""
        return Done()

    def check_suspend_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether it is suspended."""
        return Done()

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Start to resume it."""
        return Done()

    def check_resume_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether it is resumed."""
        return Done()

    def guest_transport(self, target: ResourceView) -> str | None:
        """Return how the guest of the resource, a server, reads its metadata: a key of guests.TRANSPORTS.

        None: the resource has no guest, or the guest's transport is not Stoker's choice.
        """
        return None

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Start to compare the thing outside with the resource."""
        return Done()

    def check_check_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether the comparison is complete."""
        return Done()

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start to take a snapshot.

        The snapshot stores the present data of the resource, with the `data` of this action's steps over it.
        The resource's own data stays unchanged.
        """
        return Done()

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether the snapshot is taken."""
        return Done()

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start to delete the things that a snapshot created outside; a missing one is no error.

        :param target: the resource at the time of the snapshot, with the snapshot's `data` and the `key` of
            its `handle_snapshot`; a snapshot that was lost halfway may have only the key.
        """
        return Done()

    def check_delete_snapshot_complete(
        self, target: ResourceView, progress: Json, context: StepContext
    ) -> Step:
        """Poll whether it is deleted."""
        return Done()

    def handle_restore(self, properties: JsonMap, data: JsonMap) -> JsonMap:
        """Return properties that win over those of the snapshot's template, by name.

        They become part of the stack's template, so none of them may contain a secret.  The API process calls
        it: it must compute only, and call no service.

        :param properties: resolved properties at the time of the snapshot.
        :param data: the data that the snapshot stored.
        """
        return {}

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Start to adopt an existing thing: `target` has its physical id, and another stack's data of it.

        A failure leaves the thing unchanged.

        :raises PermanentError: the thing does not exist.
        """
        check_named(target)
        return self.handle_check(target, context)

    def check_adopt_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll whether it is adopted."""
        return self.check_check_complete(target, progress, context)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the thing that a lost attempt with this key has created; None: there is none.

        It is called before a create is repeated, and before the delete of a resource without a physical id.
        So nothing is created twice, and nothing is orphaned.
        """
        return None

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether this change needs a new resource although the schema allows an update."""
        return False

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether an update must replace a resource whose last action failed.

        It may check the thing outside.  A resource that is kept is updated like any other.  If nothing has
        changed since its creation failed, the creation is continued: `handle_create` gets its physical id.
        """
        return True

    def prepare_for_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
        """Make room for the replacement: release a name or an address.

        It is called again after a crash, and after a `Poll`, of which only `after` is used.  The call is
        stored before it is made: if an update then keeps the resource, it calls `restore_after_replace`.
        """
        return None

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
        """Undo `prepare_for_replace`: the resource is kept, and its replacement will be deleted.

        The replacement (`StepContext.replacement`) may still exist, and have the released name or address.
        No task works on it any more.  The method is called again after a crash, and after a `Poll`, of which
        only `after` is used.  It may also be called if nothing was released.

        :raises ReplaceNeeded: room could only be made by the loss of the thing.
        """
        return None

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the present properties of the service's thing, for an update with ``converge``.

        :raises PermanentError: the thing is gone.
        """
        return {}

    def collection(self) -> Collection | None:
        """Return the list of all things of the type, by which drift is observed; None: there is none."""
        return None

    def remote(self, target: ResourceView, context: CloudCalls) -> JsonMap:
        """Return the thing of a resource that is missing in its `collection`, by one request.

        It is called only on types with a collection.

        :raises PermanentError: of the kind ``NotFound``: the thing is gone.
        """
        raise PermanentError(f"{target.type_name} has no collection", kind="NotSupported")

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the properties that a thing of the collection shows, in the form of `live_properties`.

        It makes no request for a single resource.  Properties that it omits are not observed.

        :param remote: the thing in the collection.
        """
        return {}

    def key_on(self, remote: JsonMap) -> str | None:
        """Return the key of the creation in a thing of the collection; None: the thing has no key."""
        return None

    def configure(self, values: JsonMap) -> None:  # noqa: B027 - most need nothing
        """Take values of the configuration, once, before anything else is called."""

    def variant(self, chosen_by: Json) -> str | None:
        """Return the name of the variant that takes the place of this type for a resource; None: none does.

        It is called when a template is compiled.  An update that changes the choice replaces the resource.

        :param chosen_by: the value of the property `chosen_by` in the template.  `NOT_KNOWN` is the value, or
            the part of it, that comes from another resource.
        """
        return None

    def validate(self, properties: JsonMap) -> None:
        """Check rules over several properties.

        It is called at plan time with the known properties, as `validate_properties` returns them: properties
        with values of other resources are absent, and properties that are not given are None.  Before a step
        it gets all resolved properties.

        :raises PropertyError: a value breaks a rule; the error names the property and the right values.
        """

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check rules between a resource and the others of its stack, at plan time.

        :param others: all resources of the template, by name, with residuals in their properties.
        :raises PropertyError: a property breaks a rule, as in `validate`.
        """

    def quota_needs(self, resource: KnownResource, stack: KnownStack, cloud: CloudFacts) -> QuotaNeeds:
        """Return the amounts that a resource takes of its project's quotas, for a preflight.

        :param stack: the other resources of its template.
        :param cloud: tells what an amount depends on, such as the size of a flavor.
        """
        return needs_of(self.quota, resource)

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        """Return who uses a thing that is to be deleted, for a preflight; (): nobody, as far as it is known.

        :param own: physical ids of the things of the stack, which use each other as the template says; each
            also as ``TYPE:ID``, because a link may have the id of what it links.
        """
        return ()

    def members_deleted(self, former: JsonMap, wanted: JsonMap, data: JsonMap) -> int:
        """Return how many members of a group an update deletes though nobody asks for fewer, for a preflight.

        Nobody knows why the group has more than it was asked for: signals may have added them.

        :param former: the known properties, as the last action had them.
        :param wanted: the known properties of the update.
        :param data: the stored data of the resource.
        """
        return 0

    def reference_id(self, target: ResourceView) -> Json:
        """Return the value of get_resource."""
        return target.physical_id if target.physical_id is not None else target.name

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return all attributes by name; it is called once after each action that succeeded.

        An attribute that is missing here is None.
        """
        return {}

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the resource's `data` with the present values of the service.

        It is called after all other steps of a stack's action, if outputs refer to a volatile attribute.  It
        makes one request and does not wait.  An error is logged, and fails nothing: the stored data stays.
        It is called after `carry_out`, too, and for types with `follows_signals`; an error is retried then.
        """
        return target.data

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Compute the effects of a signal.

        :raises NotSupported: the type takes no signals.
        :raises SignalError: the details are invalid; the text says what is right.
        """
        raise SignalNotSupported(f"Resource {target.name} of type {target.type_name} does not take signals")

    def carry_out(self, target: ResourceView, request: JsonMap, context: StepContext) -> None:
        """Carry out the request of a signal, with the rights of the stack's user.

        A conductor calls it, perhaps during an action on the resource, and again after a crash, with the same
        `target.key`.  What it raises is an event; the resource stays as it is.

        :param request: `Signal.request`.
        """
        raise NotImplementedError


def check_named(target: ResourceView) -> None:
    """Check that an adoption names a thing.

    :raises PermanentError: the document has no physical id.
    """
    if target.physical_id is None:
        raise PermanentError("Resource ID was not provided.", kind="Exception")
