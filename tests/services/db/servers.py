"""The servers that a file's tests run on: all three, where the answers may differ from one to another."""

import typing

import pytest

SERVERS = ("sqlite", "postgresql", "mariadb")
CHECKED_BY = {
    "bulk": ("test_bulk", "test_events"),
    "conductors": ("test_installation",),
    "connections": ("test_engine", "test_locks"),
    "engine": ("test_engine",),
    "resources": ("test_claims", "test_locks"),
    "schema/column_types": ("test_schema", "test_values"),
    "stacks": ("test_locks", "test_purge"),
    "statements": ("test_installation",),
    "traversals": ("test_traversals",),
    "usage": ("test_usage",),
    "work/claim": ("test_claims", "test_locks"),
    # Commits at once wait for each other's rows, and deadlock where the order is wrong.
    "work/commit": ("test_commits", "test_completion"),
    "work/due_tasks": ("test_parking", "test_locks"),
    "work/tasks": ("test_states", "test_parking"),
}
"""Each module of db that names a dialect or skips locked rows, and the files that test it on all servers."""
ON_ALL = {
    *(name for names in CHECKED_BY.values() for name in names),
    "test_due_soon",  # Its statement is a union of limited parts, which each server writes in its own way.
    "test_expand_contract",  # MariaDB commits each statement of a migration.
    "test_growth",  # Its tests name their servers themselves.
    "test_query_plans",  # Each server has a planner of its own.
    "test_rows_read",  # Likewise.
    "test_stopping",  # Who supersedes waits for who requeues.
}
"""Files whose tests run on all servers; of the others `make test` runs only tests on SQLite."""


def parameters(file: str) -> list[typing.Any]:
    """Return the servers of a file's tests; what only `make test-full` runs is marked.

    :param file: the name of its module, e.g. ``test_locks``.
    """
    marks = [] if file in ON_ALL else [pytest.mark.full]
    return ["sqlite", *(pytest.param(server, marks=marks) for server in SERVERS[1:])]
