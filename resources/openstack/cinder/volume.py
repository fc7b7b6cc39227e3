"""OS::Cinder::Volume: a volume."""

import json
from collections.abc import Mapping, Sequence

from ....template.constraints import Custom, Range
from ...context import Json, ResourceView, StepContext
from ...errors import PermanentError, PropertyError, RetryableError
from ...schema import Attribute, Property, SupportStatus
from ...steps import Done, Poll, Step
from ..bodies import NamedThing
from ..declared import THING, DeclaredType
from ..marks import MARK_NAME, MetadataMark
from ..names import resolve
from ..polling import FIRST_PAUSE
from ..service import ThingNotFound
from ..statuses import StatusMeaning

HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")
SOURCES = ("snapshot_id", "image", "source_volid", "backup_id")
"""Properties that name where the volume's data come from."""
ATTACHED = ("IN-USE", "ATTACHING", "DETACHING", "RESERVED")


class Volume(DeclaredType):
    """A volume, which servers can have as a disk."""

    description = "A volume, which servers can have as a disk."
    service = "block-storage"
    path, item = "/volumes", "volume"
    list_path = "/volumes/detail"
    mark = MetadataMark()
    slow_delete = True
    status = StatusMeaning(
        pending=(
            *("CREATING", "DOWNLOADING", "RESTORING-BACKUP", "EXTENDING", "RETYPING"),
            *("BACKING-UP", "UPLOADING", "MAINTENANCE", "AWAITING-TRANSFER"),
        ),
        bad=("ERROR", "ERROR_DELETING", "ERROR_RESTORING", "ERROR_EXTENDING", "ERROR_MANAGING"),
    )
    references = {
        "image": NamedThing("glance.image", "imageRef"),
        "snapshot_id": NamedThing("cinder.snapshot", "snapshot_id"),
        "source_volid": NamedThing("cinder.volume", "source_volid"),
        "volume_type": NamedThing("cinder.vtype", "volume_type"),
    }
    apart = ("backup_id", "read_only", "scheduler_hints", "multiattach")
    properties_schema = {
        "availability_zone": Property("string", "Availability zone; none: the service chooses."),
        "size": Property(
            "integer",
            "Size in GiB; it can grow only. It follows from a snapshot, a backup or another volume.",
            update_allowed=True,
            constraints=(Range(minimum=1),),
        ),
        "snapshot_id": Property(
            "string",
            "Name or id of the snapshot that it begins with.",
            constraints=(Custom(check_name="cinder.snapshot"),),
        ),
        "backup_id": Property(
            "string",
            "Name or id of the backup that it begins with; a change restores another one.",
            update_allowed=True,
            constraints=(Custom(check_name="cinder.backup"),),
        ),
        "name": Property(
            "string", "Name; none: made of the stack's and the resource's.", update_allowed=True
        ),
        "description": Property("string", "Description of the volume.", update_allowed=True),
        "volume_type": Property(
            "string",
            "Name or id of its type; a change retypes it.",
            update_allowed=True,
            constraints=(Custom(check_name="cinder.vtype"),),
        ),
        "metadata": Property("map", "Its metadata.", default={}, update_allowed=True),
        "imageRef": Property("string", support_status=HIDDEN, alias_of="image"),
        "image": Property(
            "string",
            "Name or id of the image that it begins with.",
            constraints=(Custom(check_name="glance.image"),),
        ),
        "source_volid": Property(
            "string",
            "Name or id of the volume that it is a copy of.",
            constraints=(Custom(check_name="cinder.volume"),),
        ),
        "scheduler_hints": Property("map", "Hints for the scheduler."),
        "read_only": Property("boolean", "It cannot be written to.", update_allowed=True),
        "multiattach": Property(
            "boolean",
            "Without effect: its type decides.",
            default=False,
            support_status=SupportStatus("HIDDEN"),
        ),
    }
    attributes_schema = {
        "availability_zone": Attribute("Its availability zone.", "string"),
        "size": Attribute("Its size in GiB.", "string"),
        "snapshot_id": Attribute("The snapshot that it began with.", "string"),
        "display_name": Attribute("Its name.", "string"),
        "display_description": Attribute("Its description.", "string"),
        "volume_type": Attribute("Its type.", "string"),
        "metadata": Attribute("Its metadata, as JSON text.", "string"),
        "source_volid": Attribute("The volume that it is a copy of.", "string"),
        "status": Attribute("Its status.", "string", volatile=True),
        "created_at": Attribute("The moment of its creation.", "string"),
        "bootable": Attribute("A server can be started from it.", "string"),
        "metadata_values": Attribute("Its metadata.", "map"),
        "encrypted": Attribute("It is encrypted.", "string"),
        "attachments": Attribute(
            "Its attachments, as text.",
            "string",
            support_status=SupportStatus("DEPRECATED", message="Use attachments_list."),
            volatile=True,
        ),
        "attachments_list": Attribute("Its attachments.", "list", volatile=True),
        "multiattach": Attribute("Several servers can have it at once.", "boolean"),
        "show": Attribute("All that the service reports of it.", "map"),
    }

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Check that the data come from one place at most, and that the size is known."""
        given = [name for name in SOURCES if properties.get(name)]
        if len(given) > 1:
            raise PropertyError(f"{' and '.join(given)} exclude each other: a volume begins with one")
        sized = [properties.get(name, "unknown") for name in ("size", *SOURCES) if name != "image"]
        if not any(sized):
            raise PropertyError("size is needed, unless snapshot_id, source_volid or backup_id is given")

    # -- creation ----------------------------------------------------------------------------------

    def create_body(self, target: ResourceView, work: StepContext) -> dict[str, Json]:
        """Return the fields of a new volume; one for a backup has its size."""
        body = super().create_body(target, work)
        body.setdefault("name", target.physical_name)
        backup = target.properties["backup_id"]
        if backup and "size" not in body:
            found = self.service_for(work).get(f"/backups/{resolve(work, 'cinder.backup', backup)}")
            body["size"] = found["backup"]["size"]
        return body

    def request(self, body: Mapping[str, Json], target: ResourceView) -> Mapping[str, Json]:
        """Return the body of the request; hints are beside the volume."""
        hints = target.properties["scheduler_hints"]
        return {"volume": body, **({"OS-SCH-HNT:scheduler_hints": hints} if hints else {})}

    def check_create_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll; once the volume is available restore the backup, then protect it from writing."""
        step = super().check_create_complete(target, progress, work)
        if not isinstance(step, Done) or progress.get("restored"):
            return self._protected(step, target, work)
        if backup := target.properties["backup_id"]:
            self._restore(target, backup, work)
            return Poll(progress={"since": work.now(), "restored": True}, after=FIRST_PAUSE)
        return self._protected(step, target, work)

    def has_more(self, target: ResourceView) -> bool:
        """Return whether there is something to do once the volume is available."""
        return bool(target.properties["backup_id"]) or target.properties["read_only"] is not None

    def _protected(self, step: Step, target: ResourceView, work: StepContext) -> Step:
        if isinstance(step, Done) and target.properties["read_only"] is not None:
            self._act(target, "os-update_readonly_flag", {"readonly": target.properties["read_only"]}, work)
        return step

    # -- update ------------------------------------------------------------------------------------

    def handle_update(self, target: ResourceView, changed: frozenset[str], work: StepContext) -> Step:
        """Send the fields that have changed; then the changes that take time follow one by one.

        :raises PermanentError: the volume would become smaller.
        """
        size, before = target.properties["size"], self._size(target)
        if "size" in changed and size is not None and before is not None and size < before:
            raise PermanentError("Shrinking volume is not supported.", kind="NotSupported")
        if "metadata" in changed:
            self._set_metadata(target, work)
        fields = changed & {"name", "description"}
        if fields:
            body = {name: target.properties[name] or "" for name in sorted(fields)}
            if "name" in fields and not body["name"]:
                body["name"] = target.physical_name
            self.service_for(work).put(self.path_of(target), {"volume": body})
        if "read_only" in changed and target.properties["read_only"] is not None:
            self._act(target, "os-update_readonly_flag", {"readonly": target.properties["read_only"]}, work)
        grows = "size" in changed and size is not None and size != before
        todo = [name for name in ("size", "volume_type", "backup_id") if name in changed]
        todo = [name for name in todo if target.properties[name] is not None and (name != "size" or grows)]
        return Poll(progress={"since": work.now(), "todo": todo}, after=0.0)

    def check_update_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll; when a change has ended, start the next one."""
        step = super().check_update_complete(target, progress, work)
        todo: Sequence[str] = progress.get("todo") or ()
        if not isinstance(step, Done) or not todo:
            return (
                step if isinstance(step, Done) else Poll(progress=progress, after=step.after or FIRST_PAUSE)
            )
        self._start(todo[0], target, work)
        return Poll(progress={"since": work.now(), "todo": todo[1:]}, after=FIRST_PAUSE)

    def _start(self, change: str, target: ResourceView, work: StepContext) -> None:
        """Start a change, unless an earlier step has made it, and died before it could say so."""
        value, service = target.properties[change], self.service_for(work)
        thing = self.get(service, self.id_of(target))
        if change == "size":
            if thing["size"] < value:
                self._act(target, "os-extend", {"new_size": value}, work)
        elif change == "volume_type":
            new = resolve(work, "cinder.vtype", value)
            if service.get(f"/types/{new}")["volume_type"]["name"] != thing["volume_type"]:
                self._act(target, "os-retype", {"new_type": new, "migration_policy": "never"}, work)
        else:
            self._restore(target, value, work)

    def _size(self, target: ResourceView) -> int | None:
        found = (target.data.get(THING) or {}).get("size", target.previous.get("size"))
        return None if found is None else int(found)

    def _set_metadata(self, target: ResourceView, work: StepContext) -> None:
        """Replace the metadata, but for our mark."""
        service = self.service_for(work)
        marked = self.get(service, self.id_of(target))["metadata"].get(MARK_NAME)
        metadata = {**target.properties["metadata"], **({MARK_NAME: marked} if marked else {})}
        service.put(f"{self.path_of(target)}/metadata", {"metadata": metadata})

    def _restore(self, target: ResourceView, backup: str, work: StepContext) -> None:
        path = f"/backups/{resolve(work, 'cinder.backup', backup)}/restore"
        self.service_for(work).post(path, {"restore": {"volume_id": self.id_of(target)}})

    def _act(self, target: ResourceView, action: str, arguments: Json, work: StepContext) -> None:
        self.service_for(work).post(f"{self.path_of(target)}/action", {action: arguments})

    # -- deletion, snapshots -----------------------------------------------------------------------

    def before_delete(self, target: ResourceView, work: StepContext) -> None:
        """Wait until no server has the volume, for the service refuses to delete it before.

        :raises RetryableError: with the servers that have it.
        """
        found = self.get(self.service_for(work), self.id_of(target))
        if str(found["status"]).upper() in ATTACHED:
            servers = sorted(str(item["server_id"]) for item in found["attachments"])
            users = f"server {', '.join(servers)}" if servers else "a server"
            raise RetryableError(f"still in use by {users}", after=2.0)

    def handle_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Start a backup: that is the snapshot, as in Heat."""
        service, mark = self.service_for(work), f"stoker-{target.key}"
        found = [item["id"] for item in service.list_all("/backups/detail", "backups", name=mark)]
        if not found:
            body = {"volume_id": self.id_of(target), "name": mark, "force": True}
            found = [service.post("/backups", {"backup": body})["backup"]["id"]]
        return Poll(
            progress={"since": work.now(), "backup": found[0]},
            after=FIRST_PAUSE,
            data={"backup_id": found[0]},
        )

    def check_snapshot_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll until the backup is there."""
        backup = self.service_for(work).get(f"/backups/{progress['backup']}")["backup"]
        meaning = StatusMeaning(pending=("CREATING",), bad=("ERROR",))
        if meaning.is_pending(backup, lambda found: str(found.get("fail_reason") or "")):
            return Poll(progress=progress, after=2.0)
        return Done(data={"backup_id": progress["backup"]})

    def handle_delete_snapshot(self, target: ResourceView, work: StepContext) -> Step:
        """Delete the backup of a snapshot."""
        service, backup = self.service_for(work), target.data.get("backup_id")
        if backup is None:
            found = service.list_all("/backups/detail", "backups", name=f"stoker-{target.key}")
            backup = found[0]["id"] if found else None
        if backup is None:
            return Done()
        try:
            service.delete(f"/backups/{backup}")
        except ThingNotFound:
            return Done()
        return Poll(progress={"backup": backup}, after=FIRST_PAUSE)

    def check_delete_snapshot_complete(self, target: ResourceView, progress: Json, work: StepContext) -> Step:
        """Poll until the backup is gone."""
        try:
            self.service_for(work).get(f"/backups/{progress['backup']}")
        except ThingNotFound:
            return Done()
        return Poll(progress=progress, after=2.0)

    def handle_restore(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the backup of the snapshot as the one to be restored."""
        return {"backup_id": data["backup_id"]} if "backup_id" in data else {}

    # -- attributes --------------------------------------------------------------------------------

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the fields of the stored answer; most as text, as in Heat."""
        thing = target.data.get(THING) or {}
        metadata = {name: value for name, value in (thing.get("metadata") or {}).items() if name != MARK_NAME}
        plain = {
            name: None if (found := thing.get(name)) is None else str(found)
            for name in self.attributes_schema
        }
        return {
            **plain,
            "display_name": thing.get("name"),
            "display_description": thing.get("description"),
            "metadata": json.dumps(metadata),
            "metadata_values": metadata,
            "attachments": str(thing.get("attachments") or []),
            "attachments_list": thing.get("attachments") or [],
            "multiattach": thing.get("multiattach"),
            "show": {**thing, "metadata": metadata},
        }
