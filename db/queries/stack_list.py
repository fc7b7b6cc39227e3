"""Lists of stacks, with Heat's filters, sorting and paging."""

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..bulk import Unindexed
from ..errors import NotFound
from ..ids import StackId
from ..rows import ListedStack
from ..schema import tables
from ..stacks import S, tagged

SORT_KEYS = {
    "stack_name": "name",
    "name": "name",
    "id": "id",
    "creation_time": "created_at",
    "updated_time": "updated_at",
    "stack_status": "status",
    "status": "status",
}
NESTED = 1
DELETED = 2
"""Parts of a stack's `list_group`: 0 is a living top-level stack."""
TEXT = 1000
"""Characters of a stack's description and reason in a list without details."""
_TEXTS = ("description", "reason")


@dataclass(frozen=True)
class StackQuery:
    """A selection of stacks, and their order.

    :ivar project_id: id of the project; None: all projects.
    :ivar filters: column -> values, one of which must match.
    :ivar tags: all of them; tags_any: one of them; not_tags: not all of them; not_tags_any: none of them.
    :ivar hidden_tags: tags of the operator; a stack with one of them is left out.
    :ivar marker: id of the last stack already seen.
    :ivar sort: (column, descending) pairs; the id is always the last key.
    """

    project_id: str | None
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    hidden_tags: Sequence[str] = ()
    show_deleted: bool = False
    show_nested: bool = False
    limit: int | None = None
    marker: StackId | None = None
    sort: Sequence[tuple[str, bool]] = (("created_at", True),)


Columns = Mapping[str, sa.ColumnElement[typing.Any]]
"""Columns of an order that stand for those of a stack, by their names."""


def list_stacks(conn: Connection, query: StackQuery, kind: type[S]) -> list[S]:
    """Return the stacks.

    :param kind: the type of the rows; no other columns are read.
    :raises NotFound: the marker is not a stack, or belongs to another project.
    """
    s = tables.stack
    conditions = _conditions(query, by_tag=_led_by_tag(query))
    if query.marker is not None:
        last = get_listed(conn, query.marker)
        if query.project_id not in (None, last.project_id):
            raise NotFound("Stack", query.marker)
        conditions.append(_after(last, _keys(query), _order_columns(query)))
    if _is_merged(query):
        statement = _merged(query, conditions, kind)
    else:
        statement = _ordered(_select(kind).where(*conditions, _is_shown(query)), query, _order_columns(query))
    if _led_by_tag(query):
        statement = statement.join(tables.stack_tag, tables.stack_tag.c.stack_id == s.c.id)
    if _led_by_name(query):
        statement = statement.with_hint(s, "USE INDEX (ix_stack_name, PRIMARY)", "mysql")
        statement = statement.with_hint(s, "USE INDEX (ix_stack_name, PRIMARY)", "mariadb")
    rows = conn.execute(statement)
    names = tuple(rows.keys())
    # A dictionary for each row takes less time than a mapping of SQLAlchemy's.
    return tagged(conn, [kind(**dict(zip(names, row, strict=True))) for row in rows.all()])


def _ordered(statement: sa.Select[typing.Any], query: StackQuery, order: Columns) -> sa.Select[typing.Any]:
    """Return the statement with the order and the limit of the query.

    :param order: columns that stand for those of the stack.
    """
    for name, descending in _keys(query):
        value = order.get(name, tables.stack.c[name])
        # NULLs sort differently on each database; here they are the smallest everywhere.
        if tables.stack.c[name].nullable:
            flag = sa.case((value.is_(None), 0), else_=1)
            statement = statement.order_by(flag.desc() if descending else flag.asc())
        statement = statement.order_by(value.desc() if descending else value.asc())
    return statement.limit(query.limit)


def _groups(query: StackQuery) -> list[int]:
    """Return the values of `list_group` of the stacks that a list shows."""
    groups = (0, NESTED) if query.show_nested else (0,)
    return [group + deleted for deleted in ((0, DELETED) if query.show_deleted else (0,)) for group in groups]


def _is_shown(query: StackQuery) -> sa.ColumnElement[bool]:
    groups = _groups(query)
    column: sa.ColumnElement[int] = tables.stack.c.list_group
    if _led_by_tag(query) or _led_by_parent(query):
        column = Unindexed(column)
    return column == groups[0] if len(groups) == 1 else column.in_(groups)


