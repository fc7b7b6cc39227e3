"""Lists of stacks, with Heat's filters, sorting and paging."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables
from .errors import NotFound
from .ids import StackId
from .stacks import Stack, get, with_tags

SORT_KEYS = {
    "stack_name": "name",
    "name": "name",
    "id": "id",
    "creation_time": "created_at",
    "updated_time": "updated_at",
    "stack_status": "status",
    "status": "status",
}


@dataclass(frozen=True)
class StackQuery:
    """Which stacks, in which order.

    :ivar tenant: None: of all tenants.
    :ivar filters: column -> values, one of which must match.
    :ivar tags: all of them; tags_any: one of them; not_tags: not all of them; not_tags_any: none of them.
    :ivar marker: id of the last stack already seen.
    :ivar sort: (column, descending) pairs; the id is always the last key.
    """

    tenant: str | None
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    show_deleted: bool = False
    show_nested: bool = False
    limit: int | None = None
    marker: StackId | None = None
    sort: Sequence[tuple[str, bool]] = (("created_at", True),)


def list_stacks(conn: Connection, query: StackQuery) -> list[Stack]:
    """The stacks.

    :raises NotFound: the marker is not a stack, or not one of the tenant's.
    """
    s = tables.stack
    keys = [*query.sort, ("id", query.sort[-1][1] if query.sort else False)]
    wanted = sa.select(s).where(*_conditions(query))
    if query.marker is not None:
        last = get(conn, query.marker)
        if query.tenant not in (None, last.tenant):
            raise NotFound("Stack", query.marker)
        wanted = wanted.where(_after(last, keys))
    for column, descending in keys:
        value = s.c[column]
        # NULLs sort differently on each database; here they are the smallest everywhere.
        if value.nullable:
            flag = sa.case((value.is_(None), 0), else_=1)
            wanted = wanted.order_by(flag.desc() if descending else flag.asc())
        wanted = wanted.order_by(value.desc() if descending else value.asc())
    if query.limit is not None:
        wanted = wanted.limit(query.limit)
    return with_tags(conn, [dict(row) for row in conn.execute(wanted).mappings()])


def count_stacks(conn: Connection, query: StackQuery) -> int:
    """How many there are, whatever the limit and the marker."""
    counted = sa.select(sa.func.count()).select_from(tables.stack).where(*_conditions(query))
    return int(conn.execute(counted).scalar_one())


def _after(last: Stack, keys: Sequence[tuple[str, bool]]) -> sa.ColumnElement[bool]:
    """What comes behind `last` in the order of `keys`."""
    s = tables.stack
    behind: list[sa.ColumnElement[bool]] = []
    equal: list[sa.ColumnElement[bool]] = []
    for column, descending in keys:
        value = getattr(last, column)
        behind.append(sa.and_(*equal, _beyond(s.c[column], value, descending)))
        equal.append(s.c[column].is_(None) if value is None else s.c[column] == value)
    return sa.or_(*behind)


def _beyond(column: sa.Column[typing.Any], value: typing.Any, descending: bool) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    beyond: sa.ColumnElement[bool] = column < value if descending else column > value
    if descending and column.nullable:
        return sa.or_(beyond, column.is_(None))
    return beyond


def _conditions(query: StackQuery) -> list[sa.ColumnElement[bool]]:
    s = tables.stack
    found: list[sa.ColumnElement[bool]] = []
    if query.tenant is not None:
        found.append(s.c.tenant == query.tenant)
    if not query.show_deleted:
        found.append(s.c.deleted_at.is_(None))
    if not query.show_nested:
        found.append(s.c.parent_id.is_(None))
    for column, values in query.filters.items():
        found.append(s.c[column].in_(list(values)))
    found.extend(_tagged(tag) for tag in query.tags)
    if query.tags_any:
        found.append(_tagged(*query.tags_any))
    if query.not_tags:
        found.append(sa.not_(sa.and_(*(_tagged(tag) for tag in query.not_tags))))
    if query.not_tags_any:
        found.append(sa.not_(_tagged(*query.not_tags_any)))
    return found


def _tagged(*tags: str) -> sa.ColumnElement[bool]:
    t = tables.stack_tag
    return sa.exists().where(t.c.stack_id == tables.stack.c.id, t.c.tag.in_(tags))
