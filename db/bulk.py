"""Statements for many rows at once, in each dialect, and several writes as one statement.

========== ============================== ========================= ================================
           ids                            insert                    update
========== ============================== ========================= ================================
PostgreSQL ``= ANY(array)``               from a list of records    from a list of records
MariaDB    a list                         a list of VALUES          joined with a list of SELECTs
SQLite     from ``json_each(array)``      one execution for each    one execution for each
========== ============================== ========================= ================================

A single id is compared on each of them.

On PostgreSQL and SQLite the text of such a statement does not depend on the number of rows.  So it is
compiled once, and the server plans it once for each connection.  The records are one parameter, a JSON text:
psycopg takes longer to convert parameters than the server takes to execute the statement.

A link of a chain is a transaction of few rows.  There each statement costs more than its rows do: the time
of SQLAlchemy, of the driver, and of one way to the server and back.  So `run` makes one statement of those
that need no answer.
"""

import functools
import itertools
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from sqlalchemy.engine import Connection, CursorResult, Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal

from .errors import RetryTransaction
from .schema.column_types import ArrayText, JsonArray
from .statements import dialect_module

BATCH = 500
"""Ids in one list: far below all limits of variables, and still one round trip for most commits."""
INSERTED_TOGETHER = 1000
"""Rows in one insert: a connection's buffer keeps the size of the longest statement that it has sent."""
FEW = 100
"""Rows of several tables that are inserted together: of more, their own cost exceeds that of statements."""
MARIADB_BATCH = 100
"""Rows in one update on MariaDB, whose statement carries all values as text."""
Id = typing.TypeVar("Id", int, str)
Row = Mapping[str, typing.Any]
NewRows = Mapping[sa.Table, Iterable[Row]]
"""Rows to insert, by their tables: those of a table all have the same columns."""
Fence = tuple[tuple[str, typing.Any], ...]
NO_FENCE: Mapping[str, typing.Any] = {}
RECORDS = "records"
"""The parameter that has the rows of a statement on PostgreSQL; several of them have one for each table."""


def chunks(ids: Iterable[Id]) -> list[list[Id]]:
    """Return the ids in ascending order, in lists of at most BATCH.

    All writers go through rows in this order, so two of them seldom wait for each other's locks: where
    PostgreSQL finds many rows by a bitmap, one has to be run again.
    """
    ordered = sorted(set(ids))
    return [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]


WriteStatement = sa.Insert | sa.Update | sa.Delete


class Write(typing.NamedTuple):
    """A statement that writes.

    :ivar statement: one of few, because it is kept in a cache.
    :ivar parameters: their names are not those of columns.
    """

    statement: WriteStatement
    parameters: Mapping[str, typing.Any] | Sequence[Mapping[str, typing.Any]]


Writes = list[Write]
"""Writes of a transaction that are put off until a statement whose result it needs.

No two of them concern the same row, and the transaction has locked the rows that they change.  For on
PostgreSQL all parts of a statement see the rows as they were before it, and their order is not defined.  Who
reads or changes such a row runs the writes before.
"""


def run(conn: Connection, writes: Writes) -> CursorResult[typing.Any] | None:
    """Run writes, on PostgreSQL as one statement, and empty the list; return the result of the last one."""
    joins = conn.dialect.name == "postgresql"
    result: CursorResult[typing.Any] | None = None
    while writes:
        count = _joinable(writes) if joins else 1
        chunk = [writes.pop(0) for _ in range(count)]
        if count == 1:
            result = conn.execute(*chunk[0])
        else:
            parameters = {name: value for write in chunk for name, value in named(write).items()}
            result = conn.execute(_joined(*(write.statement for write in chunk)), parameters)
    return result


def _joinable(writes: Writes) -> int:
    """Return how many of the first writes have no parameter of the same name with another value."""
    values: dict[str, typing.Any] = {}
    for count, write in enumerate(writes):
        for name, value in named(write).items():
            if values.setdefault(name, value) != value:
                return count
    return len(writes)


