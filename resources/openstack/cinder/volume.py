"""OS::Cinder::Volume: a volume."""

import json
from collections.abc import Sequence, Set

from ....shapes import Json, JsonMap
from ...contract import (
    CloudCalls,
    CloudFacts,
    Done,
    KnownResource,
    KnownStack,
    Members,
    PermanentError,
    Poll,
    PropertyError,
    QuotaNeeds,
    ResourceView,
    RetryableError,
    Step,
    StepContext,
)
from ..bodies import NamedRemote
from ..declared import MORE, REMOTE, DeclaredType
from ..marks import MARK_NAME, MetadataMark
from ..names import resolve
from ..polling import FIRST_PAUSE, STEADY_PAUSE, pause
from ..service import BadRequest, RemoteNotFound, object_of
from ..statuses import StatusMeaning
from .fits import VOLUME_FITS
from .sizes import volume_needs
from .volume_backups import VolumeBackups, restore
from .volume_changes import VolumeChange, VolumeChanges, act
from .volume_schema import ATTRIBUTES, PROPERTIES

SOURCES = ("snapshot_id", "image", "source_volid")
"""Properties that name the source of which the volume is a copy."""
ATTACHED = ("IN-USE", "ATTACHING", "DETACHING", "RESERVED")
WORKING = (
    *("CREATING", "DOWNLOADING", "RESTORING-BACKUP", "EXTENDING", "RETYPING", "DELETING"),
    *("BACKING-UP", "UPLOADING"),
)
"""States in which the service works on a volume, and refuses its deletion."""
LOST = ("ERROR", "DELETING")
"""States of a volume that an update replaces."""
ATTACHMENTS = ("OS::Cinder::VolumeAttachment", "AWS::EC2::VolumeAttachment")
"""Types whose things have the id of their volume."""
ADMINISTRATIVE = (MARK_NAME, "readonly", "attached_mode")
"""Entries of the metadata that the template does not set."""


