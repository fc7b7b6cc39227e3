"""Many stacks, events, snapshots, configs and deployments, copied from those that requests have made."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from stoker.db import usage
from stoker.db.engine import Database
from stoker.db.schema import tables

EVENTS = 10
"""Events of one stack for each copy of a stack."""
SNAPSHOTS = 50
Json = typing.Any
Number = sa.ColumnElement[int]
Values = Mapping[str, Json]
_SERIES = {
    "sqlite": "WITH RECURSIVE series(n) AS (SELECT {0} UNION ALL SELECT n + 1 FROM series WHERE n < {1}) "
    "SELECT n FROM series",
    "postgresql": "SELECT generate_series({0}, {1}) AS n",
    "mysql": "SELECT seq AS n FROM seq_{0}_to_{1}",
}


class Original(typing.NamedTuple):
    """The ids of what is copied in a project; the digit begins the ids of the copies."""

    project_id: str
    stack_id: str
    config_id: str
    deployment_id: str
    snapshot_id: str
    digit: int


@dataclass(frozen=True)
class Block:
    """New copies.

    :ivar numbers: a column with the number of each, from `first` to `last`.
    """

    numbers: Number
    first: int
    last: int

    @classmethod
    def of(cls, dialect: str, first: int, last: int) -> "Block":
        """Return the block of some numbers."""
        text = sa.text(_SERIES[dialect].format(first, last)).columns(sa.column("n", sa.BigInteger))
        return cls(text.subquery("number").c.n, first, last)

    @property
    def quarter(self) -> int:
        return (self.last - self.first + 1) // 4

    @property
    def is_root(self) -> sa.ColumnElement[bool]:
        """Return whether a copy is a living top-level stack; the oldest and the newest are none."""
        first = self.first + self.quarter
        return self.numbers.between(first, first + 2 * self.quarter - 1)

    @property
    def root(self) -> Number:
        """Return the number of a living top-level stack, for a stack nested in it."""
        return self.first + self.quarter + self.numbers % (2 * self.quarter)

    @property
    def is_rare(self) -> sa.ColumnElement[bool]:
        """Return whether a copy is one of those that have failed and have a tag of their own."""
        return self.numbers % (4 if self.last <= 1000 else 1000) == 1


def grow(database: Database, size: int, new_size: int, *originals: Original) -> None:
    """Make more copies: of each project's stack, its configs and deployments, and events of the first stack.

    The oldest and the newest stacks are deleted ones and nested ones by turns, as where pipelines create and
    delete stacks; half of all are living top-level stacks.

    :param size: the number of each project's copies before.
    :param new_size: the number then.
    """
    block = Block.of(database.dialect, size + 1, new_size)
    of_stack = Block.of(database.dialect, EVENTS * size + 1, EVENTS * new_size)
    statements = [copy(block, original) for original in originals for copy in COPIES]
    statements.append(_events(of_stack, originals[0]))
    if size == 0:  # A stack has few, see [stacks] max_snapshots_per_stack.
        statements.append(_snapshots(Block.of(database.dialect, 1, SNAPSHOTS), originals[0]))
    for statement in statements:
        # Not by `write`, which a test's database may undo.
        with database.engine.begin() as conn:
            conn.execute(statement)
    for original in originals:
        with database.engine.begin() as conn:
            usage.recount(conn, original.project_id)
    with database.engine.connect() as conn:
        if database.dialect == "postgresql":
            conn.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM ANALYZE")
        elif database.dialect == "mysql":
            conn.exec_driver_sql(f"ANALYZE TABLE {', '.join(tables.metadata.tables)}").fetchall()


def copied(digit: int, number: int | Number) -> Json:
    """Return the id of a copy, of whatever kind."""
    if isinstance(number, int):
        return f"{digit}{number:07d}-0000-4000-8000-000000000000"
    padded = sa.func.substr(sa.cast(number + 10_000_000, sa.String(20)), 2, 7, type_=sa.String)
    return sa.literal(str(digit), sa.String) + padded + "-0000-4000-8000-000000000000"


def _copies(table: sa.Table, condition: sa.ColumnElement[bool], values: Values) -> sa.Insert:
    """Return the insert of copies of a row, with other values."""
    columns = [
        column
        for column in table.c
        if column.key in values or not (column.primary_key or column.computed is not None)
    ]
    selected = [sa.type_coerce(values.get(column.key, column), column.type) for column in columns]
    query = sa.select(*selected).select_from(table.join(_number_of(values), sa.true())).where(condition)
    return sa.insert(table).from_select([column.key for column in columns], query)


def _number_of(values: Values) -> typing.Any:
    return values["numbers"].table


def _later(block: Block) -> Json:
    return block.numbers / sa.literal(1e7, sa.Double)


def _stacks(block: Block, original: Original) -> sa.Insert:
    s = tables.stack.c
    name = sa.literal("c", sa.String) + sa.cast(block.numbers, sa.String(20))
    is_nested = sa.and_(sa.not_(block.is_root), block.numbers % 2 == 0)
    is_deleted = sa.and_(sa.not_(block.is_root), block.numbers % 2 == 1)
    root = copied(original.digit, block.root)
    own = copied(original.digit, block.numbers)
    values: Values = {
        "numbers": block.numbers,
        "id": own,
        "name": name,
        "live_name": sa.case((block.is_root, name)),
        "parent_id": sa.case((is_nested, root)),
        "root_id": sa.case((is_nested, root), else_=own),
        "traversal": own,
        "status": sa.case((block.is_rare, "FAILED"), else_="COMPLETE"),
        "created_at": s.created_at - 1 + _later(block),
        "updated_at": s.created_at - 1 + _later(block),
        "deleted_at": sa.case((is_deleted, s.created_at + _later(block))),
    }
    return _copies(tables.stack, s.id == original.stack_id, values)


def _tags(block: Block, original: Original) -> sa.Insert:
    s = tables.stack.c
    values: Values = {
        "numbers": block.numbers,
        "stack_id": copied(original.digit, block.numbers),
        "tag": sa.case((block.is_rare, "rare"), else_="common"),
        "position": sa.literal(0),
        "project_id": s.project_id,
        "created_at": s.created_at - 1 + _later(block),
    }
    names = [name for name in values if name != "numbers"]
    selected = [sa.type_coerce(values[name], tables.stack_tag.c[name].type) for name in names]
    source = tables.stack.join(_number_of(values), sa.true())
    query = sa.select(*selected).select_from(source).where(s.id == original.stack_id)
    return sa.insert(tables.stack_tag).from_select(names, query)


def _resources(block: Block, original: Original) -> sa.Insert:
    r = tables.resource.c
    values: Values = {
        "numbers": block.numbers,
        "id": 1_000_000_000 * original.digit + block.numbers,
        "stack_id": copied(original.digit, block.numbers),
    }
    is_first = sa.and_(r.stack_id == original.stack_id, r.name == "r", r.snapshot_id.is_(None))
    return _copies(tables.resource, is_first, values)


def _traversals(block: Block, original: Original) -> sa.Insert:
    t = tables.traversal.c
    first = sa.select(sa.func.min(t.id)).where(t.stack_id == original.stack_id).scalar_subquery()
    values: Values = {
        "numbers": block.numbers,
        "id": 1_000_000_000 * original.digit + block.numbers,
        "traversal": copied(original.digit, block.numbers),
        "stack_id": copied(original.digit, block.numbers),
    }
    return _copies(tables.traversal, t.id == first, values)


def _configs(block: Block, original: Original) -> sa.Insert:
    c = tables.software_config.c
    own = copied(original.digit, block.numbers)
    values: Values = {"numbers": block.numbers, "id": own, "created_at": c.created_at + _later(block)}
    return _copies(tables.software_config, c.id == original.config_id, values)


def _deployments(block: Block, original: Original) -> sa.Insert:
    d = tables.software_deployment.c
    own = copied(original.digit, block.numbers)
    values: Values = {
        "numbers": block.numbers,
        "id": own,
        "server_id": own,
        "created_at": d.created_at + _later(block),
    }
    return _copies(tables.software_deployment, d.id == original.deployment_id, values)


def _contents(block: Block, original: Original) -> sa.Insert:
    c = tables.content.c
    s = tables.stack.c
    first = sa.select(s.files_id).where(s.id == original.stack_id).scalar_subquery()
    values: Values = {"numbers": block.numbers, "id": copied(original.digit, block.numbers)}
    return _copies(tables.content, c.id == first, values)


def _uses(block: Block, original: Original) -> sa.Insert:
    u = tables.content_use.c
    s = tables.stack.c
    first = sa.select(s.template_id).where(s.id == original.stack_id).scalar_subquery()
    values: Values = {
        "numbers": block.numbers,
        "content_id": u.content_id,
        "holder_id": copied(original.digit, block.numbers),
    }
    is_first = sa.and_(u.holder_id == original.stack_id, u.content_id == first)
    return _copies(tables.content_use, is_first, values)


def _snapshots(block: Block, original: Original) -> sa.Insert:
    n = tables.snapshot.c
    own = copied(original.digit, block.numbers)
    values: Values = {
        "numbers": block.numbers,
        "id": own,
        "traversal": own,
        "created_at": n.created_at + _later(block),
    }
    return _copies(tables.snapshot, n.id == original.snapshot_id, values)


def _events(block: Block, original: Original) -> sa.Insert:
    """Copy the first event of a stack, for 500 resources in turn, and sometimes for the one that exists."""
    e = tables.event.c
    first = sa.select(sa.func.min(e.id)).where(e.stack_id == original.stack_id).scalar_subquery()
    name = sa.literal("r", sa.String) + sa.cast(block.numbers % 500, sa.String(20))
    values: Values = {
        "numbers": block.numbers,
        "uuid": copied(original.digit, block.numbers),
        "resource_name": sa.case((block.numbers % 20 == 0, "r"), else_=name),
        "at": e.at - 86400 + _later(block),
    }
    return _copies(tables.event, e.id == first, values)


COPIES = (_stacks, _tags, _resources, _traversals, _configs, _deployments, _contents, _uses)
