"""The changes of a volume that take time, one after the other."""

import typing
from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ...contract import PermanentError, ResourceView, StepContext
from ..names import resolve
from ..service import service_of
from .attachments import detach, ensure_attached, find_attachment, get_volume, has_server, is_attached
from .volume_backups import restore

DETACHED_FIRST = frozenset({"backup_id", "read_only"})
"""Properties that the service changes of a volume only that no server has."""


class VolumeChange(typing.NamedTuple):
    """One change.

    :ivar kind: name of a property, or ``detach`` or ``attach``.
    :ivar server: id of the server of an attachment.
    :ivar device: place of the volume in that server.
    """

    kind: str
    server: str = ""
    device: str | None = None

    def as_json(self) -> Json:
        """Return it for a progress token."""
        return list(self)


class VolumeChanges:
    """Begins changes of a volume, and finds out whether they have ended.  For one step."""

    def __init__(self, target: ResourceView, context: StepContext) -> None:
        self._target = target
        self._context = context

    @staticmethod
    def needed(target: ResourceView, changed: Collection[str], volume: JsonMap) -> Sequence[VolumeChange]:
        """Return the changes that bring the volume to its properties, in order."""
        names = [name for name in ("volume_type", "backup_id", "size", "read_only") if name in changed]
        # Only write protection has a state of a new volume to go back to.
        changes = [
            VolumeChange(name) for name in names if target.properties[name] is not None or name == "read_only"
        ]
        if not DETACHED_FIRST & {change.kind for change in changes}:
            return changes
        places = [(str(item["server_id"]), item.get("device")) for item in volume["attachments"]]
        detachments = [VolumeChange("detach", *slot) for slot in places]
        return [*detachments, *changes, *(VolumeChange("attach", *slot) for slot in places)]

    def begin(self, change: VolumeChange, remote: JsonMap) -> None:
        """Begin a change, unless an earlier step has, and died before it could say so."""
        context = self._context
        volume = str(remote["id"])
        value: Json = self._target.properties.get(change.kind)
        if change.kind == "detach":
            detach(context, change.server, volume)
        elif change.kind == "attach":
            ensure_attached(context, change.server, volume, change.device)
        elif change.kind == "read_only":
            act(context, volume, "os-update_readonly_flag", {"readonly": bool(value)})
        elif change.kind == "backup_id":
            restore(context, volume, value)
        elif change.kind == "size" and remote["size"] < value:
            self._act_once(change, remote, "os-extend", {"new_size": value})
        elif change.kind == "volume_type" and not self._has_type(remote):
            new = resolve(context, "cinder.vtype", value)
            self._act_once(change, remote, "os-retype", {"new_type": new, "migration_policy": "never"})

    def has_ended(self, change: VolumeChange, volume: JsonMap) -> bool:
        """Return whether a change that was begun has ended; the volume is in a good state.

        :raises PermanentError: the change has failed.
        """
        value = self._target.properties.get(change.kind)
        if change.kind == "detach":
            return not is_attached(self._context, change.server, volume)
        if change.kind == "attach":
            if (
                volume["status"] == "available"
                and find_attachment(self._context, change.server, volume["id"]) is None
            ):
                raise _failed(f"attached to server {change.server} again", volume)
            return has_server(volume, change.server)
        if change.kind == "size" and volume["size"] < value:
            raise _failed(f"extended to {value} GiB", volume)
        if change.kind == "volume_type" and not self._has_type(volume):
            raise _failed(f"changed to the type {value}", volume)
        return True

    def _act_once(self, change: VolumeChange, volume: JsonMap, action: str, arguments: Json) -> None:
        """Send a request that the service refuses to carry out twice.

        A request that a dead step has sent may reach the service late, after the volume was read.
        """
        try:
            act(self._context, str(volume["id"]), action, arguments)
        except PermanentError:
            now = get_volume(service_of(self._context, "block-storage"), str(volume["id"]))
            if not self._is_done(change, now):
                raise

    def _is_done(self, change: VolumeChange, volume: JsonMap) -> bool:
        """Return whether the service makes a change now, or has made it."""
        if change.kind == "size":
            return bool(volume["status"] == "extending" or volume["size"] >= self._target.properties["size"])
        return volume["status"] == "retyping" or self._has_type(volume)

    def _has_type(self, volume: JsonMap) -> bool:
        value = self._target.properties["volume_type"]
        if volume["volume_type"] == value:
            return True
        new = resolve(self._context, "cinder.vtype", value)
        kind = service_of(self._context, "block-storage").get(f"/types/{new}")["volume_type"]
        return bool(kind["name"] == volume["volume_type"])


def act(context: StepContext, volume: str, action: str, arguments: Json) -> None:
    """Let the service do something with a volume."""
    service_of(context, "block-storage").post(f"/volumes/{volume}/action", {action: arguments})


def _failed(change_name: str, volume: JsonMap) -> PermanentError:
    text = f"The volume {volume['id']} could not be {change_name}; the messages of the service may say why"
    return PermanentError(text, kind="ResourceInError")