def named(write: Write) -> Mapping[str, typing.Any]:
    """Return the parameters of a write on PostgreSQL, by their names."""
    assert isinstance(write.parameters, Mapping), "on PostgreSQL the rows of an insert are one parameter"
    return write.parameters


@functools.cache
def _joined(*statements: WriteStatement) -> WriteStatement:
    *others, last = statements
    return last.add_cte(*(other.cte(f"write_{number}") for number, other in enumerate(others)))


Statement = typing.TypeVar("Statement", bound=sa.Insert | sa.Update | sa.Delete | sa.Select[typing.Any])


def by_ids(
    statement: Statement, values: Mapping[str, typing.Any]
) -> tuple[Statement, Mapping[str, typing.Any]]:
    """Return a statement with its parameters; each list of one id that a `OneOf` has is compared as that id.

    A server knows that one id finds one row.  A list may have any length: PostgreSQL may plan the statement
    again at each execution, which takes longer than the rest of it.

    :param statement: one of few, because the forms of it are kept.
    """
    single = frozenset(name for name in lists_of(statement) if len(values[name]) == 1)
    if not single:
        return statement, values
    return _compared(statement, single), {**values, **{name: values[name][0] for name in single}}


def in_chunks(
    conn: Connection, statement: Statement, ids: Iterable[Id], **values: typing.Any
) -> list[CursorResult[typing.Any]]:
    """Execute a statement for the ids, in ascending order; return the result of each chunk of them.

    :param statement: one of few; its list is named ``ids``.
    """
    return [conn.execute(*by_ids(statement, {"ids": chunk, **values})) for chunk in chunks(ids)]


def put_off(writes: Writes, statement: WriteStatement, ids: Iterable[Id], **values: typing.Any) -> None:
    """Put off a statement for the ids, one write for each chunk of them.

    :param statement: one of few; its list is named ``ids``.
    """
    writes += [Write(*by_ids(statement, {"ids": chunk, **values})) for chunk in chunks(ids)]


@functools.cache
def lists_of(statement: sa.ClauseElement) -> frozenset[str]:
    """Return the names of the lists that the conditions of a statement have."""
    return frozenset(each.name for each in visitors.iterate(statement) if isinstance(each, OneOf))


@functools.cache
def _compared(statement: Statement, names: frozenset[str]) -> Statement:
    def compare(element: typing.Any, **_: object) -> typing.Any:
        if isinstance(element, OneOf) and element.name in names:
            return element.column == sa.bindparam(element.name, type_=element.column.type)
        return None

    return typing.cast(Statement, visitors.replacement_traverse(statement, {}, compare))


class OneOf(sa.ColumnElement[bool]):
    """The condition that a column has one of the values of the list that an execution passes.

    :param name: the name of the execution's parameter.
    """

    _traverse_internals = [  # noqa: RUF012  # type: ignore[misc]
        ("column", InternalTraversal.dp_clauseelement),
        ("name", InternalTraversal.dp_string),
    ]
    inherit_cache = True
    type = sa.Boolean()

    def __init__(self, column: sa.ColumnElement[typing.Any], name: str = "ids") -> None:
        self.column = column
        self.name = name

    def self_group(self, against: object = None) -> "OneOf":
        return self


@compiles(OneOf)
def _list(element: OneOf, compiler: SQLCompiler, **options: typing.Any) -> str:
    values: sa.BindParameter[typing.Any] = sa.bindparam(element.name, expanding=True)
    return compiler.process(element.column.in_(values), **options)


