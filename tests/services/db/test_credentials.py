"""Rows of credentials: one for a tree of stacks, returned when the last of them is gone."""

from services.db.rows import NOW, a_stack, stack_of, store
from stoker.db import credentials, stacks
from stoker.db.engine import Database
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.db.work import endings


def unused(database: Database, now: float = NOW) -> list[StackId]:
    return [
        credential.root_id
        for credential in database.read(lambda conn: credentials.unused(conn, now, limit=10))
    ]


def end(database: Database, stack: Stack) -> None:
    now = stack_of(database, stack.id)
    ending = endings.StackEnd(now.id, now.traversal)
    database.write(lambda conn: endings.end_stacks(conn, [ending], by=None, now=NOW))


def store_credential(database: Database, stack: Stack, body: str = "sealed") -> None:
    database.write(lambda conn: credentials.put(conn, stack.id, {"body": body}, NOW))


def body_for(database: Database, stack: Stack) -> object:
    return database.read(lambda conn: credentials.of_stack(conn, stack.id))


def test_what_is_nested_has_that_of_the_outermost_and_others_have_none(database: Database) -> None:
    root = store(database, a_stack())
    other_root = store(database, a_stack())
    child = store(database, a_stack(root_id=root.id, parent_id=root.id, live_name=None))
    store_credential(database, root)
    assert body_for(database, root) == body_for(database, child) == {"body": "sealed"}
    assert body_for(database, other_root) is None
    store_credential(database, root, "another")
    assert body_for(database, child) == {"body": "another"}


def test_it_is_revoked_when_the_stack_is_deleted_and_all_that_was_in_it(database: Database) -> None:
    root = store(database, a_stack(action="DELETE"))
    deleted_child = store(
        database, a_stack(root_id=root.id, parent_id=root.id, live_name=None, action="DELETE")
    )
    stack = store(database, a_stack(action="UPDATE"))
    store_credential(database, root)
    store_credential(database, stack)
    end(database, stack)
    end(database, root)
    assert unused(database) == [], "what a lost step has left is still being removed"
    end(database, deleted_child)
    assert unused(database) == [root.id]

    assert database.write(lambda conn: credentials.take(conn, root.id, NOW, NOW + 60))
    assert not database.write(lambda conn: credentials.take(conn, root.id, NOW, NOW + 60)), "it is taken"
    assert unused(database) == []
    assert unused(database, NOW + 61) == [root.id]
    database.write(lambda conn: credentials.forget(conn, root.id))
    assert unused(database, NOW + 61) == []
    assert body_for(database, stack) == {"body": "sealed"}


def test_it_outlives_the_rows_of_its_stack(database: Database) -> None:
    root = store(database, a_stack(action="DELETE"))
    store_credential(database, root)
    end(database, root)
    database.write(lambda conn: stacks.purge(conn, [root.id]))
    assert unused(database) == [root.id]


def test_a_delegation_is_confirmed_or_revoked_but_never_both(database: Database) -> None:
    """Each database compares the moment exactly that it was stored with."""
    until = float(int(NOW + 600.7))

    def intend(key: str) -> StackId:
        stack_id = StackId(key)
        database.write(lambda conn: credentials.intend(conn, stack_id, {"mark": key}, until, NOW))
        return stack_id

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
