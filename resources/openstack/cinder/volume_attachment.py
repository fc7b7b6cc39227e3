"""OS::Cinder::VolumeAttachment: a volume as a disk of a server."""

from collections.abc import Mapping

from ....template.constraints import Custom
from ...context import Json, ResourceView, StepContext
from ...errors import PermanentError
from ...plugin import ResourceType
from ...schema import Attribute, Property
from ...steps import Done, Poll, Step
from ..declared import THING
from ..names import NameNotFound, resolve
from ..polling import FIRST_PAUSE, Poller, pause
from ..service import ThingNotFound, service_of
from ..statuses import StatusMeaning
from .attachments import attach, detach, found, get_volume, has_server, is_attached

SERVER = "server"
"""Key of the data: the server that has the volume."""
ATTACHING = StatusMeaning(pending=("AVAILABLE", "RESERVED", "ATTACHING"), bad=(), good=("IN-USE",))
"""The status of a volume that is being attached; it is in use before, too, where other servers have it."""
VOLUMES = Poller("/volumes/detail", "volumes", lambda _: ({},))


class VolumeAttachment(ResourceType):
    """A volume as a disk of a server; the two are its identity, and the volume's id is the physical id."""

    description = "Attaches a volume to a server, as a disk."
    uses_credentials = True
    service = "compute"
    identity = "the server and the volume"
    status = ATTACHING
    properties_schema = {
        "instance_uuid": Property("string", "Name or id of the server.", required=True, update_allowed=True),
        "volume_id": Property(
            "string",
            "Name or id of the volume.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="cinder.volume"),),
        ),
        "mountpoint": Property(
            "string",
            "Name of the device, such as /dev/vdb; the hypervisor may choose another.",
            update_allowed=True,
        ),
    }
    attributes_schema = {"show": Attribute("All that the service reports of it.", "map")}

    def handle_create(self, target: ResourceView, work: StepContext) -> Step:
        """Start to attach the volume."""
        server, volume = self._pair(target.properties, work)
        answer = attach(work, server, volume, target.properties["mountpoint"], repeated=target.attempt > 1)
        data = {THING: answer, SERVER: server}
        return Poll(progress={"since": work.now()}, after=FIRST_PAUSE, physical_id=volume, data=data)

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll the volume until the server has it.

        :raises PermanentError: the attachment has failed.
        """
        volume, server = self._volume(target, progress["since"], work), target.data[SERVER]
        if volume is None:
            return Poll(progress=progress, after=pause(progress["since"], work.now()))
        if has_server(volume, server):
            VOLUMES.forget(work, service_of(work, "block-storage"), str(volume["id"]))
            return Done()
        if ATTACHING.of(volume) not in (*ATTACHING.pending, *ATTACHING.good):
            text = f"Volume attachment failed: status {volume['status']}"
            raise PermanentError(text, kind="ResourceInError")
        # It is available for a moment at first; Nova makes it so again where it cannot attach it.
        if volume["status"] == "available" and self._attachment(target, work) is None:
            text = f"The volume {target.physical_id} could not be attached to server {server}"
            raise PermanentError(text, kind="ResourceInError")
        return Poll(progress=progress, after=pause(progress["since"], work.now()))

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Detach the volume; then the one of now is attached."""
        detach(work, str(target.data.get(SERVER)), str(target.physical_id))
        return Poll(progress={"since": work.now(), "phase": "detach"}, after=FIRST_PAUSE)

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll until the volume is free, then attach the one of now, and poll that."""
        if progress["phase"] == "attach":
            return self.check_create_complete(target, progress, work)
        if not self._is_free(target, progress["since"], work):
            return Poll(progress=progress, after=pause(progress["since"], work.now()))
        server, volume = self._pair(target.properties, work)
        data = {
            **target.data,
            THING: attach(work, server, volume, target.properties["mountpoint"], repeated=True),
            SERVER: server,
        }
        progress = {"since": work.now(), "phase": "attach"}
        return Poll(progress=progress, after=FIRST_PAUSE, physical_id=volume, data=data)

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Start to detach the volume."""
        if target.physical_id is None:
            return Done()
        try:
            if not detach(work, self._server(target, work), target.physical_id):
                return Done()
        except NameNotFound:
            return Done()  # The server is gone.
        return Poll(progress={"since": work.now()}, after=FIRST_PAUSE)

    def check_delete_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll the volume until the server does not have it."""
        if self._is_free(target, progress["since"], work):
            return Done()
        return Poll(progress=progress, after=pause(progress["since"], work.now()))

    def handle_check(self, target: ResourceView, work: StepContext) -> Step:
        """Check that the server has the volume.

        :raises ThingNotFound: it has not.
        """
        if self._attachment(target, work) is None:
            server = self._server(target, work)
            raise ThingNotFound(f"compute: volume {target.physical_id} is not attached to server {server}")
        return Done()

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return the volume's id, if the server has it."""
        try:
            server, volume = self._pair(target.properties, work)
        except NameNotFound:
            return None
        return volume if found(work, server, volume) is not None else None

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the server does not have the volume."""
        return target.physical_id is None or self._attachment(target, work) is None

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the service's answer."""
        return {"show": target.data.get(THING) or {}}

    def _pair(self, properties: Mapping[str, Json], work: StepContext) -> tuple[str, str]:
        server = resolve(work, "nova.server", properties["instance_uuid"])
        return server, resolve(work, "cinder.volume", properties["volume_id"])

    def _server(self, target: ResourceView, work: StepContext) -> str:
        """Return the id of the server that has the volume, as far as it is known."""
        return str(target.data.get(SERVER) or self._pair(target.properties, work)[0])

    def _is_free(self, target: ResourceView, since: float, work: StepContext) -> bool:
        try:
            volume = self._volume(target, since, work)
        except ThingNotFound:
            return True
        if volume is None or is_attached(work, self._server(target, work), volume):
            return False
        VOLUMES.forget(work, service_of(work, "block-storage"), str(volume["id"]))
        return True

    def _volume(self, target: ResourceView, since: float, work: StepContext) -> Mapping[str, Json] | None:
        service, volume = service_of(work, "block-storage"), str(target.physical_id)
        return VOLUMES.read(work, service, volume, lambda: get_volume(service, volume), since)

    def _attachment(self, target: ResourceView, work: StepContext) -> Json:
        return found(work, self._server(target, work), str(target.physical_id))
