"""Handlers of the snapshots of a stack."""

from collections.abc import Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db import content, resources, snapshots
from ...db.errors import NotFound
from ...db.ids import ContentId, SnapshotId
from ...db.rows import Resource, Snapshot, Stack
from ...engine.exports import snapshot_document
from ...engine.snapshots import delete_snapshot, take_snapshot
from ...engine.updates import restore_stack
from ...observe.instants import iso
from ...sealing.stored import Masked
from ...shapes import Json
from ..errors import Fault
from ..operations import Request
from ..reply import ACCEPTED, Reply
from ..schemas import SNAPSHOT, validated


def take(request: Request) -> Reply:
    """Answer POST …/snapshots with the snapshot as it was begun: no resource is in it yet."""
    stack = request.living_stack()
    body = validated(request.body or {}, SNAPSHOT)
    snapshot = take_snapshot(request.services.context, stack, body.get("name"))
    contents = request.read(lambda conn: content.get_all(conn, snapshot.contents))
    return Reply(_view(stack, snapshot, contents, []))


def index(request: Request) -> Reply:
    """Answer GET …/snapshots, without their data."""
    marker = SnapshotId(request.one("marker") or "") or None

    def read(conn: Connection) -> list[Snapshot]:
        return snapshots.list_page(conn, request.find_stack(conn).id, limit=request.limit(), marker=marker)

    return Reply({"snapshots": [_summary(item) for item in request.read(read)]})


def show(request: Request) -> Reply:
    """Answer GET …/snapshots/ID."""

    def read(conn: Connection) -> dict[str, Json]:
        stack = request.find_stack(conn)
        snapshot = _find(conn, request, stack)
        contents = content.get_all(conn, snapshot.contents)
        return _view(stack, snapshot, contents, resources.copies(conn, stack.id, snapshot.id))

    return Reply({"snapshot": request.read(read)})


def delete(request: Request) -> Reply:
    """Answer DELETE …/snapshots/ID."""
    stack = request.living_stack()
    snapshot = request.read(lambda conn: _find(conn, request, stack))
    delete_snapshot(request.services.context, stack, snapshot.id)
    return Reply(None, 204)


def restore(request: Request) -> Reply:
    """Answer POST …/snapshots/ID/restore."""
    stack = request.permitted_stack()
    snapshot = request.read(lambda conn: _find(conn, request, stack))
    restore_stack(request.services.context, stack, snapshot.id)
    return ACCEPTED


def _find(conn: Connection, request: Request, stack: Stack) -> Snapshot:
    key = SnapshotId(request.path["snapshot_id"])
    try:
        return snapshots.get(conn, stack.id, key)
    except NotFound as error:
        message = f"The Snapshot ({key}) for Stack ({stack.name}) could not be found."
        raise Fault(404, "SnapshotNotFound", message) from error


def _summary(snapshot: Snapshot) -> dict[str, Json]:
    return {
        "id": snapshot.id,
        "name": snapshot.name,
        "action": snapshot.action,
        "status": snapshot.status,
        "status_reason": snapshot.reason,
        "creation_time": iso(snapshot.created_at),
    }


def _view(
    stack: Stack, snapshot: Snapshot, contents: Mapping[ContentId, Json], copies: Sequence[Resource]
) -> dict[str, Json]:
    return {**_summary(snapshot), "data": snapshot_document(stack, snapshot, contents, copies, Masked())}
