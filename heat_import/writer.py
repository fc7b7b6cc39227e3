"""Stores the rows of one tree in one transaction, by few statements."""

import typing
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..db import bulk, content, imported_keys, statements
from ..db.imported_keys import ImportedKey
from ..db.rows import GOAL, Event, Resource, Snapshot, Stack
from ..db.schema import tables
from ..shapes import Json
from .built import BuiltTree

_EVENT = [name for name in Event.__dataclass_fields__ if name not in ("id", "has_sinks")]
_IDS = 500


def present(conn: Connection, stack_ids: Sequence[str]) -> set[str]:
    """Return the ids among these that Stoker has already."""
    s = tables.stack
    return set(conn.execute(sa.select(s.c.id).where(s.c.id.in_(list(stack_ids)))).scalars())


def is_taken(conn: Connection, stack: Stack) -> bool:
    """Return whether another living root stack of its project has the name of a root stack."""
    s = tables.stack
    query = sa.select(s.c.id).where(s.c.project_id == stack.project_id, s.c.live_name == stack.name)
    return stack.live_name is not None and conn.execute(query).first() is not None


def store(conn: Connection, tree: BuiltTree, now: float) -> None:
    """Store a tree; all of it, or nothing where the transaction fails."""
    stacks = [built.stack for built in tree.root.all()]
    _store_contents(conn, tree, stacks, now)
    bulk.insert(conn, tables.stack, [_without(asdict(stack), "tags") for stack in stacks])
    tags = [
        {"stack_id": stack.id, "tag": tag, "position": position}
        for stack in stacks
        for position, tag in enumerate(dict.fromkeys(stack.tags))
    ]
    bulk.insert(conn, tables.stack_tag, tags)
    rows: list[Resource] = [*tree.resources(), *tree.copies]
    bulk.insert_new(conn, tables.resource, [vars(row) for row in rows])
    bulk.insert(conn, tables.snapshot, [asdict(snapshot) for snapshot in tree.snapshots])
    if tree.events:
        rows_of_events = [{name: getattr(event, name) for name in _EVENT} for event in tree.events]
        bulk.insert(conn, tables.event, rows_of_events, unless_taken="uuid")
    if tree.credential is not None:
        row = {"root_id": tree.root.stack.id, "body": tree.credential, "created_at": now}
        bulk.insert(conn, tables.credential, [row])
    bulk.insert(conn, tables.imported_key, [imported_keys.row_of(key) for key in _newest(tree.keys)])
    store_software(conn, tree)


def _newest(keys: Iterable[ImportedKey]) -> list[ImportedKey]:
    """Return the keys, each once: a replaced resource and its replacement may share one."""
    return list({key.id: key for key in keys}.values())


def store_software(conn: Connection, tree: BuiltTree) -> None:
    """Store the configs and deployments of a tree, and skip those that exist."""
    for table, items in (
        (tables.software_config, tree.configs),
        (tables.software_deployment, tree.deployments),
    ):
        insert_missing(conn, table, [asdict(item) for item in items])


def missing(conn: Connection, table: sa.Table, rows: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Return the rows whose ids do not exist."""
    existing: set[str] = set()
    for start in range(0, len(rows), _IDS):
        ids = [row["id"] for row in rows[start : start + _IDS]]
        existing.update(conn.execute(sa.select(table.c.id).where(table.c.id.in_(ids))).scalars())
    return [row for row in rows if row["id"] not in existing]


def insert_missing(conn: Connection, table: sa.Table, rows: Sequence[dict[str, Json]]) -> int:
    """Insert the rows whose ids do not exist; return their number."""
    new = missing(conn, table, rows)
    bulk.insert(conn, table, new)
    return len(new)


def _store_contents(conn: Connection, tree: BuiltTree, stacks: Sequence[Stack], now: float) -> None:
    """Store templates, environments and files, and which stack uses them.

    One that exists and is not fresh is marked as stored now, so that no purge takes it meanwhile.
    """
    c = tables.content
    fresh: set[str] = set()
    keys = sorted(tree.contents)
    for start in range(0, len(keys), _IDS):
        part = keys[start : start + _IDS]
        query = sa.select(c.c.id).where(c.c.id.in_(part), c.c.created_at > now - content.FRESH)
        fresh.update(conn.execute(query).scalars())
    for key in keys:
        if key not in fresh:
            row = {"id": key, "body": tree.contents[key], "created_at": now}
            conn.execute(statements.insert_or_update(conn, c, row, ["created_at"]))
    uses = [
        {"holder_id": holder, "content_id": key}
        for holder, used in [*_of_stacks(stacks), *_of_snapshots(tree.snapshots)]
        for key in sorted(used)
    ]
    bulk.insert(conn, tables.content_use, uses)


def _of_stacks(stacks: Iterable[Stack]) -> Iterable[tuple[str, set[str]]]:
    for stack in stacks:
        previous = stack.previous or {}
        used = {stack.template_id, stack.environment_id, stack.files_id}
        yield stack.id, used | {previous[name] for name in GOAL if name in previous}


def _of_snapshots(snapshots: Iterable[Snapshot]) -> Iterable[tuple[str, set[str]]]:
    for snapshot in snapshots:
        yield snapshot.id, {snapshot.goal[name] for name in GOAL}


def _without(row: dict[str, typing.Any], *names: str) -> dict[str, typing.Any]:
    return {key: value for key, value in row.items() if key not in names}
