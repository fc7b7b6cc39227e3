"""OS::Cinder::VolumeAttachment: a volume as a disk of a server."""

from collections.abc import Mapping

from ....template.constraints import Custom
from ...context import Json, ResourceView, StepContext
from ...errors import PermanentError
from ...plugin import ResourceType
from ...schema import Attribute, Property
from ...steps import Done, Poll, Step
from ..declared import THING
from ..names import resolve
from ..polling import FIRST_PAUSE, Poller, pause
from ..service import Conflict, Service, ThingNotFound, in_use, service_of
from ..statuses import StatusMeaning

ATTACHING = StatusMeaning(pending=("AVAILABLE", "RESERVED", "ATTACHING"), bad=(), good=("IN-USE",))
"""The status of a volume that is being attached; it is in use before, too, where other servers have it."""
VOLUMES = Poller("/volumes/detail", "volumes", lambda _: {})


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
        if target.physical_id is None:
            server, volume = self._pair(target.properties, work)
            body = {"volumeId": volume}
            if target.properties["mountpoint"]:
                body["device"] = target.properties["mountpoint"]
            path = f"/servers/{server}/os-volume_attachments"
            answer = service_of(work, "compute").post(path, {"volumeAttachment": body})["volumeAttachment"]
            data = {THING: answer, "server": server}
            return Poll(progress={"since": work.now()}, after=FIRST_PAUSE, physical_id=volume, data=data)
        server, volume = self._pair(target.properties, work)
        return Poll(progress={"since": work.now()}, after=0.0, data={**target.data, "server": server})

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll the volume until the server has it.

        :raises PermanentError: the attachment has failed.
        """
        volume = self._volume(target, progress["since"], work)
        status = ATTACHING.of(volume)
        if status in ATTACHING.good and _has(volume, target.data["server"]):
            return Done()
        if status in (*ATTACHING.pending, *ATTACHING.good):
            # It is available for a moment at first; Nova makes it so again where it cannot attach it.
            if status == "AVAILABLE" and not self._attachment(target, work):
                server = target.data["server"]
                text = f"The volume {target.physical_id} could not be attached to server {server}"
                raise PermanentError(text, kind="ResourceInError")
            return Poll(progress=progress, after=pause(progress["since"], work.now()))
        raise PermanentError(f"Volume attachment failed: status {volume['status']}", kind="ResourceInError")

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Detach the volume; then the one of now is attached."""
        self._detach(target, work)
        return Poll(progress={"since": work.now(), "phase": "detach"}, after=FIRST_PAUSE)

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll until the volume is free, then attach the one of now, and poll that."""
        if progress["phase"] == "attach":
            return self.check_create_complete(target, progress, work)
        if not self._is_free(target, progress["since"], work):
            return Poll(progress=progress, after=pause(progress["since"], work.now()))
        server, volume = self._pair(target.properties, work)
        body = {"volumeId": volume}
        if target.properties["mountpoint"]:
            body["device"] = target.properties["mountpoint"]
        if self._found(server, volume, work) is None:
            service_of(work, "compute").post(
                f"/servers/{server}/os-volume_attachments", {"volumeAttachment": body}
            )
        return Poll(
            progress={"since": work.now(), "phase": "attach"},
            after=FIRST_PAUSE,
            physical_id=volume,
            data={**target.data, "server": server},
        )

    def handle_delete(self, target: ResourceView, work: StepContext) -> Step:
        """Start to detach the volume."""
        if target.physical_id is None or not self._detach(target, work):
            return Done()
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
            server = target.data.get("server")
            raise ThingNotFound(f"compute: volume {target.physical_id} is not attached to server {server}")
        return Done()

    def find_created(self, key: str, target: ResourceView, work: StepContext) -> str | None:
        """Return the volume's id, if the server has it."""
        server, volume = self._pair(target.properties, work)
        return volume if self._found(server, volume, work) is not None else None

    def needs_replace_failed(self, target: ResourceView, work: StepContext) -> bool:
        """Return whether the server does not have the volume."""
        return target.physical_id is None or self._attachment(target, work) is None

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the service's answer."""
        return {"show": target.data.get(THING) or {}}

    def _pair(self, properties: Mapping[str, Json], work: StepContext) -> tuple[str, str]:
        server = resolve(work, "nova.server", properties["instance_uuid"])
        return server, resolve(work, "cinder.volume", properties["volume_id"])

    def _detach(self, target: ResourceView, work: StepContext) -> bool:
        """Start to detach; return whether there was something to detach."""
        path = f"/servers/{target.data.get('server')}/os-volume_attachments/{target.physical_id}"
        try:
            service_of(work, "compute").delete(path)
        except ThingNotFound:
            return False
        except Conflict as error:
            raise in_use(error) from error
        return True

    def _is_free(self, target: ResourceView, since: float, work: StepContext) -> bool:
        try:
            volume = self._volume(target, since, work)
        except ThingNotFound:
            return True
        return not _has(volume, target.data.get("server")) and volume["status"] != "detaching"

    def _volume(self, target: ResourceView, since: float, work: StepContext) -> Mapping[str, Json]:
        service, volume = service_of(work, "block-storage"), str(target.physical_id)
        return VOLUMES.read(work, service, volume, lambda: _get_volume(service, volume), since)

    def _attachment(self, target: ResourceView, work: StepContext) -> Json:
        return self._found(str(target.data.get("server")), str(target.physical_id), work)

    def _found(self, server: str, volume: str, work: StepContext) -> Json:
        """Return the attachment of a volume to a server, None if there is none."""
        try:
            answer = service_of(work, "compute").get(f"/servers/{server}/os-volume_attachments/{volume}")
        except ThingNotFound:
            return None
        return answer["volumeAttachment"]


def _get_volume(service: Service, volume: str) -> Mapping[str, Json]:
    found: Mapping[str, Json] = service.get(f"/volumes/{volume}")["volume"]
    return found


def _has(volume: Mapping[str, Json], server: str | None) -> bool:
    return any(item["server_id"] == server for item in volume["attachments"])
