"""Reads trees of stacks from Stoker's database, page by page; nothing is ever written by it."""

import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ....db import bulk, content, credentials, stacks
from ....db.engine import Database
from ....db.ids import ContentId, StackId
from ....db.imported_keys import ImportedKey
from ....db.rows import Event, Resource, Snapshot, Stack
from ....db.schema import tables
from ....db.software import StoredConfig, StoredDeployment
from ....db.states import FINAL
from ....shapes import Json
from ..heat.selection import Selection
from ..heat.stored_roots import RootColumns, resolve_stored

PAGE = 100
"""Root stacks whose ids are read together."""


@dataclass(frozen=True)
class StokerTree:
    """A root stack with all stacks nested in it.

    :ivar stacks: the nested stacks that are not deleted, those nearest to the root first.
    :ivar resources: the resources by their stacks, without the copies that snapshots keep.
    :ivar copies: the copies that snapshots keep.
    :ivar contents: templates, environments and files by their ids.
    :ivar credential: the sealed credential of the root; None: it has none.
    :ivar busy: ids of the stacks with unfinished tasks.
    :ivar orphans: names of stacks with an orphaned creation that is still to be deleted.
    """

    root: Stack
    stacks: Sequence[Stack] = ()
    resources: Mapping[StackId, Sequence[Resource]] = field(default_factory=dict)
    copies: Sequence[Resource] = ()
    events: Sequence[Event] = ()
    snapshots: Sequence[Snapshot] = ()
    contents: Mapping[ContentId, Json] = field(default_factory=dict, repr=False)
    keys: Sequence[ImportedKey] = ()
    configs: Sequence[StoredConfig] = ()
    deployments: Sequence[StoredDeployment] = ()
    credential: Json = field(default=None, repr=False)
    busy: Collection[StackId] = ()
    orphans: Sequence[str] = ()

    @property
    def all_stacks(self) -> list[Stack]:
        """Return the root and the nested stacks."""
        return [self.root, *self.stacks]

    def contents_of(self, stack: Stack) -> tuple[Json, Json, Json]:
        """Return the template, the environment and the files of a stack."""
        return (
            self.contents[stack.template_id],
            self.contents[stack.environment_id],
            self.contents[stack.files_id],
        )


