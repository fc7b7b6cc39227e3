"""Watches the statements: what belongs to a project is reached through its owner, not by a user's id.

A document, a path or a query can name any id of `PUBLIC`.  A statement that reads or writes a row by one of
these has to compare a column of `OWNERS` as well.  Or the function that has brought the id is listed in
`EXCEPTIONS`, with the reason for which it is no user's there.
"""

import os
import pathlib
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql import operators, visitors
from stoker.db.bulk import OneOf

HERE = pathlib.Path(__file__)
ROOT = HERE.parents[2]
BELOW = {HERE, HERE.with_name("forkserver.py")}
"""Files whose functions are on the stack of whatever a watched program does."""
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
    "snapshot": frozenset({"stack_id", "traversal"}),
    "software_config": frozenset({"project_id", "resource_id"}),
    "software_deployment": frozenset({"project_id", "resource_id"}),
    "software_server": frozenset({"project_id"}),
    "event": frozenset({"stack_id"}),
    "imported_key": frozenset({"resource_id", "stack_id"}),
}
"""By table the columns that say whose a row is.  A traversal's id is shown to nobody: who has it has read the
row.  The numbers of rows are given by Stoker, and no document holds one."""


_TASK = "the claimed task, or its traversal, has a column that says of which stack it is"
_LOCKED = "the stacks whose rows this transaction has locked just before"
_PASSED = "the stack that its caller has found for the project, or for the task; its row is locked here"
_SLICE = "the duty has read the id itself, in a list of all stacks; nobody has named one"
_OPERATOR = "an operator's command, which may name a stack of any project"
_ALL = "leaves the project out for those only who may see all projects"
_SIGNED = "the signature has the stack in it, or the key's own row; it was checked before"
EXCEPTIONS: Mapping[str, str] = {
    "api/request.py:find_by": "compares the project and the name of what it has read, and answers 404",
    "api/handlers/events.py:_check_marker": "compares the project of the event's stack, and answers 400",
    "api/handlers/events.py:read": "_check_marker has compared the marker's project",
    "features/software/handlers.py:_of_path": _ALL,
    "features/software/handlers.py:read": _ALL,
    "api/handlers/signals.py:find": _SIGNED,
    "engine/access_keys.py:readable": _SIGNED,
    "engine/guests.py:_read": _SIGNED,
    "engine/actions.py:start_action": _PASSED,
    "engine/actions.py:start_delete": _PASSED,
    "engine/breakpoints.py:held_itself": _TASK,
    "engine/cancel.py:cancel_stack": _PASSED,
    "engine/cancel.py:fail_unreadable": _TASK,
    "engine/cancel.py:time_out_all": _SLICE,
    "engine/change.py:start_update": _PASSED,
    "engine/exports.py:_abandon": "the stack that its caller has found for the project, and its tree",
    "engine/nested_stacks.py:read": "the stack of the claimed task, and the root that its row names",
    "engine/nested_stacks.py:stack": "the stack of the claimed task, and the child that its row names",
    "engine/scaling.py:start": _PASSED,
    "engine/snapshots.py:start_snapshot": _PASSED,
    "engine/snapshots.py:start_snapshot_deletion": _PASSED,
    "engine/updates.py:_retry": "the stack that its caller has found for the project, once more",
    "keystone/delegations.py:_replace": "the root of the stack whose credential it renews, locked here",
    "features/diagnosis/rescue.py:_again": _OPERATOR,
    "conductor/duties/rollbacks.py:_roll_back": _SLICE,
    "conductor/duties/stack_purge.py:_purge": _SLICE,
    "features/drift/marked_things.py:_lock_quiet": _OPERATOR,
    "features/drift/marked_things.py:_of_nobody": "leaves out the things that a row of any project has",
    "features/drift/records.py:_begin_healing": _SLICE,
    "features/drift/records.py:_write": _SLICE,
    "features/cloudformation/handlers.py:read": "has compared the stack of the marker just before",
    "db/credentials.py:of_stack": _TASK,
    "db/event_sinks.py:of_stacks": "the stacks of the events that the transaction stores",
    "db/notifications.py:_read": "the stacks whose changes the transaction has noted",
    "features/drift/rows.py:of_tree": "the stacks of the tree whose rows it has just read",
    "features/diagnosis/inspections.py:find": _OPERATOR,
    "features/diagnosis/inspections.py:page": "the stacks of the tree whose rows it has just read",
    "features/diagnosis/inspections.py:children": "the stacks for which the tasks of an inspected stack wait",
    "db/queries/nesting.py:data_by_path": "the stacks of the tree whose rows it has just read",
    "db/queries/nesting.py:parent_resources": "the stacks of the tree whose resources are shown",
    "db/queries/nesting.py:timeout_mins": "the root that the row of the shown stack names",
    "db/queries/overview.py:_stuck": _OPERATOR,
    "db/queries/stack_list.py:get_many": "the ids come from rows that the project's list has given",
    "db/work/cancel.py:stopped": _TASK,
    "db/work/cancel.py:superseded": _TASK,
    "db/work/claim.py:_labels": _TASK,
    "db/work/commit.py:lock_awaited": _TASK,
    "db/work/countdown.py:_rests": _TASK,
    "db/work/endings.py:begin_rollbacks": _LOCKED,
    "db/work/endings.py:fail_rollback": "the stack that its caller has read; its traversal is compared",
    "db/work/stack_transitions.py:begin_rollback": _LOCKED,
    "db/work/endings.py:end_stacks": _TASK,
    "db/work/orphans.py:record": _TASK,
}
"""Functions that bring ids -> whose these are, and why that is enough."""
LOOKUPS = (
    *("api/operations.py:read", "db/engine.py", "db/events.py"),
    *("db/snapshots.py", "db/software.py", "db/stacks.py", "db/statements.py", "db/usage.py"),
)
"""Modules whose functions are given the id by another module: that one has to know whose it is."""


