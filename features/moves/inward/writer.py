"""Stores the rows of one tree in one transaction, by few statements."""

import itertools
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ....db import (
    bulk,
    content,
    credentials,
    events,
    imported_keys,
    resources,
    snapshots,
    software,
    stacks,
)
from ....db.imported_keys import ImportedKey
from ....db.rows import Resource, Stack
from ....db.schema import tables
from .built import BuiltTree


def present(conn: Connection, stack_ids: Sequence[str]) -> set[str]:
    """Return the ids among these that Stoker has already."""
    s = tables.stack
    return set(conn.execute(sa.select(s.c.id).where(s.c.id.in_(list(stack_ids)))).scalars())


def is_taken(conn: Connection, stack: Stack) -> bool:
    """Return whether another living root stack of its project has the name of a root stack."""
    return stack.live_name is not None and stacks.is_taken(conn, stack.project_id, stack.name)


def store(conn: Connection, tree: BuiltTree, now: float) -> None:
    """Store a tree; all of it, or nothing where the transaction fails."""
    # Contents come before the stacks, and stacks before their resources, for the later rows name the earlier.
    content.put_by_key(conn, tree.contents, now)
    stacks.insert_many(conn, [built.stack for built in tree.root.all()])
    rows: list[Resource] = [*tree.resources(), *tree.copies]
    resources.insert_many(conn, rows)
    by_id = {built.stack.id: built.stack for built in tree.root.all()}
    for stack_id, of_stack in itertools.groupby(tree.snapshots, key=lambda snapshot: snapshot.stack_id):
        snapshots.insert_many(conn, by_id[stack_id], list(of_stack))
    events.add_many(conn, tree.events)
    if tree.credential is not None:
        root_id = tree.root.stack.id
        credentials.insert(conn, root_id, tree.credential, now, user_id=tree.credential_user)
    imported_keys.insert_many(conn, _newest(tree.keys))
    # Configs and deployments name the resources that own them.
    store_software(conn, tree)


def _newest(keys: Iterable[ImportedKey]) -> list[ImportedKey]:
    """Return the keys, each once: a replaced resource and its replacement may share one."""
    return list({key.key: key for key in keys}.values())


def store_software(conn: Connection, tree: BuiltTree) -> None:
    """Store the configs and deployments of a tree.

    An earlier run may have moved them as the project's own, because their stack could not be moved: then the
    tree takes them over, in the state that they have now.  Those of another resource stay what they are.
    """
    for rows in (tree.configs, tree.deployments):
        of_resources = [row for row in rows if row.resource_id is not None]
        software.delete_free(conn, of_resources, tree.root.stack.project_id)
        software.insert_missing(conn, rows)


def owned(conn: Connection, ids: Sequence[str], project_id: str) -> set[str]:
    """Return the ids among these of configs and deployments that others have: a resource, or a project."""
    others: set[str] = set()
    for table in (tables.software_config, tables.software_deployment):
        is_others = sa.or_(table.c.resource_id.is_not(None), table.c.project_id != project_id)
        for chunk in bulk.chunks(ids):
            query = sa.select(table.c.id).where(table.c.id.in_(chunk), is_others)
            others.update(conn.execute(query).scalars())
    return others
