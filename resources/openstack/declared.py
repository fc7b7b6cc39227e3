"""Types of things that a service of the cloud keeps in collections: declared, with one way of working.

A type declares where its things are, which property goes into which field, and how states are judged::

    class Net(DeclaredType):
        service = "network"
        path, item = "/networks", "network"
        status = StatusMeaning(pending=("BUILD",))
        references = {"qos_policy": NamedRemote("neutron.qos_policy")}
        properties_schema = {...}

Heat's names of properties and attributes are the names of fields of the service's REST interface, but for
those in `references` and `renamed`.
"""

import dataclasses
import functools
import typing
from collections.abc import Collection, Mapping, Sequence

from ...shapes import Json, JsonMap
from ..contract import (
    CloudCalls,
    Done,
    PermanentError,
    Poll,
    ResourceType,
    ResourceView,
    RetryableError,
    Step,
    StepContext,
)
from ..contract import Collection as RemoteCollection
from .bodies import NamedRemote, fields, given, live_fields
from .marks import FieldMark, Mark, mark_of, marked
from .names import resolve
from .polling import FIRST_PAUSE, Poller
from .service import LATE_CALL, Conflict, Interface, RemoteNotFound, Service, in_use, object_of, service_of
from .statuses import StatusMeaning

REMOTE = "thing"
MARK = "mark"
"""Keys of a resource's data: the last answer of the service; the mark, where a search by it is due again."""
MORE = "more"
"""Key of the data of a thing for which further calls of its creation are left to do."""
WAS_FREE = "was_free"
"""Key of the data of a thing without a mark: before the creation the service had none like it."""
DELETING = "DELETING"
"""The status of a thing whose deletion has begun, of services that say so."""


