"""Volumes that a server and its replacement name: only one of them can have a volume at a time.

The compute service detaches any volume but the one that a server boots from.  So a server that boots from
such a volume is deleted before its replacement is made; the volume stays.
"""

import contextlib
from collections.abc import Sequence

from ....shapes import JsonMap
from ...contract import PermanentError, Poll, ReplaceNeeded, ResourceView, StepContext
from ..cinder.attachments import detach, ensure_attached
from ..marks import TagMark, mark_of, marked
from ..names import NameNotFound, resolve
from ..service import RemoteNotFound
from .compute import DELETING, SERVER_STATUS, TASK_STATE, ServerCalls

AGAIN = Poll(progress={}, after=0.5)
"""A volume is being detached, or a server deleted: the step is called again."""
ATTACHED = "os-extended-volumes:volumes_attached"
FIRST = (None, 0)
"""Values of boot_index of the disk that a server boots from."""


class ReplacedVolumes:
    """The release of volumes that a server has by their ids, and their return."""

    def __init__(self, target: ResourceView, context: StepContext) -> None:
        self._target = target
        self._context = context
        self._calls = ServerCalls.of(target, context)

    def prepare(self) -> Poll | None:
        """Detach the volumes that the replacement names, too; delete a server that boots from one.

        :raises PermanentError: the volume would be deleted with the server.
        """
        needed = self._named(self._target.properties)
        server = self._state(self._calls) if needed else None
        volumes = _volumes(server) & needed.keys()
        if server is None or not volumes:
            return None
        entries = self._named(self._target.previous or self._target.properties)
        booted = [volume for volume in sorted(volumes) if volume in entries and _is_first(entries[volume])]
        if not booted and SERVER_STATUS.of(server) not in SERVER_STATUS.bad:
            for volume in sorted(volumes):
                detach(self._context, self._calls.id, volume)
            return AGAIN
        for volume in volumes & entries.keys():
            if entries[volume].get("delete_on_termination"):
                text = f"The volume {volume} would be deleted with the server that is to be replaced"
                raise PermanentError(f"{text}: set its delete_on_termination to false first", kind="Error")
        return self._deleted(self._calls, server)

    def restore(self) -> Poll | None:
        """Attach the volumes again, also where the replacement has them now.

        :raises ReplaceNeeded: the server booted from one of them, and is deleted.
        """
        volumes = self._named(self._target.properties).keys()
        if not volumes:
            return None
        for calls in self._replacements():
            other = self._state(calls)
            if other is not None and _volumes(other) & volumes:
                return self._deleted(calls, other)
        server = self._state(self._calls)
        if server is None:
            raise ReplaceNeeded
        for volume in sorted(volumes - _volumes(server)):
            ensure_attached(self._context, self._calls.id, volume, None)
        return None

    def _named(self, properties: JsonMap) -> dict[str, JsonMap]:
        """Return the entries with volumes that a server has by name or id, by these ids."""
        entries: dict[str, JsonMap] = {}
        for name in ("block_device_mapping", "block_device_mapping_v2"):
            for entry in properties.get(name) or ():
                if entry.get("volume_id"):
                    with contextlib.suppress(NameNotFound):  # It is gone.
                        entries[resolve(self._context, "cinder.volume", entry["volume_id"])] = entry
        return entries

    def _replacements(self) -> Sequence[ServerCalls]:
        replacement = self._context.replacement()
        if replacement is None:
            return ()
        service = self._calls.service
        ids = {*marked(TagMark(), mark_of(replacement.key), service, "/servers/detail", "servers")}
        ids |= {replacement.physical_id} if replacement.physical_id else set()
        return [ServerCalls(service, server) for server in sorted(ids)]

    def _deleted(self, calls: ServerCalls, server: JsonMap) -> Poll:
        if server.get(TASK_STATE) not in DELETING:
            calls.delete()
        return AGAIN

    def _state(self, calls: ServerCalls) -> JsonMap | None:
        try:
            server = calls.get()
        except RemoteNotFound:
            return None
        return None if SERVER_STATUS.of(server) in SERVER_STATUS.deleted else server


def _is_first(entry: JsonMap) -> bool:
    """Return whether a server boots from the disk; entries of the older form have no index."""
    return entry["boot_index"] in FIRST if "boot_index" in entry else entry.get("device_name") == "vda"


def _volumes(server: JsonMap | None) -> set[str]:
    return {str(item["id"]) for item in (server or {}).get(ATTACHED) or ()}