class Unindexed(sa.ColumnElement[typing.Any]):
    """A column in an ORDER BY for which SQLite goes through no index.

    SQLite (3.40 to 3.50) knows no numbers of rows.  So it prefers an index that gives the order of a list to
    one that leads to the few rows of a filter, and reads all others.
    """

    _traverse_internals = [  # noqa: RUF012  # type: ignore[misc]
        ("column", InternalTraversal.dp_clauseelement),
    ]
    inherit_cache = True

    def __init__(self, column: sa.ColumnElement[typing.Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(Unindexed)
def _plain(element: Unindexed, compiler: SQLCompiler, **options: typing.Any) -> str:
    return compiler.process(element.column, **options)


@compiles(Unindexed, "sqlite")
def _unary_plus(element: Unindexed, compiler: SQLCompiler, **options: typing.Any) -> str:
    return f"+{compiler.process(element.column, **options)}"


@compiles(OneOf, "postgresql")
def _any(element: OneOf, compiler: SQLCompiler, **options: typing.Any) -> str:
    values: sa.BindParameter[typing.Any] = sa.bindparam(element.name, type_=ArrayText())
    # Of a subquery the planner expects as much each time, so it plans the statement once.
    array = sa.cast(sa.select(values).scalar_subquery(), sa.ARRAY(element.column.type))
    return compiler.process(element.column == sa.func.any(array), **options)


@compiles(OneOf, "sqlite")
def _json_each(element: OneOf, compiler: SQLCompiler, **options: typing.Any) -> str:
    values: sa.BindParameter[typing.Any] = sa.bindparam(element.name, type_=JsonArray())
    column = compiler.process(element.column, **options)
    return f"{column} IN (SELECT value FROM json_each({compiler.process(values, **options)}))"


def insert(conn: Connection, table: sa.Table, rows: Iterable[Row]) -> None:
    """Insert rows, all with the same columns, in their order; those of an iterator are made as needed."""
    for write in _insertions_of_many(conn, {table: rows}):
        conn.execute(*write)


def insertion(
    conn: Connection, table: sa.Table, rows: Sequence[Row], *, unless_taken: str | None = None
) -> Write:
    """Return the write that inserts rows, at least one, all with the same columns, in their order.

    :param unless_taken: the name of a column with a unique index; a row whose value exists there is skipped.
    """
    if conn.dialect.name == "postgresql":
        return Write(_insert_records(table, tuple(rows[0]), unless_taken), _records(conn, table, rows))
    if unless_taken is None:
        return Write(_insert(table), rows)
    return Write(_insert_unless_taken(conn.dialect.name, table, unless_taken), rows)


def insertions(conn: Connection, rows: NewRows) -> Iterator[Write]:
    """Return the writes that insert rows of several tables: on PostgreSQL one write if they are few.

    Such a write counts the rows of the first table, which has some.  Its parts are executed in no order, so
    no row may need another one to exist.

    :param rows: those of an iterator are made as needed.
    """
    remaining = {table: iter(of_table) for table, of_table in rows.items()}
    first = {table: list(itertools.islice(of_table, FEW + 1)) for table, of_table in remaining.items()}
    if sum(map(len, first.values())) > FEW:
        return _insertions_of_many(
            conn, {table: itertools.chain(first[table], remaining[table]) for table in remaining}
        )
    few = {table: of_table for table, of_table in first.items() if of_table}
    if few and conn.dialect.name == "postgresql":
        return iter([_insertion_of_few(conn, few)])
    return iter([insertion(conn, table, of_table) for table, of_table in few.items()])


def _insertions_of_many(conn: Connection, rows: NewRows) -> Iterator[Write]:
    for table, of_table in rows.items():
        remaining = iter(of_table)
        while chunk := list(itertools.islice(remaining, INSERTED_TOGETHER)):
            yield insertion(conn, table, chunk)


def _insertion_of_few(conn: Connection, rows: Mapping[sa.Table, Sequence[Row]]) -> Write:
    if len(rows) == 1:
        return insertion(conn, *next(iter(rows.items())))
    statements: list[WriteStatement] = []
    parameters: dict[str, typing.Any] = {}
    for table, of_table in rows.items():
        name = f"{RECORDS}_{table.name}"
        statements.insert(0, _insert_records(table, tuple(of_table[0]), None, name))
        parameters |= _records(conn, table, of_table, name)
    return Write(_joined(*statements), parameters)


@functools.cache
def _insert(table: sa.Table) -> sa.Insert:
    return sa.insert(table).inline()


def insert_new(conn: Connection, table: sa.Table, rows: Iterable[Row]) -> None:
    """Insert rows whose ids this transaction has made; see id_source.py.

    :raises RetryTransaction: a row has one of them.
    """
    insert_new_together(conn, {table: rows})


def insert_new_together(conn: Connection, rows: NewRows) -> None:
    """Insert rows of several tables like `insert_new`; see `insertions`.

    :raises RetryTransaction: a row has an id of one of them.
    """
    execute_new(conn, insertions(conn, rows))


def execute_new(conn: Connection, writes: Iterable[Write]) -> None:
    """Insert rows whose ids this transaction has made; see id_source.py.

    :raises RetryTransaction: a row has one of them.
    """
    try:
        for write in writes:
            conn.execute(*write)
    except oslo_errors.DBDuplicateEntry as error:
        raise RetryTransaction from error


@functools.cache
def _insert_unless_taken(dialect: str, table: sa.Table, key: str) -> sa.Insert:
    statement: typing.Any = dialect_module(dialect).insert(table)
    if dialect == "sqlite":
        statement = statement.on_conflict_do_nothing(index_elements=[key])
    else:
        # Not INSERT IGNORE: that turns every error into a warning.
        statement = statement.on_duplicate_key_update({key: table.c[key]})
    return typing.cast(sa.Insert, statement)


def update(
    conn: Connection, table: sa.Table, rows: Sequence[Row], *, only: Mapping[str, typing.Any] = NO_FENCE
) -> int:
    """Set columns of rows by their ids; all rows have the same columns, ``id`` among them.

    The rows are locked in the order of their ids, as far as the database keeps to the order given.

    :param only: values of columns that a row must have to be changed.
    :returns: the number of changed rows.
    """
    if not rows:
        return 0
    ordered = _in_order(rows)
    names = tuple(ordered[0])
    fence = tuple(sorted(only.items()))
    if conn.dialect.name == "postgresql":
        return conn.execute(*_update_of(conn, table, ordered, fence)).rowcount
    if conn.dialect.name == "sqlite":
        values = [{_parameter(name): row[name] for name in names} for row in ordered]
        return conn.execute(_update_one(table, names, fence), values).rowcount
    parts = (ordered[start : start + MARIADB_BATCH] for start in range(0, len(ordered), MARIADB_BATCH))
    return sum(_update_joined(conn, table, chunk, fence) for chunk in parts)


def update_records(conn: Connection, table: sa.Table, rows: Sequence[Row]) -> Write:
    """Return the write that sets columns of rows on PostgreSQL; see `update`."""
    return _update_of(conn, table, _in_order(rows), ())


def _in_order(rows: Sequence[Row]) -> Sequence[Row]:
    return sorted(rows, key=lambda row: row["id"])


def _update_of(conn: Connection, table: sa.Table, ordered: Sequence[Row], fence: Fence) -> Write:
    ids = {"record_ids": [row["id"] for row in ordered]}
    statement = _update_records(table, tuple(ordered[0]), fence)
    return Write(*by_ids(statement, {**_records(conn, table, ordered), **ids}))


def _parameter(name: str) -> str:
    """Return the parameter of a column's new values; SQLAlchemy reserves the column's own name."""
    return f"new_{name}"


def _records(
    conn: Connection, table: sa.Table, rows: Sequence[Row], parameter: str = RECORDS
) -> dict[str, str]:
    """Return the parameter of `_record_set`: rows that have the same columns.

    The copies of few rows exist at the same time: those of a large stack would be most of the memory that its
    creation takes.
    """
    processors = _processors(conn.dialect, table, tuple(rows[0]))
    texts = ["["]
    for start in range(0, len(rows), BATCH):
        records = [
            {name: row[name] if process is None else process(row[name]) for name, process in processors}
            for row in rows[start : start + BATCH]
        ]
        texts += ("," if start else "", _ENCODE(records)[1:-1])
    texts.append("]")
    return {parameter: "".join(texts)}


_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


@functools.cache
def _processors(
    dialect: Dialect, table: sa.Table, names: tuple[str, ...]
) -> list[tuple[str, Callable[[typing.Any], typing.Any] | None]]:
    """Return the columns, each with the function that makes a value of it one that is stored."""
    types = ((name, table.c[name].type.dialect_impl(dialect)) for name in names)
    return [(name, column_type.bind_processor(dialect)) for name, column_type in types]


def _record_set(table: sa.Table, names: tuple[str, ...], parameter: str = RECORDS) -> sa.TableValuedAlias:
    """Return the rows that a JSON text has, with columns named like the table's."""
    records: sa.BindParameter[str] = sa.bindparam(parameter, type_=sa.Text)
    columns = [sa.column(name, table.c[name].type) for name in names]
    record_set = sa.func.json_to_recordset(sa.cast(records, sa.JSON)).table_valued(*columns)
    return record_set.render_derived(name="new_rows", with_types=True)


@functools.cache
def _insert_records(
    table: sa.Table, names: tuple[str, ...], unless_taken: str | None, parameter: str = RECORDS
) -> sa.Insert:
    source = _record_set(table, names, parameter)
    query = sa.select(*(source.c[name] for name in names))
    statement: typing.Any = dialect_module("postgresql").insert(table)
    statement = statement.from_select([table.c[name] for name in names], query, include_defaults=False)
    if unless_taken is not None:
        statement = statement.on_conflict_do_nothing(index_elements=[unless_taken])
    return typing.cast(sa.Insert, statement)


@functools.cache
def _update_records(table: sa.Table, names: tuple[str, ...], fence: Fence) -> sa.Update:
    source = _record_set(table, names)
    values = {table.c[name]: source.c[name] for name in names if name != "id"}
    conditions = [table.c.id == source.c.id, *(table.c[name] == value for name, value in fence)]
    # PostgreSQL expects a hundred records: without the ids it reads all of a small table.
    return sa.update(table).where(OneOf(table.c.id, "record_ids"), *conditions).values(values)


@functools.cache
def _update_one(table: sa.Table, names: tuple[str, ...], fence: Fence) -> sa.Update:
    values: dict[typing.Any, typing.Any] = {
        table.c[name]: sa.bindparam(_parameter(name)) for name in names if name != "id"
    }
    conditions = [table.c.id == sa.bindparam(_parameter("id"))]
    conditions += [table.c[name] == value for name, value in fence]
    return sa.update(table).where(*conditions).values(values)


def _update_joined(conn: Connection, table: sa.Table, rows: Sequence[Row], fence: Fence) -> int:
    """Update rows on MariaDB, whose driver would send a statement for each.

    The join begins with the new values.  With the table first it would read, and lock, all rows of that.
    """
    names = tuple(rows[0])
    columns = [table.c[name] for name in names]
    processors = [column.type.dialect_impl(conn.dialect).bind_processor(conn.dialect) for column in columns]
    first = ", ".join(f"%s AS `{column.name}`" for column in columns)
    others = f" UNION ALL SELECT {', '.join(['%s'] * len(columns))}" * (len(rows) - 1)
    assignments = ", ".join(f"old.`{c.name}` = new_rows.`{c.name}`" for c in columns if c.name != "id")
    conditions = "".join(f" AND old.`{table.c[name].name}` = %s" for name, _ in fence)
    values = [
        row[name] if process is None else process(row[name])
        for row in rows
        for name, process in zip(names, processors, strict=True)
    ]
    statement = (
        f"UPDATE (SELECT {first}{others}) AS new_rows STRAIGHT_JOIN `{table.name}` AS old"
        f" ON old.id = new_rows.id{conditions} SET {assignments}"
    )
    fenced = [str(value) if isinstance(value, str) else value for _, value in fence]
    return conn.exec_driver_sql(statement, (*values, *fenced)).rowcount
