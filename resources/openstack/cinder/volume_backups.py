"""Backups of volumes: they are the snapshots of a stack's volumes, as in Heat."""

from ....shapes import Json, JsonMap
from ...contract import Done, PermanentError, Poll, ResourceType, ResourceView, Step, StepContext
from ..marks import mark_of
from ..names import resolve
from ..polling import FIRST_PAUSE, pause
from ..service import RemoteNotFound, service_of
from ..statuses import StatusMeaning

BACKUP = "backup_id"
"""Key of the data of a resource's snapshot."""
MEANING = StatusMeaning(pending=("CREATING",), bad=("ERROR",))
DELETED = StatusMeaning(pending=("DELETING",), bad=("ERROR", "ERROR_DELETING"))
"""Meanings of a backup's status while it is made, and while it is deleted."""
WORKING = ("CREATING", "RESTORING")
"""Statuses of a backup that the service works on; it refuses the deletion meanwhile."""


def restore(context: StepContext, volume: str, backup: str) -> None:
    """Start to bring the data of a backup into a volume."""
    path = f"/backups/{resolve(context, 'cinder.backup', backup)}/restore"
    service_of(context, "block-storage").post(path, {"restore": {"volume_id": volume}})


class VolumeBackups(ResourceType):
    """The part of a volume's type that makes and deletes backups."""

    snapshot_on_delete = True
    copy_quota = {"backups": 1, "backup_gigabytes": "size"}

    def handle_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Start a backup, unless an earlier step has."""
        service = service_of(context, "block-storage")
        backup = self._backup(target, context)
        if backup is None:
            body = {"volume_id": target.physical_id, "name": mark_of(target.key), "force": True}
            backup = service.post("/backups", {"backup": body})["backup"]["id"]
        return Poll(
            progress={"since": context.now(), "backup": backup}, after=FIRST_PAUSE, data={BACKUP: backup}
        )

    def check_snapshot_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Poll until the backup is there."""
        backup = service_of(context, "block-storage").get(f"/backups/{progress['backup']}")["backup"]
        if MEANING.is_pending(backup, _reason):
            return Poll(progress=progress, after=pause(progress["since"], context.now()))
        return Done(data={BACKUP: progress["backup"]})

    def handle_delete_snapshot(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the backup of a snapshot when the service has stopped working on it.

        :raises PermanentError: the service refuses the deletion.
        """
        backup = target.data.get(BACKUP) or self._backup(target, context)
        return Done() if backup is None else _delete(str(backup), context.now(), context)

    def check_delete_snapshot_complete(
        self, target: ResourceView, progress: Json, context: StepContext
    ) -> Step:
        """Poll until the backup can be deleted, then until it is gone.

        :raises PermanentError: the service could not delete the backup.
        """
        backup = str(progress["backup"])
        if progress.get("waits"):
            return _delete(backup, progress["since"], context)
        remote = _find(backup, context)
        if remote is None:
            return Done()
        DELETED.is_pending(remote, _reason)
        return Poll(progress=progress, after=pause(progress["since"], context.now()))

    def handle_restore(self, properties: JsonMap, data: JsonMap) -> JsonMap:
        """Return the backup of the snapshot as the one to be restored."""
        return {"backup_id": data[BACKUP]} if BACKUP in data else {}

    def _backup(self, target: ResourceView, context: StepContext) -> str | None:
        """Return the backup that an earlier step has begun."""
        backups = service_of(context, "block-storage").list_all(
            "/backups/detail", "backups", name=mark_of(target.key)
        )
        return str(backups[0]["id"]) if backups else None


def _delete(backup: str, since: float, context: StepContext) -> Step:
    """Delete a backup, unless the service works on it.

    :param since: the moment since which the deletion is requested.
    :raises PermanentError: the service refuses, though it does not work on the backup.
    """
    waiting = Poll(
        progress={"since": since, "backup": backup, "waits": True}, after=pause(since, context.now())
    )
    remote = _find(backup, context)
    if remote is None:
        return Done()
    if MEANING.of(remote) in WORKING:
        return waiting
    if MEANING.of(remote) not in DELETED.pending:  # An earlier step may have sent the request.
        try:
            service_of(context, "block-storage").delete(f"/backups/{backup}")
        except RemoteNotFound:
            return Done()
        except PermanentError:
            # Somebody may have begun to restore it since it was read.
            if MEANING.of(_find(backup, context) or {}) not in WORKING:
                raise
            return waiting
    return Poll(progress={"since": since, "backup": backup}, after=FIRST_PAUSE)


def _find(backup: str, context: StepContext) -> JsonMap | None:
    """Return the backup; None: it does not exist."""
    try:
        remote: JsonMap = service_of(context, "block-storage").get(f"/backups/{backup}")["backup"]
    except RemoteNotFound:
        return None
    return remote


def _reason(backup: JsonMap) -> str:
    return str(backup.get("fail_reason") or "")
