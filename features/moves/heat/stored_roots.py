"""The root stacks that a selection names, as a database has them: Heat's, or Stoker's."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .selection import RootStack, Selection, names_in, resolved

Column = sa.ColumnElement[typing.Any]


@dataclass(frozen=True)
class RootColumns:
    """The columns by which root stacks are chosen.

    :ivar projects: the columns of all tables whose rows make a project known.
    :ivar conditions: what is true of the root stacks of the selection's projects.
    """

    id: Column
    name: Column
    project_id: Column
    deleted_at: Column
    projects: Sequence[Column]
    conditions: Sequence[sa.ColumnElement[bool]]


def resolve_stored(conn: Connection, selection: Selection, columns: RootColumns) -> Selection:
    """Return a selection in which stacks are named by their ids.

    :raises WrongSelection: what is named does not exist, or is not only one.
    """
    names = list(names_in(selection))
    roots = []
    if names:
        is_deleted = columns.deleted_at.is_not(None)
        query = sa.select(columns.id, columns.name, columns.project_id, is_deleted).where(
            sa.or_(columns.id.in_(names), columns.name.in_(names)), *columns.conditions
        )
        roots = [RootStack(*row) for row in conn.execute(query.order_by(columns.id))]
    projects: set[str] = set()
    for column in columns.projects:
        query = sa.select(column).where(column.in_(list(selection.projects))).distinct()
        projects.update(conn.execute(query).scalars())
    return resolved(selection, roots, projects)
