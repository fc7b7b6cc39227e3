"""OS::Cinder::VolumeAttachment: a volume as a disk of a server."""

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Done, PermanentError, Poll, Property, ResourceView, Step, StepContext
from ..attached import CLAIMED, AttachedType, Link
from ..names import resolve
from ..polling import FIRST_PAUSE, Poller, pause
from ..service import RemoteNotFound, service_of
from ..statuses import StatusMeaning
from .attachments import attach, detach, find_attachment, get_volume, has_server, is_attached
from .fits import volumes_in_another_zone, volumes_in_use

ATTACHING = StatusMeaning(pending=("AVAILABLE", "RESERVED", "ATTACHING"), bad=(), good=("IN-USE",))
"""The status of a volume that is being attached; it is in use before, too, where other servers have it."""
VOLUMES = Poller("/volumes/detail", "volumes", lambda _: ({},))


class VolumeAttachment(AttachedType):
    """A volume as a disk of a server; the two are its identity, and the volume's id is the physical id."""

    type_name = "OS::Cinder::VolumeAttachment"
    description = "The attachment of a volume to a server."
    service = "compute"
    identity = "the server and the volume"
    cloud_rules = (volumes_in_use, volumes_in_another_zone)
    other = "serverId"
    missing = "compute: volume {0} is not attached to server {1}"
    slow = True
    status = ATTACHING
    properties_schema = {
        "instance_uuid": Property(
            "string", "Name or id of the server.", required=True, update_allowed=True, names="nova.server"
        ),
        "volume_id": Property(
            "string",
            "Name or id of the volume.",
            required=True,
            update_allowed=True,
            constraints=(Custom(check_name="cinder.volume"),),
        ),
        "mountpoint": Property(
            "string",
            "Device name, such as /dev/vdb; the hypervisor may choose another.",
            update_allowed=True,
        ),
    }

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the volume and the server."""
        server = resolve(context, "nova.server", properties["instance_uuid"])
        return resolve(context, "cinder.volume", properties["volume_id"]), server

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Start to attach the volume."""
        return attach(context, link[1], link[0], target.properties["mountpoint"])

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the attachment as the compute service has it."""
        return find_attachment(context, link[1], link[0])

    def detach(self, link: Link, context: StepContext) -> bool:
        """Start to detach the volume."""
        return detach(context, link[1], link[0])

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Attach the volume, then poll it until the server has it.

        :raises PermanentError: the attachment has failed.
        """
        if progress["phase"] == CLAIMED:
            return super().check_create_complete(target, progress, context)
        volume = self._volume(target, progress["since"], context)
        server = self.stored_link(target, context)[1]
        if volume is None:
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        if has_server(volume, server):
            VOLUMES.forget(context, service_of(context, "block-storage"), str(volume["id"]))
            return Done()
        if ATTACHING.of(volume) not in (*ATTACHING.pending, *ATTACHING.good):
            text = f"Volume attachment failed: status {volume['status']}"
            raise PermanentError(text, kind="ResourceInError")
        # It is available for a moment at first; Nova makes it so again where it cannot attach it.
        if volume["status"] == "available" and self.find((str(volume["id"]), server), context) is None:
            text = f"The volume {target.physical_id} could not be attached to server {server}"
            raise PermanentError(text, kind="ResourceInError")
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Detach the former volume; the new one is attached when it is free."""
        self.detach(self.stored_link(target, context), context)
        return Poll(progress={"since": context.now(), "phase": "detach"}, after=FIRST_PAUSE)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the former volume is free, then attach the new one, and poll that."""
        if progress["phase"] != "detach":
            return self.check_create_complete(target, progress, context)
        if not self._is_free(target, progress["since"], context):
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        return self.begin(target, context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll the volume until the server does not have it."""
        if self._is_free(target, progress["since"], context):
            return Done()
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def _is_free(self, target: ResourceView, since: float, context: StepContext) -> bool:
        try:
            volume = self._volume(target, since, context)
        except RemoteNotFound:
            return True
        if volume is None or is_attached(context, self.stored_link(target, context)[1], volume):
            return False
        VOLUMES.forget(context, service_of(context, "block-storage"), str(volume["id"]))
        return True

    def _volume(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        service = service_of(context, "block-storage")
        volume = str(target.physical_id)
        return VOLUMES.read(context, service, volume, lambda: get_volume(service, volume), since)
