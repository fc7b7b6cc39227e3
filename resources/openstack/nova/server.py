"""OS::Nova::Server: a virtual machine."""

import datetime
import typing
from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.language import ResourceDefinition
from ...contract import (
    CloudCalls,
    CloudFacts,
    Done,
    KnownResource,
    KnownStack,
    PermanentError,
    Poll,
    QuotaNeeds,
    ResourceView,
    Step,
    StepContext,
)
from ...guests import COLLECT_CONFIG
from ..declared import REMOTE, DeclaredType
from ..marks import Mark, TagMark, mark_of
from ..neutron.fits import NETWORK_FITS
from ..polling import pause
from ..service import Conflict, RemoteNotFound, in_use
from .body import create_server
from .changes import ServerChange, live_networks, reported_properties
from .compute import (
    DELETING,
    IMAGE,
    RUNS,
    SERVER_STATUS,
    STOPPED,
    TASK_STATE,
    ServerCalls,
    ServerSnapshot,
    asked_for,
    fault_of,
    unknown_status,
    without_mark,
)
from .fits import SERVER_FITS
from .interfaces import ServerPorts, address_attributes
from .quota_needs import server_needs
from .replacing import AGAIN, Replacement
from .server_rules import SERVER_RULES, check_metadata, check_server
from .server_schema import ATTRIBUTES, IMPLIED, PROPERTIES
from .user_data import COLLECTORS
from .waiting import ServerLists

PORTS = "ports"
"""Key of a resource's data: ports may have been made for the server."""
LISTED = "listed"
"""Key of a deletion's progress: whether lists of ids may still have the server."""
AWAKENING = {STOPPED: "os-start", "PAUSED": "unpause", "SUSPENDED": "resume"}
"""Actions of the compute service that make a server run, by its status."""
CLOCKS = 300.0
"""Seconds by which the clocks of the services may differ from ours."""


