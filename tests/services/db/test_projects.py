"""The lock of a project's stacks: who counts, counts all that others have stored before them."""

import threading

import pytest
import sqlalchemy as sa
from services.db.rows import a_stack, on, raised, stack_of, together
from services.db.servers import SERVERS
from stoker.db import projects, stacks
from stoker.db.engine import Database
from stoker.db.rows import Stack
from stoker.engine.stack_limit import check_new_stack, check_room
from stoker.template.errors import LimitExceeded

RACERS = 4


@on(*SERVERS)
def test_of_transactions_that_store_the_last_stack_of_a_project_one_is_committed(database: Database) -> None:
    # SQLite has one writer at a time: there the others would wait here for the first one's end.
    racers = 1 if database.dialect == "sqlite" else RACERS
    stored = threading.Barrier(racers)

    def create(stack: Stack) -> Stack:
        def store(conn: sa.Connection) -> None:
            stacks.insert(conn, stack)
            stored.wait(60)
            check_new_stack(conn, "tenant", 2)

        database.write(store)
        return stack

    def first(conn: sa.Connection) -> None:
        stacks.insert(conn, a_stack(name="other", project_id="elsewhere"))
        stacks.insert(conn, a_stack(name="old"))
        check_new_stack(conn, "tenant", 2)

    database.write(first)
    wanted = [a_stack(name=f"new{number}") for number in range(RACERS)]
    results = together(*(lambda one=one: create(one) for one in wanted))  # type: ignore[misc]
    errors = raised(results)
    assert [type(error) for error in errors] == [LimitExceeded] * (RACERS - 1), errors
    [won] = [result for result in results if isinstance(result, Stack)]
    assert stack_of(database, won.id).name == won.name
    assert database.read(lambda conn: projects.count_stacks(conn, "tenant")) == 2


def test_without_a_limit_there_is_always_room(database: Database) -> None:
    database.write(lambda conn: stacks.insert(conn, a_stack(name="old")))
    database.read(lambda conn: check_room(conn, "tenant", 0))
    with pytest.raises(LimitExceeded, match="You have reached the maximum stacks per tenant, 1"):
        database.read(lambda conn: check_room(conn, "tenant", 1))