def _is_merged(query: StackQuery) -> bool:
    """Return whether a list is merged from the first stacks of each group.

    For the indexes on a project's groups have an order within a group only: for a page of two groups, taken
    at once, a database would sort all stacks of both.
    """
    is_led = _led_by_tag(query) or _led_by_name(query) or _led_by_parent(query)
    return query.limit is not None and query.project_id is not None and len(_groups(query)) > 1 and not is_led


def _merged(
    query: StackQuery, conditions: Sequence[sa.ColumnElement[bool]], kind: type[ListedStack]
) -> sa.Select[typing.Any]:
    group = tables.stack.c.list_group
    firsts = (
        _ordered(_select(kind).where(*conditions, group == number), query, {}).subquery()
        for number in _groups(query)
    )
    page = sa.union_all(*(sa.select(first) for first in firsts)).subquery("page")
    return _ordered(sa.select(page), query, dict(page.c))


def _keys(query: StackQuery) -> list[tuple[str, bool]]:
    """Return each column once, at its first place, because a second time it decides nothing."""
    first: dict[str, tuple[str, bool]] = {}
    for key in (*query.sort, ("id", query.sort[-1][1] if query.sort else False)):
        first.setdefault(key[0], key)
    return list(first.values())


def _timeout() -> sa.ColumnElement[int]:
    """Return the timeout of a stack: a nested one has its root's."""
    s = tables.stack.c
    root = tables.stack.alias("root")
    of_root = sa.select(root.c.timeout_mins).where(root.c.id == s.root_id).scalar_subquery()
    return sa.case((s.parent_id.is_(None), s.timeout_mins), else_=of_root).label("timeout_mins")


_TIMEOUT = _timeout()


def _select(kind: type[ListedStack]) -> sa.Select[typing.Any]:
    texts = _TEXTS if kind is ListedStack else ()
    names = {part.name for part in fields(kind)}.difference(texts, ("timeout_mins",))
    columns = [column for column in tables.STACK_COLUMNS if column.key in names]
    cut = [sa.func.substr(tables.stack.c[name], 1, TEXT).label(name) for name in texts]
    return sa.select(_TIMEOUT, *columns, *cut)


def get_listed(conn: Connection, stack_id: StackId) -> ListedStack:
    """Return a stack as lists show it, without its tags.

    :raises NotFound: no such stack, not even a deleted one that is still stored.
    """
    rows = get_many(conn, [stack_id])
    if stack_id not in rows:
        raise NotFound("Stack", stack_id)
    return rows[stack_id]


def get_many(conn: Connection, stack_ids: Iterable[StackId]) -> dict[StackId, ListedStack]:
    """Return the stacks that exist as lists show them, by id, without their tags."""
    listed: dict[StackId, ListedStack] = {}
    ids = sorted(set(stack_ids))
    for start in range(0, len(ids), 500):
        part = tables.stack.c.id.in_(ids[start : start + 500])
        rows = conn.execute(_select(ListedStack).where(part)).mappings()
        listed.update((row["id"], ListedStack(**row)) for row in rows)
    return listed


def find_by_name(conn: Connection, project_id: str, name: str) -> ListedStack:
    """Return the living stack of that name: the top-level one, else the oldest nested one; without its tags.

    :raises NotFound: there is none; a deleted one is found by its id only.
    """
    s = tables.stack
    of_project = _select(ListedStack).where(s.c.project_id == project_id)
    nested = of_project.where(s.c.name == name, s.c.list_group == NESTED)
    for statement in (of_project.where(s.c.live_name == name), nested.order_by(s.c.created_at, s.c.id)):
        if (row := conn.execute(statement.limit(1)).mappings().first()) is not None:
            return ListedStack(**row)
    raise NotFound("Stack", name)


def count_stacks(conn: Connection, query: StackQuery) -> int:
    """Return how many stacks match, without regard to the limit and the marker."""
    is_it = (*_conditions(query), _is_shown(query))
    counted = sa.select(sa.func.count()).select_from(tables.stack).where(*is_it)
    return int(conn.execute(counted).scalar_one())


def count_by_state(conn: Connection, query: StackQuery) -> dict[tuple[str, str], int]:
    """Return how many stacks match, by action and status, without regard to the limit and the marker."""
    s = tables.stack
    is_it = (*_conditions(query), _is_shown(query))
    counted = sa.select(s.c.action, s.c.status, sa.func.count()).where(*is_it)
    rows = conn.execute(counted.group_by(s.c.action, s.c.status))
    return {(action, status): int(count) for action, status, count in rows}


