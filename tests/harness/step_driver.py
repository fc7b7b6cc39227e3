"""Runs the steps of a resource type against real services, without a conductor."""

import dataclasses
import time
import typing
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from stoker.conductor.steps.shared_reads import SharedReads
from stoker.engine.signal_urls import SignalAddresses
from stoker.keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from stoker.resources.contract.children import Children
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.guests import GuestAccess, Presigned
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import (
    changed,
    immutable_changed,
    replacement_needed,
    resolve_properties,
)
from stoker.resources.contract.steps import Done, Park, Step
from stoker.resources.contract.views import (
    DeletionView,
    ReferencedResource,
    ReplacementView,
    ResourceView,
    Sibling,
    StackFacts,
)

Json = typing.Any
T = typing.TypeVar("T")
ADDRESSES = SignalAddresses("http://stoker.test", b"key")
STACK = StackFacts(id=str(uuid.UUID(int=1)), name="driven", project_id="project")
"""The addresses for signals, and the stack that they name, of resources that are driven without one."""
LONGEST = 300.0
"""Seconds that one action may take, on a slow machine too."""


class Context:
    """Implements StepContext with the session of one user."""

    def __init__(self, session: Session, clients: ServiceClients | None = None) -> None:
        self._session = session
        self._clients = clients or ServiceClients()
        self._shared = SharedReads()
        self.replaced_by: ReplacementView | None = None

    def now(self) -> float:
        return time.time()

    def checkpoint(self) -> None:
        """Never cancelled."""

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def session(self) -> Session:
        return self._session

    def adapter(self, service: str, version: str, microversion: str | None = None) -> Adapter:
        try:
            return self._clients.adapter(self._session, service, version, microversion)
        except NoSuchService as error:
            raise PermanentError(str(error), kind="ResourceTypeUnavailable") from error
        except ServiceUnavailable as error:
            raise RetryableError(str(error)) from error

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        return self._shared.get(key, make, max_age)

    def replacement(self) -> ReplacementView | None:
        return self.replaced_by

    def sibling(self, name: str) -> Sibling:
        raise AssertionError(name)

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        """No resource is beside it."""
        return None

    def deletions(self) -> Sequence[DeletionView]:
        return ()

    def signal_url(self, resource_name: str) -> str:
        raise AssertionError(resource_name)

    def guest_access(self) -> GuestAccess:
        return ADDRESSES.guest_access(STACK, "driven", 1)

    @property
    def software(self) -> typing.Any:
        raise AssertionError("software")

    def presigned(self) -> Presigned:
        return ADDRESSES.presigned(STACK, "driven", 1)

    @property
    def children(self) -> Children:
        raise AssertionError("children")


class Driven:
    """A resource of a type, brought through its actions; what a conductor would store is in `target`.

    :param properties: properties as in a template, without functions.
    """

    def __init__(
        self, plugin: ResourceType, context: Context, properties: Mapping[str, Json], name: str = "thing"
    ) -> None:
        self.plugin = plugin
        self.context = context
        self._values = dict(properties)
        project_id = str(context.session().get_project_id())
        stack = StackFacts(str(uuid.uuid4()), f"stack-{uuid.uuid4().hex[:6]}", project_id)
        key = str(uuid.uuid4())
        self.target = ResourceView(
            id=1,
            name=name,
            type=type(plugin).__name__,
            stack=stack,
            properties=self._resolved(properties),
            key=key,
            creation_key=key,
        )

    def create(self) -> typing.Self:
        """Create it; a lost attempt is to be prepared in `target`."""
        return self._run("create", lambda: self.plugin.handle_create(self.target, self.context))

    def update(self, **properties: Json) -> str:
        """Change properties: ``updated`` in place, ``replace``, ``immutable`` or ``same``.

        :param properties: None: the template has the property no more.
        """
        plugin = self.plugin
        before = self.target.properties
        # What was resolved has null for what is not given, which would be an empty value.
        merged = {**self._values, **properties}
        values = {name: value for name, value in merged.items() if value is not None}
        after = self._resolved(values)
        names = changed(plugin.properties_schema, before, after)
        if not names:
            return "same"
        if immutable_changed(plugin.properties_schema, names):
            return "immutable"
        if replacement_needed(plugin.properties_schema, names) or plugin.needs_replace(before, after):
            return "replace"
        self._values = values
        self.target = dataclasses.replace(
            self.target, properties=after, previous=before, key=str(uuid.uuid4()), attempt=1
        )
        self._run("update", lambda: plugin.handle_update(self.target, names, self.context))
        return "updated"

    def delete(self) -> None:
        """Delete it."""
        self._begin_action()
        self._run("delete", lambda: self.plugin.handle_delete(self.target, self.context))

    def act(self, action: str) -> typing.Self:
        """Suspend, resume, check or snapshot it; delete the snapshot, by the key with which it was made."""
        if action != "delete_snapshot":
            self._begin_action()
        start = getattr(self.plugin, f"handle_{action}")
        return self._run(action, lambda: start(self.target, self.context))

    def signal(self, details: Json) -> None:
        """Send it a signal whose request is carried out."""
        request = self.plugin.handle_signal(self.target, details).request
        assert request is not None
        target = dataclasses.replace(self.target, key=str(uuid.uuid4()))
        self.plugin.carry_out(target, request, self.context)

    def refresh(self) -> typing.Self:
        """Read it again, as for outputs with volatile attributes."""
        data = self.plugin.refresh(self.target, self.context)
        self.target = dataclasses.replace(self.target, data=data)
        return self

    def attribute(self, name: str) -> Json:
        """Return an attribute."""
        return self.plugin.attribute_values(self.target)[name]

    @property
    def id(self) -> str:
        """The physical id."""
        assert self.target.physical_id is not None
        return self.target.physical_id

    def _begin_action(self) -> None:
        """Give the next action a key of its own."""
        self.target = dataclasses.replace(self.target, key=str(uuid.uuid4()))

    def _resolved(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        resolved = resolve_properties(self.plugin.properties_schema, properties)
        self.plugin.validate(resolved)
        return resolved

    def _run(self, action: str, start: Callable[[], Step]) -> typing.Self:
        end = time.monotonic() + LONGEST
        poll = getattr(self.plugin, f"check_{action}_complete")
        progress: Json = None
        while True:
            try:
                step = start() if progress is None else poll(self.target, progress, self.context)
            except RetryableError as error:
                if time.monotonic() >= end:
                    raise
                time.sleep(min(error.after or 0.5, 2.0))
                self.target = dataclasses.replace(self.target, attempt=self.target.attempt + 1)
                continue
            self.take(step)
            if isinstance(step, Done):
                return self
            assert not isinstance(step, Park), step
            assert time.monotonic() < end, f"{action} did not end: {step}"
            progress = step.progress
            time.sleep(step.after)

    def take(self, step: Step) -> None:
        """Store the values that a step has returned."""
        self.target = dataclasses.replace(
            self.target,
            physical_id=step.physical_id if step.physical_id is not None else self.target.physical_id,
            data=step.data if step.data is not None else self.target.data,
        )
