"""Handlers of the snapshots of a stack."""

import typing

from sqlalchemy.engine import Connection

from ...db import content, resources, snapshots
from ...db.errors import NotFound
from ...db.ids import SnapshotId
from ...db.rows import Snapshot, Stack
from ...engine.exports import snapshot_document
from ...observe.instants import iso
from ...sealing.stored import Masked
from ..context import Request
from ..errors import Fault
from ..request import ACCEPTED, Reply, validated
from ..schemas import SNAPSHOT

Json = typing.Any


def take(call: Request) -> Reply:
    """Answer POST …/snapshots."""
    stack = call.living_stack()
    body = validated(call.body or {}, SNAPSHOT)
    taken = call.services.snapshots.take(stack, body.get("name"))
    return Reply(call.read(lambda conn: _view(conn, stack, taken)))


def index(call: Request) -> Reply:
    """Answer GET …/snapshots, without what they hold."""
    marker = SnapshotId(call.one("marker") or "") or None

    def read(conn: Connection) -> list[Snapshot]:
        return snapshots.list_page(conn, call.find_stack(conn).id, limit=call.limit(), marker=marker)

    return Reply({"snapshots": [_summary(item) for item in call.read(read)]})


def show(call: Request) -> Reply:
    """Answer GET …/snapshots/ID."""

    def read(conn: Connection) -> dict[str, Json]:
        stack = call.find_stack(conn)
        return _view(conn, stack, _find(conn, call, stack))

    return Reply({"snapshot": call.read(read)})


def delete(call: Request) -> Reply:
    """Answer DELETE …/snapshots/ID."""
    stack = call.living_stack()
    call.services.snapshots.delete(stack, call.read(lambda conn: _find(conn, call, stack)).id)
    return Reply(None, 204)


def restore(call: Request) -> Reply:
    """Answer POST …/snapshots/ID/restore."""
    stack = call.permitted_stack()
    call.services.updates.restore(stack, call.read(lambda conn: _find(conn, call, stack)).id)
    return ACCEPTED


def _find(conn: Connection, call: Request, stack: Stack) -> Snapshot:
    key = SnapshotId(call.path["snapshot_id"])
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


def _view(conn: Connection, stack: Stack, snapshot: Snapshot) -> dict[str, Json]:
    contents = content.get_many(conn, snapshot.contents)
    copies = resources.copies(conn, stack.id, snapshot.id)
    return {**_summary(snapshot), "data": snapshot_document(stack, snapshot, contents, copies, Masked())}
