"""Rows of credentials: one for a tree of stacks, given back when the last of them is gone."""

from services.db.rows import NOW, a_stack, stack_of, store
from stoker.db import credentials, stacks
from stoker.db.engine import Database
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.db.work import endings


def unused(database: Database, now: float = NOW) -> list[StackId]:
    return [found.root_id for found in database.read(lambda conn: credentials.unused(conn, now, limit=10))]


def end(database: Database, stack: Stack) -> None:
    now = stack_of(database, stack.id)
    database.write(lambda conn: endings.end_stack(conn, now.id, now.traversal, None, by=None, now=NOW))


def given(database: Database, stack: Stack, body: str = "sealed") -> None:
    database.write(lambda conn: credentials.put(conn, stack.id, {"body": body}, NOW))


def body_for(database: Database, stack: Stack) -> object:
    return database.read(lambda conn: credentials.of_stack(conn, stack.id))


def test_what_is_nested_has_that_of_the_outermost_and_others_have_none(database: Database) -> None:
    root, other = store(database, a_stack()), store(database, a_stack())
    child = store(database, a_stack(root_id=root.id, parent_id=root.id, live_name=None))
    given(database, root)
    assert body_for(database, root) == body_for(database, child) == {"body": "sealed"}
    assert body_for(database, other) is None
    given(database, root, "another")
    assert body_for(database, child) == {"body": "another"}


def test_it_is_given_back_when_the_stack_is_deleted_and_all_that_was_in_it(database: Database) -> None:
    root = store(database, a_stack(action="DELETE"))
    left = store(database, a_stack(root_id=root.id, parent_id=root.id, live_name=None, action="DELETE"))
    kept = store(database, a_stack(action="UPDATE"))
    given(database, root)
    given(database, kept)
    end(database, kept)
    end(database, root)
    assert unused(database) == [], "what a lost step has left is still being removed"
    end(database, left)
    assert unused(database) == [root.id]

    assert database.write(lambda conn: credentials.take(conn, root.id, NOW, NOW + 60))
    assert not database.write(lambda conn: credentials.take(conn, root.id, NOW, NOW + 60)), "it is taken"
    assert unused(database) == []
    assert unused(database, NOW + 61) == [root.id]
    database.write(lambda conn: credentials.forget(conn, root.id))
    assert unused(database, NOW + 61) == []
    assert body_for(database, kept) == {"body": "sealed"}


def test_it_outlives_the_rows_of_its_stack(database: Database) -> None:
    root = store(database, a_stack(action="DELETE"))
    given(database, root)
    end(database, root)
    database.write(lambda conn: stacks.purge(conn, [root.id]))
    assert unused(database) == [root.id]


def test_a_delegation_is_confirmed_or_revoked_but_never_both(database: Database) -> None:
    """Each database compares the moment exactly that it was stored with."""
    until = float(int(NOW + 600.7))

    def intend(key: str) -> StackId:
        own = StackId(key)
        database.write(lambda conn: credentials.intend(conn, own, {"mark": key}, until, NOW))
        return own

    def confirmed(key: StackId) -> bool:
        return database.write(lambda conn: credentials.confirm(conn, key, until))

    in_time = intend("in time")
    assert unused(database) == []
    assert confirmed(in_time)
    assert not confirmed(in_time)

    late = intend("late")
    assert unused(database, until) == [late]
    assert database.write(lambda conn: credentials.take(conn, late, until, until + 60))
    assert not confirmed(late)

    given_up = intend("given up")
    for key in (given_up, StackId("forgotten")):
        database.write(lambda conn, key=key: credentials.withdraw(conn, key, {"body": 1}, NOW, NOW))  # type: ignore[misc]
        assert not confirmed(key)
    assert sorted(unused(database)) == ["forgotten", "given up"]
