"""Actions on a server that is there: check, suspend, resume, snapshot; and its attributes."""

import typing
from collections.abc import Mapping

from ....template.language import ResourceDefinition
from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ...errors import PermanentError
from ...steps import Done, Poll, Step
from ..declared import REMOTE, DeclaredType
from ..marks import Mark, TagMark
from ..polling import pause
from ..service import Conflict, in_use
from .attributes import attributes
from .ports import ServerPorts
from .snapshots import IMAGE, ServerSnapshot
from .states import RUNS, SERVER_STATUS, TASK_STATE, fault_of, unknown_status
from .validation import check_metadata

PORTS = "ports"
"""Key of a resource's data: ports may have been made for the server."""


class ServerActions(DeclaredType):
    """Base of the type of servers."""

    snapshot_on_delete = True
    service = "compute"
    path = "/servers"
    item = "server"
    list_path = "/servers/detail"
    mark: typing.ClassVar[Mark | None] = TagMark()
    status = SERVER_STATUS
    slow_delete = True
    has_rules_in_stack = True

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that the metadata leave room for the deployments."""
        check_metadata(definition)

    def problem(self, server: Mapping[str, Json]) -> str:
        """Return the service's message of what has gone wrong."""
        return fault_of(server)

    def handle_suspend(self, target: ResourceView, context: StepContext) -> Step:
        """Suspend the server, unless it is suspended."""
        return self._act(target, context, "suspend", "SUSPENDED")

    def check_suspend_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the server is suspended."""
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
        """Poll until the server runs."""
        return self.with_facts(self._poll(target, progress, context), target, context)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the server runs."""
        data = self.refresh(target, context)
        status = SERVER_STATUS.of(data[REMOTE])
        if status != RUNS:
            raise PermanentError(f"'status': expected '{RUNS}', got '{status}'", kind="Error")
        return Done(data=data)

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start to make an image of the server."""
        image = ServerSnapshot(target, context).start(self.service_for(context))
        return Poll(progress={"since": context.now(), "image": image}, data={IMAGE: image}, after=0.5)

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the image is complete."""
        server = self.get(self.service_for(context), self.id_of(target))
        if ServerSnapshot(target, context).is_complete(progress["image"], server):
            return Done()
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the image."""
        ServerSnapshot(target, context).delete()
        return Done()

    def handle_restore(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the image as a property: the restored server is rebuilt from it."""
        image = data.get(IMAGE)
        return {"image": image} if image else {}

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Adopt a server, whatever its state is."""
        if target.physical_id is None:
            return super().handle_adopt(target, context)
        return Done(data=self.refresh(target, context))

    def refresh(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
        """Return the resource's data with the server and its interfaces as they are now."""
        data = super().refresh(target, context)
        return {**data, **self._facts(target, context)}

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the attributes, of what was read last."""
        return attributes(target.data.get(REMOTE) or {}, target.data, target.metadata)

    def with_facts(self, step: Step, target: ResourceView, context: StepContext) -> Step:
        """Add to the data of an action that has ended what the attributes need."""
        if isinstance(step, Done) and step.data is not None:
            return Done(data={**step.data, **self._facts(target, context)})
        return step

    def _facts(self, target: ResourceView, context: StepContext) -> Mapping[str, Json]:
        facts = ServerPorts.of(target, context).facts(self.id_of(target))
        return {**facts, PORTS: any(item["is_own"] for item in facts["interfaces"])}

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