def _led_by_tag(query: StackQuery) -> bool:
    """Return whether the list goes by the index on the stacks of a project with a tag, the newest first."""
    is_by_age = _keys(query)[0][0] == "created_at"
    return query.project_id is not None and is_by_age and bool(query.tags or len(query.tags_any) == 1)


def _led_by_name(query: StackQuery) -> bool:
    """Return whether the list goes by the index on names: few stacks of a project have one of the names."""
    return query.project_id is not None and "name" in query.filters and not _led_by_tag(query)


def _led_by_parent(query: StackQuery) -> bool:
    """Return whether the list goes by the index on the stacks that are nested in a stack directly."""
    return "parent_id" in query.filters and not _led_by_tag(query)


def _order_columns(query: StackQuery) -> Columns:
    if _led_by_tag(query):
        return {"created_at": tables.stack_tag.c.created_at, "id": tables.stack_tag.c.stack_id}
    if _led_by_name(query) or _led_by_parent(query):
        return {name: Unindexed(tables.stack.c[name]) for name in ("created_at", "id")}
    return {}


def _after(last: ListedStack, keys: Sequence[tuple[str, bool]], order: Columns) -> sa.ColumnElement[bool]:
    """Return the condition for the stacks after `last` in the order of `keys`."""
    s = tables.stack
    later: list[sa.ColumnElement[bool]] = []
    equal: list[sa.ColumnElement[bool]] = []
    for name, descending in keys:
        value = getattr(last, name)
        column = order.get(name, s.c[name])
        later.append(sa.and_(*equal, _beyond(column, value, descending, nullable=bool(s.c[name].nullable))))
        equal.append(column.is_(None) if value is None else column == value)
    first, descending = keys[0]
    value = getattr(last, first)
    if value is None or s.c[first].nullable:
        return sa.or_(*later)
    # It says nothing new, but by it the databases begin in the index where the last page has ended.
    column = order.get(first, s.c[first])
    return sa.and_(column <= value if descending else column >= value, sa.or_(*later))


def _beyond(
    column: sa.ColumnElement[typing.Any], value: typing.Any, descending: bool, *, nullable: bool
) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    beyond: sa.ColumnElement[bool] = column < value if descending else column > value
    if descending and nullable:
        return sa.or_(beyond, column.is_(None))
    return beyond


def _conditions(query: StackQuery, *, by_tag: bool = False) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of a query, but for the groups that it shows.

    :param by_tag: whether the stacks are joined with their tags, so that the first one named leads to them.
    """
    s = tables.stack
    t = tables.stack_tag
    conditions: list[sa.ColumnElement[bool]] = []
    if by_tag:
        # Not the stack's own project, which is the same: else SQLite would go through all stacks of it.
        conditions += [t.c.project_id == query.project_id, t.c.tag == (query.tags or query.tags_any)[0]]
    elif query.project_id is not None:
        owner = s.c.project_id
        conditions.append((Unindexed(owner) if _led_by_parent(query) else owner) == query.project_id)
    for column, values in query.filters.items():
        conditions.append(s.c[column].in_(list(values)))
    return conditions + _tag_conditions(query, by_tag=by_tag)


def _tag_conditions(query: StackQuery, *, by_tag: bool) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if query.tags and not (by_tag and len(query.tags) == 1):
        conditions.append(_all_of(query.tags))
    if query.tags_any and not (by_tag and not query.tags):
        conditions.append(_one_of(query.tags_any))
    if query.not_tags:
        conditions.append(sa.not_(_all_of(query.not_tags)))
    if query.not_tags_any:
        conditions.append(sa.not_(_one_of(query.not_tags_any)))
    if query.hidden_tags:
        conditions.append(sa.not_(_one_of(query.hidden_tags)))
    return conditions


_TAG = tables.stack_tag.alias("of_stack")
"""Not the table itself, by which a list may go already."""


def _one_of(tags: Sequence[str]) -> sa.ColumnElement[bool]:
    t = _TAG.c
    return sa.exists().where(t.stack_id == tables.stack.c.id, t.tag.in_(tags))


def _all_of(tags: Sequence[str]) -> sa.ColumnElement[bool]:
    """Count them, whose expression stays the same however many they are."""
    t = _TAG.c
    names = sorted(set(tags))
    count = sa.select(sa.func.count()).where(t.stack_id == tables.stack.c.id, t.tag.in_(names))
    return count.scalar_subquery() == len(names)
