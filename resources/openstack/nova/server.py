"""OS::Nova::Server: a virtual machine."""

import datetime
from collections.abc import Mapping, Sequence

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ...errors import PermanentError
from ...steps import Done, Poll, Step
from ..polling import pause
from ..service import Conflict, RemoteNotFound
from .actions import PORTS, ServerActions
from .calls import ServerCalls
from .changes import ServerChange
from .creation import create_server
from .live import live_properties
from .ports import ServerPorts
from .replacing import AGAIN, Replacement
from .server_schema import ATTRIBUTES, COLLECTORS, IMPLIED, PROPERTIES
from .states import DELETING, SERVER_STATUS, TASK_STATE
from .validation import check_server

CLOCKS = 300.0
"""Seconds by which the clocks of the services may differ from ours."""


class Server(ServerActions):
    """A virtual machine with its interfaces and disks."""

    description = "A virtual machine."
    guest_collectors = COLLECTORS
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES
    implied_dependencies = IMPLIED

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check the rules over several properties."""
        check_server(properties)

    def list_queries(self, since: float) -> Sequence[Mapping[str, str]]:
        """Return the parameters that list the servers to which something happens, or has happened.

        The compute service counts no change of a server that waits to be built.
        """
        moment = datetime.datetime.fromtimestamp(since - CLOCKS, datetime.UTC)
        return ({"status": "BUILD"}, {"changes-since": moment.strftime("%Y-%m-%dT%H:%M:%SZ")})

    # -- create ------------------------------------------------------------------------------------

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Make the ports that the compute service cannot make, and create the server."""
        if target.physical_id is not None:
            return super().handle_create(target, context)
        ports = ServerPorts.of(target, context)
        try:
            server = create_server(target, context, ports)
        except PermanentError as error:
            physical_id = self.made_before(error, target, context)
            if physical_id is None:
                ports.delete_marked()
                raise
            server = physical_id
        # The answer to a creation has the id, and a password that must not be stored.
        return self._begin_wait({"id": server["id"]}, target, context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the server runs."""
        return self.with_facts(super().check_create_complete(target, progress, context), target, context)

    # -- update ------------------------------------------------------------------------------------

    def needs_replace(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
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
        """Release the ports and addresses that the replacement needs, also from lost creations."""
        if self._delete_lost(target, context):
            return AGAIN
        return Replacement(target, context).prepare() if target.physical_id is not None else None

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> Poll | None:
        """Take the ports and addresses again."""
        return Replacement(target, context).restore() if target.physical_id is not None else None

    def live_properties(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
        """Return the properties as the services report them."""
        return live_properties(target, context, self.get(self.service_for(context), self.id_of(target)))

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the server is gone, or in a bad state."""
        if super().needs_replace_failed(target, context):
            return True
        server = self.get(self.service_for(context), self.id_of(target))
        return SERVER_STATUS.of(server) in SERVER_STATUS.deleted

    # -- delete ------------------------------------------------------------------------------------

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the server is gone; one that can be restored still is deleted for good."""
        try:
            server = self._look(target, progress["since"], context)
            if (
                server is not None and SERVER_STATUS.of(server) in SERVER_STATUS.bad
            ):  # A list may be older than the deletion.
                server = self.get(self.service_for(context), self.id_of(target))
        except RemoteNotFound:
            return self._deleted(target, context)
        if server is None:
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        status = SERVER_STATUS.of(server)
        if status == "DELETED" or (status == "SOFT_DELETED" and not self._delete_for_good(target, context)):
            return self._deleted(target, context)
        if status in SERVER_STATUS.bad and server.get(TASK_STATE) not in DELETING:
            fault = server.get("fault") or {}
            code = fault.get("code")
            message = fault.get("message", "Unknown")
            why = f"Server {server.get('name')} delete failed: ({code}) {message}"
            raise PermanentError(f'Went to status {status} due to "{why}"', kind="ResourceInError")
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

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