class Offence(typing.NamedTuple):
    """A statement by a public id without an owner.

    :ivar bringer: the function that has brought the id, as ``api/request.py:find_by``; "": none of ours.
    :ivar column: the column, with its table.
    """

    bringer: str
    column: str
    statement: str


class StatementWatch:
    """Reports the offences of all statements of this process while it is entered.

    :param exceptions: functions that may bring ids, with the reasons.
    :param report: gets each offence before the statement is executed.
    """

    def __init__(self, exceptions: Mapping[str, str], report: Callable[[Offence], None]) -> None:
        self._exceptions = exceptions
        self._report = report
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
            bringer = next((name for name in _functions() if not name.startswith(LOOKUPS)), "")
            if not bringer.startswith(TESTS) and bringer not in self._exceptions:
                self._report(Offence(bringer, column, " ".join(str(statement).split())))


WATCHED = "STOKER_TESTS_WATCH_STATEMENTS"
"""Variable of the environment of a program that the fork server starts with a watch of its statements."""
_HEAD = "reached by an id alone: "
"""Before an offence in the output of such a program."""


def watch_program() -> None:
    """Watch this process until its end, and write each offence to its output at once.

    The statement is executed nevertheless: an error here would seem to the program to be one of the database,
    and hide the offence.
    """

    def report(offence: Offence) -> None:
        text = f"{_HEAD}{offence.column} by {offence.bringer or 'nobody'}: {offence.statement}\n"
        os.write(2, text.encode())

    StatementWatch(EXCEPTIONS, report).__enter__()


class ReportedOffences:
    """The offences in the output of a watched program.

    :param log: file of the output.
    """

    def __init__(self, log: pathlib.Path) -> None:
        self._log = log
        self._seen = 0

    def check(self) -> None:
        """Fail if there is an offence in what the program has printed since the last call.

        :raises AssertionError: there is; the text has the statement.
        """
        with open(self._log, "rb") as output:
            output.seek(self._seen)
            new = output.read()
        self._seen += new.rfind(b"\n") + 1
        offences = sorted(set(re.findall(f"{_HEAD}.*", new.decode(errors="replace"))))
        if offences:
            raise AssertionError("\n".join(offences))


def unowned(statement: sa.ClauseElement) -> Iterator[str]:
    """Yield the public ids by which a statement reaches rows that it compares with no owner.

    An owner's column that is compared with one of another table of `OWNERS` counts if that table's rows are
    reached through their owner: the rows of a stack that anybody names are nobody's yet.
    """
    bound: dict[str, set[str]] = {}
    joined: dict[str, set[str]] = {}
    owned: set[str] = set()
    for condition in visitors.iterate(statement):
        for column, other in _comparisons(condition):
            table = _table_of(column)
            if isinstance(other, sa.BindParameter):
                bound.setdefault(table, set()).add(column.key)
            if column.key in OWNERS.get(table, ()):
                if isinstance(other, sa.Column) and _table_of(other) in OWNERS:
                    joined.setdefault(table, set()).add(_table_of(other))
                else:
                    owned.add(table)
    while reached := {table for table, others in joined.items() if table not in owned and others & owned}:
        owned |= reached
    for table, columns in sorted(bound.items()):
        if table not in owned:
            yield from (f"{table}.{name}" for name in sorted(columns & PUBLIC.get(table, frozenset())))


def _comparisons(condition: object) -> Iterator[tuple[sa.Column[typing.Any], object]]:
    """Yield the columns that a condition compares, and with what."""
    if isinstance(condition, OneOf):
        if isinstance(condition.column, sa.Column):
            yield condition.column, sa.bindparam(None)
    elif isinstance(condition, sa.BinaryExpression) and condition.operator in (operators.eq, operators.in_op):
        sides = (condition.left, condition.right)
        for side, other in (sides, sides[::-1]):
            if isinstance(side, sa.Column):
                yield side, other


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
            if relative.parts[0] != ".venv" and path not in BELOW and not is_inner:
                yield f"{relative}:{frame.f_code.co_name}"
        frame = frame.f_back
