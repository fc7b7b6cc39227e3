"""Handlers of the snapshots of a stack."""

import typing
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ...db import content, resources, snapshots
from ...db.errors import NotFound
from ...db.ids import SnapshotId
from ...db.rows import Snapshot, Stack
from ...engine.exports import snapshot_document
from ...sealing.stored import Masked
from ..errors import Fault
from ..request import ACCEPTED, Reply, Request, validated
from ..schemas import SNAPSHOT
from ..views import stacks

Json = typing.Any


def take(call: Request) -> Reply:
    """POST …/snapshots"""
    stack = call.living_stack()
    body = validated(call.body or {}, SNAPSHOT)
    taken = call.services.snapshots.take(stack, body.get("name"))
    return Reply(_shown(call, stack, [taken])[0])


def index(call: Request) -> Reply:
    """GET …/snapshots"""
    stack = call.stack()
    found = call.services.database.read(lambda conn: snapshots.of_stack(conn, stack.id))
    return Reply({"snapshots": _shown(call, stack, found)})


def show(call: Request) -> Reply:
    """GET …/snapshots/ID"""
    stack = call.stack()
    return Reply({"snapshot": _shown(call, stack, [_found(call, stack)])[0]})


def delete(call: Request) -> Reply:
    """DELETE …/snapshots/ID"""
    stack = call.living_stack()
    call.services.snapshots.delete(stack, _found(call, stack).id)
    return Reply(None, 204)


def restore(call: Request) -> Reply:
    """POST …/snapshots/ID/restore"""
    stack = call.living_stack()
    call.check_types(stack)
    call.services.updates.restore(stack, _found(call, stack).id)
    return ACCEPTED


def _found(call: Request, stack: Stack) -> Snapshot:
    wanted = SnapshotId(call.path["snapshot_id"])
    try:
        return call.services.database.read(lambda conn: snapshots.get(conn, stack.id, wanted))
    except NotFound as error:
        message = f"The Snapshot ({wanted}) for Stack ({stack.name}) could not be found."
        raise Fault(404, "SnapshotNotFound", message) from error


def _shown(call: Request, stack: Stack, found: Sequence[Snapshot]) -> list[dict[str, Json]]:
    def read(conn: Connection) -> list[dict[str, Json]]:
        contents = content.get_many(conn, [key for item in found for key in item.contents])
        return [
            {
                "id": item.id,
                "name": item.name,
                "action": item.action,
                "status": item.status,
                "status_reason": item.reason,
                "data": snapshot_document(
                    stack, item, contents, resources.copies(conn, stack.id, item.id), Masked()
                ),
                "creation_time": stacks.iso(item.created_at),
            }
            for item in found
        ]

    return call.services.database.read(read)