class Server(DeclaredType):
    """A virtual machine with its interfaces and disks."""

    type_name = "OS::Nova::Server"
    description = "A virtual machine."
    guest_collectors = COLLECTORS
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES
    implied_dependencies = IMPLIED
    stack_rules = SERVER_RULES
    cloud_rules = (*SERVER_FITS, *NETWORK_FITS)
    lost_with_it = "its local disks and the addresses of its new ports go"
    snapshot_on_delete = True
    service = "compute"
    path = "/servers"
    item = "server"
    list_path = "/servers/detail"
    mark: typing.ClassVar[Mark | None] = TagMark()
    status = SERVER_STATUS
    slow_delete = True
    has_rules_in_stack = True
    replaced_when_check_failed = False
    attribute_fields = {"instance_name": "OS-EXT-SRV-ATTR:instance_name"}

    def validate(self, properties: JsonMap) -> None:
        check_server(properties)

    def quota_needs(self, resource: KnownResource, stack: KnownStack, cloud: CloudFacts) -> QuotaNeeds:
        """Return the amounts that it takes, also of ports and volumes that are made for it."""
        return server_needs(resource, stack, cloud)

    def list_queries(self, since: float) -> Sequence[Mapping[str, str]]:
        """Return the parameters that list the servers to which something happens, or has happened.

        The compute service counts no change of a server that waits to be built.
        """
        moment = datetime.datetime.fromtimestamp(since - CLOCKS, datetime.UTC)
        return ({"status": "BUILD"}, {"changes-since": moment.strftime("%Y-%m-%dT%H:%M:%SZ")})

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that the metadata leave room for the deployments."""
        check_metadata(definition)

    def problem(self, server: JsonMap) -> str:
        return fault_of(server)

    # -- create ------------------------------------------------------------------------------------

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Make the ports that the compute service cannot make, and create the server."""
        if target.physical_id is not None:
            return super().handle_create(target, context)
        ports = ServerPorts.of(target, context)
        try:
            server = create_server(target, context, ports)
        except PermanentError as error:
            earlier = self.made_before(error, target, context)
            if earlier is None:
                ports.delete_marked()
                raise
            server = earlier
        # The answer to a creation has the id, and a password that must not be stored.
        return self._begin_wait({"id": server["id"]}, target, context)

    def _continue_creation(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Return the end of the creation once the server is built.

        Before, what its attributes need of its networks is read.
        """
        since = progress["since"]
        server = self.id_of(target)
        lists = ServerLists(context)
        built = lists.built(server, self._mark(target), since)
        ports = ServerPorts.of(target, context)
        if built is None:
            ports.read_ahead(server, REMOTE)
            return Poll(progress=progress, after=lists.pause(since))
        try:
            step = self._wait(built.server, since, target, context)
        except PermanentError as error:
            if error.kind != "ResourceInError":
                raise
            asked = asked_for(target.properties)
            raise PermanentError(f"{error}; the server asked for {asked}", kind=error.kind) from error
        return self.with_facts(step, target, context, built.ports)

    def _mark(self, target: ResourceView) -> str:
        return mark_of(target.creation_key or target.key)

    # -- update ------------------------------------------------------------------------------------

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return whether a policy says so, or the server gets or loses its image."""
        for name in ("flavor", "image", "user_data"):
            if before.get(name) != after.get(name) and after.get(f"{name}_update_policy") == "REPLACE":
                return True
        return bool(before.get("image")) != bool(after.get("image"))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change what can be changed at once, and begin the rest."""
        stages = self._change(target, context).begin(changed)
        if stages:
            data = {**target.data, PORTS: True}  # Whatever becomes of the stages, the deletion searches.
            return Poll(progress={"since": context.now(), "stages": stages}, after=0.0, data=data)
        return self._updated(target, context)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Run the stages that are left."""
        remaining = self._change(target, context).run(progress["stages"])
        if not remaining:
            return self._updated(target, context)
        since = progress["since"] if remaining == progress["stages"] else context.now()
        return Poll(progress={"since": since, "stages": remaining}, after=pause(since, context.now()))

    def _updated(self, target: ResourceView, context: StepContext) -> Step:
        return Done(data=self.refresh(target, context))

    def _change(self, target: ResourceView, context: StepContext) -> ServerChange:
        return ServerChange(target, context, ServerCalls.of(target, context), ServerPorts.of(target, context))

    def guest_transport(self, target: ResourceView) -> str | None:
        """Return the transport of a server that has an agent for deployments."""
        properties = target.properties
        is_guest = properties["user_data_format"] == "SOFTWARE_CONFIG"
        return properties["software_config_transport"] if is_guest else None

    def prepare_for_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
        """Release the ports, addresses and volumes that the replacement needs, also from lost creations."""
        if self._delete_lost(target, context):
            return AGAIN
        if target.physical_id is None:
            return None
        return Replacement(target, context).prepare()

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
        """Take the ports, addresses and volumes again.

        :raises ReplaceNeeded: the server had to be deleted, because it booted from one of the volumes.
        """
        if target.physical_id is None:
            return None
        return Replacement(target, context).restore()

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the properties as the services report them."""
        properties = self.reported_properties(target, self.remote(target, context), context)
        return {**properties, **live_networks(target, context)}

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the properties but for the networks, which need a request for each server."""
        return reported_properties(target, remote, context)

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the server is gone, or in a bad state."""
        if super().needs_replace_failed(target, context):
            return True
        server = self.get(self.service_for(context), self.id_of(target))
        return SERVER_STATUS.of(server) in SERVER_STATUS.deleted

    def handle_repair(self, target: ResourceView, context: StepContext) -> Step:
        """Start a server that is stopped, and let one that is paused or suspended continue."""
        calls = ServerCalls.of(target, context)
        action = AWAKENING.get(SERVER_STATUS.of(calls.get()))
        if action is not None:
            calls.act(action, None)
        return Poll(progress={"since": context.now()}, after=0.5)

    def check_repair_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the server runs.

        :raises PermanentError: it is in another state, and the service has stopped working on it.
        """
        server = self._look(target, progress["since"], context)
        if server is not None and SERVER_STATUS.of(server) == RUNS:
            return self.with_facts(Done(data=self._data(server, target)), target, context)
        if server is not None and server.get(TASK_STATE) is None:
            raise _not_running(SERVER_STATUS.of(server))
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    # -- actions on a server that exists -----------------------------------------------------------

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Suspend the server, unless it is suspended."""
        return self._act(target, context, "suspend", "SUSPENDED")

    def check_suspend_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        server = self._look(target, progress["since"], context)
        if server is not None:
            status = SERVER_STATUS.of(server)
            if status == "SUSPENDED":
                return self.with_facts(Done(data=self._data(server, target)), target, context)
            if status not in (RUNS, *SERVER_STATUS.pending):
                raise unknown_status(f"Suspend of server {server.get('name')} failed", status)
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def handle_resume(self, target: ResourceView, context: StepContext) -> Step:
        """Resume the server, unless it runs."""
        return self._act(target, context, "resume", RUNS)

    def check_resume_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        return self.with_facts(self._poll(target, progress, context), target, context)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the server runs."""
        data = self.refresh(target, context)
        status = SERVER_STATUS.of(data[REMOTE])
        if status != RUNS:
            raise _not_running(status)
        return Done(data=data)

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start to make an image of the server."""
        image = ServerSnapshot(target, context).start(self.service_for(context))
        return Poll(progress={"since": context.now(), "image": image}, data={IMAGE: image}, after=0.5)

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        server = self.get(self.service_for(context), self.id_of(target))
        if ServerSnapshot(target, context).is_complete(progress["image"], server):
            return Done()
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the image."""
        ServerSnapshot(target, context).delete()
        return Done()

    def handle_restore(self, properties: JsonMap, data: JsonMap) -> JsonMap:
        """Return the image as a property: the restored server is rebuilt from it."""
        image = data.get(IMAGE)
        return {"image": image} if image else {}

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Adopt a server, whatever its state is."""
        if target.physical_id is None:
            return super().handle_adopt(target, context)
        return Done(data=self.refresh(target, context))

    def _act(self, target: ResourceView, context: StepContext, action: str, aim: str) -> Step:
        """Start an action, unless its aim is reached or it has begun."""
        service = self.service_for(context)
        server = self.get(service, self.id_of(target))
        if SERVER_STATUS.of(server) != aim:
            try:
                service.post(f"{self.path_of(target)}/action", {action: None})
            except Conflict as error:
                if server.get(TASK_STATE) is None:
                    raise in_use(error) from error
        return Poll(progress={"since": context.now()}, after=0.5)

    # -- delete ------------------------------------------------------------------------------------

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the server is gone; one that can be restored still is deleted for good."""
        since = progress["since"]
        is_listed = progress.get(LISTED, True)
        lists = ServerLists(context)
        if is_listed and lists.is_standing(self.id_of(target), self._mark(target), since):
            return Poll(progress=progress, after=lists.pause(since))
        progress = {**progress, LISTED: False}
        try:
            server = None if is_listed else self._look(target, since, context)
            if is_listed or (server is not None and SERVER_STATUS.of(server) in SERVER_STATUS.bad):
                # A list may be older than the deletion.
                server = self.get(self.service_for(context), self.id_of(target))
        except RemoteNotFound:
            return self._deleted(target, context)
        if server is None:
            return Poll(progress=progress, after=pause(since, context.now()))
        status = SERVER_STATUS.of(server)
        if status == "DELETED" or (status == "SOFT_DELETED" and not self._delete_for_good(target, context)):
            return self._deleted(target, context)
        if status in SERVER_STATUS.bad and server.get(TASK_STATE) not in DELETING:
            fault = server.get("fault") or {}
            code = fault.get("code")
            message = fault.get("message", "Unknown")
            why = f"Server {server.get('name')} delete failed: ({code}) {message}"
            raise PermanentError(f'Went to status {status} due to "{why}"', kind="ResourceInError")
        return Poll(progress=progress, after=pause(since, context.now()))

    def _delete_for_good(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the server will be gone; not every user may do that."""
        try:
            self.service_for(context).post(f"{self.path_of(target)}/action", {"forceDelete": None})
        except Conflict:
            return True
        except PermanentError as error:
            if error.kind != "Forbidden":
                raise
            return False
        return True

    def after_delete(self, target: ResourceView, context: StepContext) -> None:
        """Delete the ports that were made for the server."""
        if target.data.get(PORTS, True):
            ServerPorts.of(target, context).delete_marked()

    # -- attributes --------------------------------------------------------------------------------

    def refresh(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the resource's data with the server and its interfaces as they are now."""
        data = super().refresh(target, context)
        return {**data, **self._facts(target, context)}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the attributes, from the last view."""
        server = without_mark(target.data.get(REMOTE) or {})
        return {
            **super().attribute_values(target),
            **address_attributes(server, target.data),
            "show": server,
            "tags": server.get("tags"),
            COLLECT_CONFIG: target.metadata.get("os-collect-config", {}),
            # Their tokens expire within minutes: a stored one is of no use.
            "console_urls": None,
        }

    def with_facts(
        self,
        step: Step,
        target: ResourceView,
        context: StepContext,
        ports: Sequence[JsonMap] | None = None,
    ) -> Step:
        """Add to the data of an action that has ended the values that the attributes need.

        :param ports: the server's ports; None: they are read.
        """
        if isinstance(step, Done) and step.data is not None:
            return Done(data={**step.data, **self._facts(target, context, ports)})
        return step

    def _facts(
        self, target: ResourceView, context: StepContext, ports: Sequence[JsonMap] | None = None
    ) -> JsonMap:
        facts = ServerPorts.of(target, context).facts(self.id_of(target), ports)
        return {**facts, PORTS: any(item["is_own"] for item in facts["interfaces"])}


def _not_running(status: str) -> PermanentError:
    return PermanentError(f"'status': expected '{RUNS}', got '{status}'", kind="Error")
