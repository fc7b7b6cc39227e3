"""Watches the statements: what belongs to a project is reached through its owner, not by a user's id.

A document, a path or a query can name any id of `PUBLIC`.  A statement that reads or writes a row by one of
these has to compare a column of `OWNERS` as well.  Or the function that has brought the id is listed in
`EXCEPTIONS`, with the reason for which it is no user's there.
"""

import pathlib
import sys
import types
import typing
from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql import operators, visitors
from stoker.db.bulk import OneOf

HERE = pathlib.Path(__file__)
ROOT = HERE.parents[2]
TESTS = "tests"
PUBLIC: Mapping[str, frozenset[str]] = {
    "stack": frozenset({"id", "name"}),
    "resource": frozenset({"physical_id", "reference_id"}),
    "snapshot": frozenset({"id"}),
    "software_config": frozenset({"id"}),
    "software_deployment": frozenset({"id", "config_id", "server_id"}),
    "software_server": frozenset({"server_id"}),
    "event": frozenset({"uuid"}),
    "imported_key": frozenset({"id"}),
}
"""By table the columns whose values users see, so that they can bring any."""
OWNERS: Mapping[str, frozenset[str]] = {
    "stack": frozenset({"project_id", "root_id", "parent_id", "parent_resource_id", "traversal"}),
    "resource": frozenset({"id", "stack_id"}),
    "snapshot": frozenset({"stack_id"}),
    "software_config": frozenset({"project_id", "resource_id"}),
    "software_deployment": frozenset({"project_id", "resource_id"}),
    "software_server": frozenset({"project_id"}),
    "event": frozenset({"stack_id"}),
    "imported_key": frozenset({"resource_id", "stack_id"}),
}
"""By table the columns that say whose a row is.  A traversal's id is shown to nobody: who has it has read the
row.  The numbers of rows are given by Stoker, and no document holds one."""


_ROW = "the row that it has read before says so, and is compared under the lock"
_PASSED = "its caller passes the row of a stack, which is read again under the lock"
EXCEPTIONS: Mapping[str, str] = {
    "api/request.py:find_by": "compares the project and the name of what it has read, and answers 404",
    "api/handlers/events.py:_check_marker": "compares the project of the event's stack, and answers 400",
    "api/handlers/events.py:read": "it has found the stack in the project, and _check_marker the marker",
    "api/handlers/software.py": "only for the operator, who sees all projects, it leaves the project out",
    "api/handlers/signals.py:find": "the signature of the address has the project and the stack in it",
    "engine/guests.py:_read": "the signature of the address, or of the key, has the stack in it",
    "engine/actions.py": _PASSED,
    "engine/breakpoints.py:held_itself": "the stack of the claimed task",
    "engine/cancel.py": _PASSED,
    "engine/change.py": _PASSED,
    "engine/context.py:start_traversal": _PASSED,
    "engine/exports.py:_abandon": _PASSED,
    "engine/nested_stacks.py:read": "the stack of the claimed task, and the root that its row names",
    "engine/nested_stacks.py:stack": "the stack of the claimed task",
    "engine/scaling.py": _PASSED,
    "engine/snapshots.py": _PASSED,
    "engine/start.py:begin": _PASSED,
    "engine/updates.py": _PASSED,
    "keystone/delegations.py:_replace": "the root of the stack whose credential it renews, locked here",
    "conductor/duties/": "its own scan of the slice has given the ids",
    "features/drift/": "its own scan of the slice has given the ids",
    "features/diagnosis/rescue.py": _PASSED,
    "conductor/worker/": "the claimed task says of which stack it is",
    "db/work/": "tasks and traversals say of which stack they are; no document names one",
    "db/event_sinks.py": "events say of which stack they are",
    "db/notifications.py": "the listed changes say of which stack they are",
    "db/credentials.py": "the stack of the claimed task",
    "features/diagnosis/inspections.py": _ROW,
    "db/queries/overview.py": "the list of all projects is the operator's",
    "db/queries/pauses.py": "read for api/request.py:find_by, which compares the project",
    "db/queries/stack_list.py": "the list of the project has given the ids",
}
"""Functions, files and folders that bring ids -> whose these are."""
LOOKUPS = (
    *("api/operations.py:read", "db/engine.py", "db/events.py"),
    *("db/snapshots.py", "db/software.py", "db/stacks.py"),
)
"""Modules whose functions are given the id by another module: that one has to know whose it is."""


class Offence(typing.NamedTuple):
    """A statement by a public id without an owner.

    :ivar bringer: the function that has brought the id, as ``api/request.py:find_by``.
    :ivar column: the column, with its table.
    """

    bringer: str
    column: str


class StatementWatch:
    """Collects the offences of all statements of this process while it is entered.

    :param exceptions: functions, files and folders that may bring ids, with the reasons.
    """

    def __init__(self, exceptions: Mapping[str, str]) -> None:
        self.offences: set[Offence] = set()
        self._exceptions = exceptions
        self._known: dict[object, tuple[str, ...]] = {}

    def __enter__(self) -> "StatementWatch":
        sa.event.listen(Engine, "before_execute", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(Engine, "before_execute", self._look)

    def _look(self, conn: Connection, statement: sa.ClauseElement, *_: object) -> None:
        key = statement._generate_cache_key()
        marker: object = statement if key is None else key.key
        if marker not in self._known:
            self._known[marker] = tuple(unowned(statement))
        for column in self._known[marker]:
            bringer = next((name for name in _functions() if not name.startswith(LOOKUPS)), TESTS)
            if not bringer.startswith((TESTS, *self._exceptions)):
                self.offences.add(Offence(bringer, column))


def unowned(statement: sa.ClauseElement) -> Iterator[str]:
    """Yield the public ids by which a statement reaches rows that it compares with no owner."""
    bound: dict[str, set[str]] = {}
    compared: dict[str, set[str]] = {}
    for condition in visitors.iterate(statement):
        for column, is_value in _comparisons(condition):
            table = _table_of(column)
            if table in PUBLIC:
                compared.setdefault(table, set()).add(column.key)
                if is_value:
                    bound.setdefault(table, set()).add(column.key)
    for table, columns in sorted(bound.items()):
        if not compared[table] & OWNERS[table]:
            yield from (f"{table}.{name}" for name in sorted(columns & PUBLIC[table]))


def _comparisons(condition: object) -> Iterator[tuple[sa.Column[typing.Any], bool]]:
    """Yield the columns that a condition compares, and whether it is with a value."""
    if isinstance(condition, OneOf):
        if isinstance(condition.column, sa.Column):
            yield condition.column, True
    elif isinstance(condition, sa.BinaryExpression) and condition.operator in (operators.eq, operators.in_op):
        sides = (condition.left, condition.right)
        for side, other in (sides, sides[::-1]):
            if isinstance(side, sa.Column):
                yield side, isinstance(other, sa.BindParameter)


def _table_of(column: sa.Column[typing.Any]) -> str:
    table: typing.Any = column.table
    # A column of a subquery belongs to no table; the conditions inside of it are compared themselves.
    return str(getattr(getattr(table, "element", table), "name", ""))


def _functions() -> Iterator[str]:
    """Yield the functions of the product and of the tests that are on the stack, the innermost first.

    An expression within a function, such as a lambda, counts as the function around it.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            relative = path.relative_to(ROOT)
            is_inner = "<" in frame.f_code.co_name and relative.parts[0] != TESTS
            if relative.parts[0] != ".venv" and path != HERE and not is_inner:
                yield f"{relative}:{frame.f_code.co_name}"
        frame = frame.f_back