class DeclaredThing(ResourceType):
    """Declarations of a type of a collection's members, and its calls of the service.

    :cvar service: the service's type in the service catalog.
    :cvar interface: the interface of a service that is not in `service.INTERFACES`; None: the entry there.
    :cvar path: path of the collection; a member's is ``PATH/ID``.
    :cvar item: key of a member in bodies and answers; empty: the body is the member.
    :cvar items: key of the members in lists; empty: `item` and ``s``.
    :cvar mark: the place of the idempotency key; None: the type finds its things by their `identity`.
    :cvar status: meaning of the thing's status; None: the thing is complete when the service has answered.
    :cvar references: kind of thing by property; the property's value is a name or an id, or a list of them.
    :cvar renamed: field by property, where the names differ.
    :cvar apart: properties that are no fields of the body.
    :cvar always_named: whether a thing without a name of the template gets the physical name, as in Heat.
    :cvar attribute_fields: field by attribute, where the names differ.
    :cvar update_method: HTTP method of changes.
    :cvar delete_query: parameters of a deletion.
    :cvar slow_delete: whether the thing exists for a while after its deletion was accepted.
    :cvar id_field: field of the answers that holds the id.
    :cvar answers_in_full: whether the answer to a creation has all fields; else the thing is read after it.
    :cvar list_path: path of the list with all fields, for polls of many; empty: the collection's.
    :cvar is_listed: whether the list has the things as `get` does, so that their drift is observed by it.
    :cvar list_parameters: parameters of that list.
    :cvar is_of_project: whether each thing belongs to a project; types for administrators are often nobody's.
    :cvar project_filter: parameter by which that list is limited to a project, for users who see those of
        others; empty: it is of one project anyway.
    """

    uses_credentials = True
    service: typing.ClassVar[str]
    interface: typing.ClassVar[Interface | None] = None
    path: str
    item: typing.ClassVar[str]
    items: typing.ClassVar[str] = ""
    mark: typing.ClassVar[Mark | None] = FieldMark()
    status: typing.ClassVar[StatusMeaning | None] = None
    references: typing.ClassVar[Mapping[str, NamedRemote]] = {}
    renamed: typing.ClassVar[Mapping[str, str]] = {}
    apart: typing.ClassVar[Sequence[str]] = ()
    always_named: typing.ClassVar[bool] = False
    attribute_fields: typing.ClassVar[Mapping[str, str]] = {}
    update_method: typing.ClassVar[str] = "PUT"
    delete_query: typing.ClassVar[Mapping[str, str]] = {}
    slow_delete: typing.ClassVar[bool] = False
    id_field: typing.ClassVar[str] = "id"
    answers_in_full: typing.ClassVar[bool] = True
    list_path: typing.ClassVar[str] = ""
    is_listed: typing.ClassVar[bool] = True
    list_parameters: typing.ClassVar[Mapping[str, str | int]] = {"limit": 1000}
    is_of_project: typing.ClassVar[bool] = True
    project_filter: typing.ClassVar[str] = ""

    # -- what a type may override ------------------------------------------------------------------

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = given(self.properties_schema, target.properties)
        body = fields(self, properties, functools.partial(resolve, context))
        if self.always_named and "name" in self.properties_schema:
            body.setdefault("name", target.physical_name)
        return body

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        """Return the body of the request that creates a thing with these fields."""
        return self._wrapped(body)

    def post(self, service: Service, body: JsonMap, target: ResourceView) -> Json:
        """Create a thing with these fields; return the service's answer."""
        return service.post(self.path, self.request(body, target))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        properties = {name: target.properties[name] for name in sorted(changed)}
        body = fields(self, properties, functools.partial(resolve, context))
        if self.always_named and "name" in body:
            body["name"] = body["name"] or target.physical_name
        return body

    def after_create(self, target: ResourceView, context: StepContext) -> JsonMap | None:
        """Make further calls that a new thing needs; may be repeated after a crash.

        It is called once the physical id is stored, for targets of which `has_more` is true.

        :returns: the thing as the service's answers have it now; None: it has to be read.
        """
        return None

    def has_more(self, target: ResourceView) -> bool:
        """Return whether a new thing needs further calls."""
        return False

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Make changes that need their own calls, before the fields change; may be repeated after a crash."""

    def before_delete(self, target: ResourceView, context: StepContext) -> None:
        """Remove anything that would keep the thing from being deleted; may be repeated after a crash."""

    def after_delete(self, target: ResourceView, context: StepContext) -> None:
        """Delete the objects made for the thing, which is gone; may be repeated after a crash.

        It is called for a resource without a physical id, too: its creation may have failed halfway.
        """

    def users(self, target: ResourceView, context: StepContext) -> Sequence[str]:
        """Return the users of the thing, in words, where the service refuses to delete it for that."""
        return ()

    def problem(self, remote: JsonMap) -> str:
        """Return why the thing is in a bad state, as far as the service says so."""
        return ""

    def list_queries(self, since: float) -> Sequence[Mapping[str, str]]:
        """Return the parameters of the lists, in their order, that have all things that are waited for.

        :param since: the moment since which the first of the things is waited for.
        """
        return ({},)

    # -- calls -------------------------------------------------------------------------------------

    def service_for(self, context: CloudCalls) -> Service:
        """Return the calls of the type's service."""
        return service_of(context, self.service, interface=self.interface)

    def id_of(self, target: ResourceView) -> str:
        """Return the thing's id.

        :raises PermanentError: the resource has no physical id.
        """
        if target.physical_id is None:
            raise PermanentError(f"{target.name} has no thing in the cloud", kind="NotFound")
        return target.physical_id

    def path_of(self, target: ResourceView) -> str:
        return f"{self.path}/{self.id_of(target)}"

    def get(self, service: Service, physical_id: str) -> JsonMap:
        """Return a thing.

        :raises RemoteNotFound: the thing does not exist.
        """
        return self._unwrapped(service.get(f"{self.path}/{physical_id}"))

    def _delete_doubles(self, mark: str, physical_id: str | None, context: StepContext) -> bool:
        """Delete all that have the mark, but for one thing; return whether some of it is there still.

        :raises RetryableError: a double cannot be deleted in its present state.
        """
        doubles = [double for double in self._marked(mark, context) if double != physical_id]
        return sum(self._delete_double(double, context) for double in doubles) > 0

    def _delete_lost(self, target: ResourceView, context: StepContext) -> bool:
        """Delete the results of lost calls of a creation; return whether some of it is there still.

        There may be such a thing also where no answer was ever stored.

        :raises RetryableError: such a thing cannot be deleted in its present state.
        """
        mark = target.data.get(MARK)
        if mark is None and REMOTE not in target.data and target.creation_key:
            mark = mark_of(target.creation_key)
        return mark is not None and self._delete_doubles(mark, target.physical_id, context)

    def _delete_double(self, physical_id: str, context: StepContext) -> bool:
        service = self.service_for(context)
        try:
            service.delete(f"{self.path}/{physical_id}", **self.delete_query)
        except RemoteNotFound:
            return False
        except PermanentError as error:
            if not self._is_being_deleted(service, physical_id):
                text = f"what a lost creation has made is there still: {error}"
                raise RetryableError(text) from error
        return self.slow_delete

    def _is_being_deleted(self, service: Service, physical_id: str) -> bool:
        try:
            remote = self.get(service, physical_id)
        except RemoteNotFound:
            return True
        return self.status is not None and self.status.of(remote) in (DELETING, *self.status.deleted)

    def _marked(self, mark: str, context: StepContext) -> list[str]:
        """Return the ids of the things with this mark, the oldest first."""
        if self.mark is None:
            return []
        path = self.list_path or self.path
        return marked(self.mark, mark, self.service_for(context), path, self._items(), self.id_field)

    def _items(self) -> str:
        return self.items or f"{self.item}s"

    def _wrapped(self, body: JsonMap) -> JsonMap:
        return {self.item: body} if self.item else body

    def _unwrapped(self, answer: Json) -> JsonMap:
        return object_of(answer, self.item)

    def _poller(self) -> Poller:
        return Poller(self.list_path or self.path, self._items(), self.list_queries)

    def _pause(self, since: float, context: StepContext) -> float:
        """Return the seconds until the next poll of a thing that is waited for since then."""
        return self._poller().pause(context, self.service_for(context), since)

    def _look(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        """Return the thing; None: its state is not known yet, poll again.

        :raises RemoteNotFound: the thing does not exist.
        """
        service = self.service_for(context)
        physical_id = self.id_of(target)
        return self._poller().read(
            context, service, physical_id, lambda: self.get(service, physical_id), since
        )


class DeclaredType(DeclaredThing):
    """Base of the types of a collection's members; see the module's text."""

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the thing, marked; after a refusal find the result of an earlier step."""
        service = self.service_for(context)
        if target.physical_id is not None:
            return self._begin_wait(self.get(service, target.physical_id), target, context)
        body = self.create_body(target, context)
        if self.mark is not None:
            self.mark.put(body, mark_of(target.key))
        try:
            remote = self._unwrapped(self.post(service, body, target))
        except PermanentError as error:
            earlier = self.made_before(error, target, context)
            if earlier is None:
                raise
            return self._begin_wait(earlier, target, context)
        if not self.answers_in_full:
            remote = self.get(service, str(remote[self.id_field]))
        return self._begin_wait(remote, target, context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Make the remaining calls, then poll until the thing is in a good state.

        A repeated creation ends, well or not, when its thing is the only one.
        """
        if not progress.get("repeated"):
            return self._continue_creation(target, progress, context)
        again = {"since": progress["since"], "repeated": True}
        try:
            step = self._continue_creation(target, progress, context)
        except PermanentError:
            if (waits := self._clear_doubles(target, again, context)) is not None:
                return waits
            raise
        if isinstance(step, Poll):
            return dataclasses.replace(step, progress=again)
        return self._clear_doubles(target, again, context) or step

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the fields that have changed."""
        service = self.service_for(context)
        since = context.now()
        self.after_update(target, changed, context)
        body = self.update_body(target, changed, context)
        try:
            if body and self.update_method == "PATCH":
                remote = self._unwrapped(service.patch(self.path_of(target), self._wrapped(body)))
            elif body:
                remote = self._unwrapped(service.put(self.path_of(target), self._wrapped(body)))
            else:
                remote = self.get(service, self.id_of(target))
        except Conflict as error:
            raise in_use(error) from error
        return self._wait(remote, since, target, context)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._poll(target, progress, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the thing, and the result of a lost creation, if any."""
        if target.physical_id is None:
            self.after_delete(target, context)
            return Done()
        service = self.service_for(context)
        try:
            self.before_delete(target, context)
            service.delete(self.path_of(target), **self.delete_query)
        except RemoteNotFound:
            return self._deleted(target, context)
        except Conflict as error:
            raise in_use(error, self.users(target, context)) from error
        return (
            Poll(progress={"since": context.now()}, after=self._pause(context.now(), context))
            if self.slow_delete
            else self._deleted(target, context)
        )

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the thing is gone."""
        try:
            remote = self._look(target, progress["since"], context)
        except RemoteNotFound:
            return self._deleted(target, context)
        if remote is not None and self.status is not None:
            if self.status.of(remote) in self.status.deleted:
                return self._deleted(target, context)
            self.status.is_pending(remote, self.problem)
        return Poll(progress=progress, after=self._pause(progress["since"], context))

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Read the thing; it must be there and in a good state."""
        return self._wait(
            self.get(self.service_for(context), self.id_of(target)), context.now(), target, context
        )

    def check_check_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._poll(target, progress, context)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the id of the oldest thing with the mark."""
        return next(iter(self._marked(mark_of(key), context)), None)

    def made_before(
        self, error: PermanentError, target: ResourceView, context: StepContext
    ) -> JsonMap | None:
        """Return the result of an earlier call, which may be why the service refuses now; None: nothing.

        :param error: the refusal of a creation.
        """
        if not isinstance(error, Conflict) and not self._is_repeated(target):
            return None
        physical_id = self.find_created(target.key, target, context)
        return None if physical_id is None else self.get(self.service_for(context), physical_id)

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the thing is gone, in a bad state, or not made to the end.

        The results of lost calls of a failed creation are deleted first, for one may have the address or the
        name that the replacement is to have.

        :raises RetryableError: such a thing cannot be deleted in its present state.
        """
        if target.physical_id is None and not self.slow_delete:
            self._delete_lost(target, context)
        if target.physical_id is None or target.data.get(MORE):
            return True
        try:
            remote = self.get(self.service_for(context), target.physical_id)
        except RemoteNotFound:
            return True
        return self.status is not None and self.status.of(remote) in self.status.bad

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the resource's data with the service's present answer."""
        return {**target.data, REMOTE: self.get(self.service_for(context), self.id_of(target))}

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the properties that are fields of the thing, as they are now."""
        return self.reported_properties(target, self.remote(target, context), context)

    def collection(self) -> RemoteCollection | None:
        """Return the type's list, unless the things are parts of others."""
        path = self.list_path or self.path
        if not self.is_listed or "{}" in path:
            return None
        return RemoteCollection(self.service, path, self._list, is_of_project=self.is_of_project)

    def remote(self, target: ResourceView, context: CloudCalls) -> JsonMap:
        return self.get(self.service_for(context), self.id_of(target))

    def key_on(self, remote: JsonMap) -> str | None:
        return None if self.mark is None else self.mark.key_on(remote)

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the properties that are fields of the thing, but for names of other things."""
        return live_fields(self, target.properties, remote)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer, and all of it as ``show``."""
        remote = target.data.get(REMOTE) or {}
        named = {name: remote.get(self.attribute_fields.get(name, name)) for name in self.attributes_schema}
        return {**named, "show": remote}

    # -- inside ------------------------------------------------------------------------------------

    def _list(self, context: CloudCalls, project_id: str) -> dict[str, JsonMap]:
        """Return the things of a project by their ids."""
        parameters = dict(self.list_parameters)
        if self.project_filter:
            parameters[self.project_filter] = project_id
        path = self.list_path or self.path
        remotes = self.service_for(context).list_all(path, self._items(), **parameters)
        return {str(remote[self.id_field]): remote for remote in remotes}

    def _begin_wait(self, remote: JsonMap, target: ResourceView, context: StepContext) -> Step:
        """Return the step after the creation: the physical id is stored before anything else is done."""
        step = self._wait(remote, context.now(), target, context)
        more = self.has_more(target)
        repeated = self._is_repeated(target)
        if isinstance(step, Done) and not more and not repeated:
            return Done(physical_id=str(remote[self.id_field]), data=step.data)
        # A poll that finds nothing new has the same progress, and so stores nothing.
        progress = {"since": context.now(), **({"more": True} if more else {})}
        progress |= {"repeated": True} if repeated else {}
        after = 0.0 if more else self._pause(progress["since"], context)
        data = {**self._data(remote, target), **({MORE: True} if more else {})}
        return Poll(progress=progress, after=after, physical_id=str(remote[self.id_field]), data=data)

    def _is_repeated(self, target: ResourceView) -> bool:
        """Return whether the service was perhaps asked more than once to create the thing."""
        if self.mark is None:
            return False
        # The second attempt asks only if it has not found the result of the first one.
        return MARK in target.data or target.attempt > (1 if target.physical_id is None else 2)

    def _continue_creation(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        if progress.get("more"):
            remote = self.after_create(target, context)
            if remote is None:
                remote = self.get(self.service_for(context), self.id_of(target))
            return self._wait(remote, progress["since"], target, context)
        return self._poll(target, progress, context)

    def _clear_doubles(self, target: ResourceView, progress: Json, context: StepContext) -> Poll | None:
        """Delete doubles, late enough for a lost call to be carried out; return the next poll, if one is due.

        :raises RetryableError: a double cannot be deleted in its present state.
        """
        seconds = progress["since"] + LATE_CALL - context.now()
        if seconds > 0:
            return Poll(progress=progress, after=seconds)
        if self._delete_doubles(mark_of(target.creation_key or target.key), self.id_of(target), context):
            return Poll(progress=progress, after=FIRST_PAUSE)
        return None

    def _data(self, remote: JsonMap, target: ResourceView) -> dict[str, Json]:
        """Return the data of a resource with this thing.

        A repeated creation keeps its mark, for the lost one may still make its thing.
        """
        mark = mark_of(target.key) if target.attempt > 1 else None
        return {
            **{name: value for name, value in target.data.items() if name != MORE},
            REMOTE: dict(remote),
            **({MARK: mark} if mark and MARK not in target.data else {}),
        }

    def _poll(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self._wait(self._look(target, progress["since"], context), progress["since"], target, context)

    def _wait(self, remote: JsonMap | None, since: float, target: ResourceView, context: StepContext) -> Step:
        """Return the end of the action, or the next poll.

        :param remote: the thing as the service has it; None: its state is not known yet.
        :raises PermanentError: the thing is in a bad state.
        """
        if remote is None:
            return Poll(progress={"since": since}, after=self._pause(since, context))
        if self.status is not None:
            if self.status.is_pending(remote, self.problem):
                return Poll(progress={"since": since}, after=self._pause(since, context))
            if target.physical_id is not None:
                self._poller().forget(context, self.service_for(context), target.physical_id)
        return Done(data=self._data(remote, target))

    def _deleted(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the result of a lost creation, too; return the end of the deletion, or the next poll."""
        if self._delete_lost(target, context):
            return Poll(progress={"since": context.now()}, after=FIRST_PAUSE)
        if self.slow_delete:
            self._poller().forget(context, self.service_for(context), self.id_of(target))
        self.after_delete(target, context)
        return Done()