class StokerDatabase:
    """Stoker's database as an export reads it.  For one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def resolve(self, selection: Selection) -> Selection:
        """Return a selection in which stacks are named by their ids.

        :raises WrongSelection: what is named does not exist, or is not only one.
        """
        return self._database.read(lambda conn: _resolved(conn, selection))

    def count(self, selection: Selection) -> int:
        """Return the number of root stacks of a selection, deleted ones included."""
        query = sa.select(sa.func.count()).select_from(tables.stack).where(*_roots(selection))
        return int(self._database.read(lambda conn: conn.execute(query).scalar_one()))

    def pages(self, selection: Selection) -> Iterator[list[StackId]]:
        """Yield the ids of the root stacks of a selection, in their order."""
        s = tables.stack
        last = ""
        while True:
            query = sa.select(s.c.id).where(s.c.id > last, *_roots(selection)).order_by(s.c.id).limit(PAGE)
            ids = self._database.read(lambda conn, query=query: list(conn.execute(query).scalars()))  # type: ignore[misc]
            if not ids:
                return
            last = ids[-1]
            yield ids

    def tree(self, root_id: StackId) -> StokerTree:
        """Return a tree as one transaction sees it."""
        return self._database.read(lambda conn: _tree(conn, root_id))

    def missing_software(self, ids: Collection[str]) -> set[str]:
        """Return those of the ids that no config and no deployment has any more."""
        return self._database.read(lambda conn: set(ids) - _software(conn, sorted(ids)))

    def software_pages(
        self, selection: Selection
    ) -> Iterator[tuple[list[StoredConfig], list[StoredDeployment]]]:
        """Yield the configs that belong to no stack, and then such deployments, page by page."""
        for table in (tables.software_config, tables.software_deployment):
            last = ""
            while True:
                query = sa.select(table).where(table.c.id > last, table.c.stack_id.is_(None))
                if selection.projects:
                    query = query.where(table.c.project_id.in_(list(selection.projects)))
                query = query.order_by(table.c.id).limit(bulk.BATCH)
                rows = self._database.read(lambda conn, query=query: _maps(conn, query))  # type: ignore[misc]
                if not rows:
                    break
                last = rows[-1]["id"]
                if table is tables.software_config:
                    yield [StoredConfig(**row) for row in rows], []
                else:
                    yield [], [StoredDeployment(**row) for row in rows]


def _roots(selection: Selection) -> list[sa.ColumnElement[bool]]:
    s = tables.stack
    conditions: list[sa.ColumnElement[bool]] = [s.c.parent_id.is_(None)]
    if selection.projects:
        conditions.append(s.c.project_id.in_(list(selection.projects)))
    if selection.stacks:
        conditions.append(s.c.id.in_(list(selection.stacks)))
    return conditions


def _resolved(conn: Connection, selection: Selection) -> Selection:
    s = tables.stack.c
    columns = RootColumns(
        id=s.id,
        name=s.name,
        project_id=s.project_id,
        deleted_at=s.deleted_at,
        projects=[s.project_id, tables.software_config.c.project_id],
        conditions=_roots(replace(selection, stacks=())),
    )
    return resolve_stored(conn, selection, columns)


def _tree(conn: Connection, root_id: StackId) -> StokerTree:
    root = stacks.get(conn, root_id)
    nested, orphans = _nested(conn, root)
    ids = [root.id, *(stack.id for stack in nested)]
    of_stacks = [Resource(**row) for row in _of(conn, tables.resource, "stack_id", ids)]
    snapshots = [Snapshot(**row) for row in _of(conn, tables.snapshot, "stack_id", ids)]
    by_stack: dict[StackId, list[Resource]] = {stack_id: [] for stack_id in ids}
    for row in of_stacks:
        if row.snapshot_id is None:
            by_stack[row.stack_id].append(row)
    keys = {key for stack in (root, *nested) for key in (stack.template_id, stack.environment_id)}
    keys |= {stack.files_id for stack in (root, *nested)}
    keys |= {key for snapshot in snapshots for key in snapshot.contents}
    goals = [stack.previous for stack in (root, *nested) if stack.previous]
    keys |= {ContentId(goal[name]) for goal in goals for name in ("template", "environment", "files")}
    return StokerTree(
        root=root,
        stacks=nested,
        resources=by_stack,
        copies=[row for row in of_stacks if row.snapshot_id is not None],
        events=[Event(**row) for row in _of(conn, tables.event, "stack_id", ids)],
        snapshots=snapshots,
        contents=content.get_many(conn, keys),
        keys=[ImportedKey(**row) for row in _of(conn, tables.imported_key, "stack_id", ids)],
        configs=[StoredConfig(**row) for row in _of(conn, tables.software_config, "stack_id", ids)],
        deployments=[
            StoredDeployment(**row) for row in _of(conn, tables.software_deployment, "stack_id", ids)
        ],
        credential=credentials.of_root(conn, root.id),
        busy=_busy(conn, ids),
        orphans=orphans,
    )


def _nested(conn: Connection, root: Stack) -> tuple[list[Stack], list[str]]:
    """Return the stacks inside of a root, and the names of stacks with orphaned creations."""
    s = tables.stack
    nested: list[Stack] = []
    orphans: list[str] = []
    level = {root.id: root.name}
    seen = {root.id}  # A circle of damaged rows ends.
    while level:
        query = sa.select(s.c.id, s.c.parent_id, s.c.parent_resource_id).where(
            s.c.parent_id.in_(sorted(level)), s.c.deleted_at.is_(None)
        )
        children = conn.execute(query.order_by(s.c.id)).all()
        orphans += [level[parent] for _, parent, resource in children if resource is None]
        ids = [StackId(key) for key, _, resource in children if resource is not None and key not in seen]
        seen.update(ids)
        below = [stacks.get(conn, stack_id) for stack_id in ids]
        nested += below
        level = {stack.id: stack.name for stack in below}
    return nested, orphans


def _software(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Return the ids among these of configs and deployments."""
    present: set[str] = set()
    for table in (tables.software_config, tables.software_deployment):
        for chunk in bulk.chunks(ids):
            present.update(conn.execute(sa.select(table.c.id).where(table.c.id.in_(chunk))).scalars())
    return present


def _busy(conn: Connection, ids: Iterable[StackId]) -> set[StackId]:
    t = tables.task
    query = sa.select(t.c.stack_id).where(t.c.stack_id.in_(list(ids)), t.c.state.not_in(list(FINAL)))
    return {StackId(key) for key in conn.execute(query.distinct()).scalars()}


def _of(
    conn: Connection, table: sa.Table, column: str, ids: Sequence[StackId]
) -> Iterator[Mapping[str, typing.Any]]:
    """Yield the rows of a table that belong to these stacks, in the order of their keys."""
    key = next(iter(table.primary_key))
    for chunk in bulk.chunks(ids):
        yield from _maps(conn, sa.select(table).where(table.c[column].in_(chunk)).order_by(key))


def _maps(conn: Connection, query: sa.Select[typing.Any]) -> list[dict[str, typing.Any]]:
    return [dict(row) for row in conn.execute(query).mappings()]