class Volume(VolumeBackups, DeclaredType):
    """A volume: a block device for servers."""

    type_name = "OS::Cinder::Volume"
    description = "A volume: a block device for servers."
    service = "block-storage"
    path = "/volumes"
    item = "volume"
    list_path = "/volumes/detail"
    mark = MetadataMark()
    slow_delete = True
    status = StatusMeaning(
        pending=(*WORKING, "MAINTENANCE", "AWAITING-TRANSFER", "ATTACHING", "DETACHING"),
        bad=("ERROR", "ERROR_DELETING", "ERROR_RESTORING", "ERROR_EXTENDING", "ERROR_MANAGING"),
    )
    references = {
        "image": NamedRemote("glance.image", "imageRef"),
        "snapshot_id": NamedRemote("cinder.snapshot", "snapshot_id"),
        "source_volid": NamedRemote("cinder.volume", "source_volid"),
        "volume_type": NamedRemote("cinder.vtype", "volume_type"),
    }
    cloud_rules = VOLUME_FITS
    lost_with_it = "its data go"
    apart = ("backup_id", "read_only", "scheduler_hints", "multiattach")
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES

    def validate(self, properties: JsonMap) -> None:
        """Check that it is a copy of one thing at most, and that the size is known.

        A backup wins over all of these: where a snapshot of the stack is restored, both are given.
        """
        if properties.get("backup_id", "unknown"):
            return
        sources = [name for name in SOURCES if properties.get(name)]
        if len(sources) > 1:
            raise PropertyError(f"{' and '.join(sources)} exclude each other: a volume is a copy of one")
        sized = [properties.get(name, "unknown") for name in ("size", "snapshot_id", "source_volid")]
        if not any(sized):
            raise PropertyError("size is needed, unless snapshot_id, source_volid or backup_id is given")

    def quota_needs(self, resource: KnownResource, stack: KnownStack, cloud: CloudFacts) -> QuotaNeeds:
        """Return the amounts that it takes, also of the quotas of its volume type."""
        return volume_needs(resource, cloud)

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        """Return the snapshots and the servers of the volume, with which the service does not delete it.

        No server where the stack attaches the volume: which one it is only its data say.
        """
        snapshots = cloud.members("block-storage", "/snapshots", "snapshots") or Members()
        volumes = cloud.members("block-storage", "/volumes/detail", "volumes") or Members()
        is_attached = any(f"{name}:{physical_id}" in own for name in ATTACHMENTS)
        users = [
            *(("snapshot", entry.get("id")) for entry in snapshots.where("volume_id", physical_id)),
            *(
                ("server", entry.get("server_id"))
                for volume in volumes.where("id", physical_id)
                for entry in volume.get("attachments") or ()
                if not is_attached
            ),
        ]
        return [f"the {kind} {user}" for kind, user in users if user not in own]

    # -- creation ----------------------------------------------------------------------------------

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new volume; one for a backup has its size at least."""
        body = super().create_body(target, context)
        body.setdefault("name", target.physical_name)
        backup = target.properties["backup_id"]
        if backup:
            backup_of_goal = self.service_for(context).get(
                f"/backups/{resolve(context, 'cinder.backup', backup)}"
            )
            body["size"] = max(backup_of_goal["backup"]["size"], body.get("size", 0))
            for name in SOURCES:
                body.pop(self.references[name].field or name, None)
        return body

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        """Return the body of the request; hints are beside the volume."""
        hints = target.properties["scheduler_hints"]
        return {"volume": body, **({"OS-SCH-HNT:scheduler_hints": hints} if hints else {})}

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll; once the volume is available restore the backup, then protect it from writing."""
        step = super().check_create_complete(target, progress, context)
        if not isinstance(step, Done):
            waiting = {name: value for name, value in progress.items() if name != "more"}
            return Poll(progress=waiting, after=step.after or FIRST_PAUSE)
        if target.properties["backup_id"] and not progress.get("restored"):
            restore(context, self.id_of(target), target.properties["backup_id"])
            return Poll(progress={"since": context.now(), "restored": True}, after=FIRST_PAUSE)
        if target.properties["read_only"] is not None:
            act(
                context,
                self.id_of(target),
                "os-update_readonly_flag",
                {"readonly": target.properties["read_only"]},
            )
            return Done(data=self._data(self.get(self.service_for(context), self.id_of(target)), target))
        return step

    def has_more(self, target: ResourceView) -> bool:
        """Return whether there is something to do once the volume is available."""
        return bool(target.properties["backup_id"]) or target.properties["read_only"] is not None

    # -- update ------------------------------------------------------------------------------------

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Send the fields that have changed; then the changes that take time follow one by one.

        :raises PermanentError: the volume would become smaller.
        """
        volume = self.get(self.service_for(context), self.id_of(target))
        size = target.properties["size"]
        if "size" in changed and size is not None and size < volume["size"]:
            raise PermanentError("Shrinking volume is not supported.", kind="NotSupported")
        if "metadata" in changed:
            self._set_metadata(target, volume, context)
        body = {name: target.properties[name] or "" for name in sorted(changed & {"name", "description"})}
        if "name" in body:
            body["name"] = body["name"] or target.physical_name
        if body:
            self.service_for(context).put(self.path_of(target), {"volume": body})
        todo = [change.as_json() for change in VolumeChanges.needed(target, changed, volume)]
        return Poll(progress={"since": context.now(), "todo": todo, "begun": False}, after=0.0)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll; when a change has ended, start the next one."""
        step = super().check_update_complete(target, progress, context)
        if isinstance(step, Poll):
            return Poll(progress=progress, after=step.after)
        if not progress["todo"]:
            return step
        assert step.data is not None
        volume = step.data[REMOTE]
        changes = VolumeChanges(target, context)
        change = VolumeChange(*progress["todo"][0])
        if not progress["begun"]:
            changes.begin(change, volume)
            return Poll(progress={**progress, "since": context.now(), "begun": True}, after=FIRST_PAUSE)
        if not changes.has_ended(change, volume):
            return Poll(progress=progress, after=STEADY_PAUSE)
        left = progress["todo"][1:]
        return Poll(progress={"since": progress["since"], "todo": left, "begun": False}, after=0.0)

    def _set_metadata(self, target: ResourceView, volume: JsonMap, context: StepContext) -> None:
        """Replace the metadata, but for our mark."""
        marked = volume["metadata"].get(MARK_NAME)
        metadata = {**target.properties["metadata"], **({MARK_NAME: marked} if marked else {})}
        self.service_for(context).put(f"{self.path_of(target)}/metadata", {"metadata": metadata})

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the volume is lost; one with its data is kept, as in Heat."""
        if target.physical_id is None or target.data.get(MORE):
            return True
        try:
            volume = self.get(self.service_for(context), target.physical_id)
        except RemoteNotFound:
            return True
        return self.status.of(volume) in LOST

    # -- deletion ----------------------------------------------------------------------------------

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the volume when the service has stopped working on it.

        :raises RetryableError: servers or snapshots use the volume; the reason names them.
        """
        if target.physical_id is not None and self._is_worked_on(target, context):
            return Poll(progress={"since": context.now(), "waits": True}, after=FIRST_PAUSE)
        try:
            return super().handle_delete(target, context)
        except BadRequest as error:
            if snapshots := self._snapshots(target, context):
                text = f"still in use by snapshot {', '.join(snapshots)}: {error}"
                raise RetryableError(text) from error
            raise

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the volume can be deleted, then until it is gone."""
        if not progress.get("waits"):
            return super().check_delete_complete(target, progress, context)
        if self._is_worked_on(target, context):
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        return self.handle_delete(target, context)

    def _is_worked_on(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the service works on the volume; it refuses the deletion meanwhile.

        :raises RetryableError: something uses the volume; the reason names it.
        """
        try:
            volume = self.get(self.service_for(context), self.id_of(target))
        except RemoteNotFound:
            return False
        if self.status.of(volume) in ATTACHED:
            servers = sorted(str(item["server_id"]) for item in volume["attachments"])
            users = f"server {', '.join(servers)}" if servers else "a server"
            raise RetryableError(f"still in use by {users}")
        return self.status.of(volume) in WORKING

    def _snapshots(self, target: ResourceView, context: StepContext) -> list[str]:
        snapshots = self.service_for(context).list_all(
            "/snapshots", "snapshots", volume_id=self.id_of(target)
        )
        return sorted(str(item["id"]) for item in snapshots)

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the volume, whose metadata are read in many places."""
        volume = super()._unwrapped(answer)
        if volume.get("metadata") is not None:
            object_of(volume, "metadata")
        return volume

    # -- attributes --------------------------------------------------------------------------------

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the metadata without the entries of others."""
        live = dict(super().reported_properties(target, remote, context))
        if "metadata" not in live:  # As of any property: what the service does not report is not compared.
            return live
        hidden = {*ADMINISTRATIVE} - {*target.properties["metadata"]}
        metadata = {name: value for name, value in object_of(live, "metadata").items() if name not in hidden}
        return {**live, "metadata": metadata}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer; most as text, as in Heat."""
        volume = target.data.get(REMOTE) or {}
        metadata = {
            name: value for name, value in (volume.get("metadata") or {}).items() if name != MARK_NAME
        }
        plain = {
            name: None if (field := volume.get(name)) is None else str(field)
            for name in self.attributes_schema
        }
        return {
            **plain,
            "display_name": volume.get("name"),
            "display_description": volume.get("description"),
            "metadata": json.dumps(metadata),
            "metadata_values": metadata,
            "attachments": str(volume.get("attachments") or []),
            "attachments_list": volume.get("attachments") or [],
            "multiattach": volume.get("multiattach"),
            "show": {**volume, "metadata": metadata},
        }
