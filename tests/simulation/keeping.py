"""Events of a random schedule: snapshots and what is done with them; stacks that go from hand to hand."""

import random
import typing

import sqlalchemy as sa
from simulation.templates import RandomGoal
from simulation.world import World
from sqlalchemy.engine import Connection
from stoker.db import content, resources, snapshots, stacks, statements
from stoker.db.ids import StackId
from stoker.db.rows import Resource, Snapshot, Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.engine.errors import ActionInProgress, NotUpdatable
from stoker.engine.exports import abandon_stack
from stoker.engine.snapshots import delete_snapshot, take_snapshot
from stoker.engine.updates import restore_stack

Json = typing.Any


class Keeping:
    """Does to a stack what a user does, and knows what must be true afterwards.  What a stack is not allowed
    to at that moment is no event: None."""

    def __init__(self, world: World) -> None:
        self.world = world

    def take(self, stack: Stack) -> str | None:
        try:
            snapshot = take_snapshot(self.world.context, self.world.stack(stack.id), None)
        except (NotUpdatable, ActionInProgress):
            return None
        return f"{stack.name} {snapshot.id}"

    def forget(self, stack: Stack, dice: random.Random) -> str | None:
        copies = self.world.database.read(lambda conn: snapshots.of_stack(conn, stack.id))
        if not copies:
            return None
        chosen = dice.choice(copies)
        try:
            delete_snapshot(self.world.context, self.world.stack(stack.id), chosen.id)
        except NotUpdatable:
            return None
        return f"{stack.name} {chosen.id}"

    def restore(self, stack: Stack, dice: random.Random) -> RandomGoal | None:
        """The stack's new goal."""
        copies = self.world.database.read(lambda conn: snapshots.of_stack(conn, stack.id))
        if not copies:
            return None
        try:
            restore_stack(self.world.context, self.world.stack(stack.id), dice.choice(copies).id)
        except NotUpdatable:
            return None
        return self._goal(stack)

    def hand_over(self, stack: Stack, name: str) -> tuple[Stack, RandomGoal] | None:
        """The stack that has adopted all of the other, and its goal."""
        goal = self._goal(stack)
        rows = self._rows(stack)
        if any(row.replaced_by is not None or row.name not in goal.resources for row in rows):
            return None  # An update has left something that only an update or the deletion takes away.
        inside = self._inside(stack)
        if any(each.status != Status.COMPLETE for each in inside if each.deleted_at is None):
            return None
        try:
            document = abandon_stack(self.world.context, self.world.stack(stack.id))
        except ActionInProgress:
            return None
        cloud = self.world.cloud
        for row in rows:
            if not row.physical_id and row.key in cloud.physical_ids:
                cloud.objects.pop(cloud.physical_ids[row.key], None)  # Nobody ever learned its id.
        cloud.lent |= {physical for physical in _object_names(document) if physical in cloud.objects}
        return self.world.adopt(name, document), goal

    def wrong(self) -> list[str]:
        """Pictures that no snapshot has, and snapshots without their pictures."""
        pictures = self.world.cloud.pictures
        pictures_of_rows = set()
        faults = []
        for copy, snapshot in self.world.database.read(_copies):
            pictures_of_rows.add(f"picture-{copy.key}")
            if snapshot is None:
                faults.append(f"{copy.stack_id}.{copy.name} is a copy of no snapshot")
                continue
            complete = (snapshot.action, snapshot.status) == ("CREATE", Status.COMPLETE)
            if (
                complete
                and copy.type in ("Sim::Server", "Sim::Client")
                and f"picture-{copy.key}" not in pictures
            ):
                faults.append(f"{copy.stack_id}.{copy.name} has no picture")
        return faults + [f"{name} leaked" for name in pictures if name not in pictures_of_rows]

    def _inside(self, stack: Stack) -> list[Stack]:
        def read(conn: Connection) -> list[Stack]:
            return [
                stacks.get(conn, StackId(key))
                for key in conn.execute(statements.inside([stack.id])).scalars()
            ]

        return self.world.database.read(read)

    def _rows(self, stack: Stack) -> list[Resource]:
        return self.world.database.read(lambda conn: resources.of_stack(conn, stack.id))

    def _goal(self, stack: Stack) -> RandomGoal:
        current = self.world.stack(stack.id)
        keys = (current.template_id, current.files_id)
        contents = self.world.database.read(lambda conn: content.get_many(conn, keys))
        template, files = (contents[key] for key in keys)
        return RandomGoal({"resources": {}, **template}, files=files)


def _copies(conn: Connection) -> list[tuple[Resource, Snapshot | None]]:
    """All that snapshots keep of resources, with the snapshots."""
    r = tables.resource.c
    copies: list[tuple[Resource, Snapshot | None]] = []
    for key in conn.execute(sa.select(r.stack_id).where(r.snapshot_id.is_not(None)).distinct()).scalars():
        by_id = {snapshot.id: snapshot for snapshot in snapshots.of_stack(conn, key)}
        copies += [(copy, by_id.get(copy.snapshot_id)) for copy in resources.copies(conn, key)]
    return copies


def _object_names(document: Json) -> set[str]:
    """All that a document of a stack names."""
    names: set[str] = set()
    for entry in document["resources"].values():
        names |= _object_names(entry) if "resources" in entry else {str(entry["resource_id"])}
    return names
