"""Rows of the whole installation: the shard count, ids, contents, conductors."""

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, a_stack, new_id, on, raised, store, together
from stoker.db import conductors, content, settings, stacks
from stoker.db.conductors import ACTIVE, DRAINING, ConductorRecord, StateRequest
from stoker.db.engine import Database
from stoker.db.errors import NotFound, ShardCountMismatch
from stoker.db.ids import ContentId
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.work import stack_transitions

OLD = NOW + content.KEEP_UNUSED + 1


def test_the_shard_count_is_kept_and_another_one_refused(database: Database) -> None:
    def count(configured: int | None) -> int:
        return database.write(lambda conn: settings.shard_count(conn, configured))

    assert count(64) == 64
    assert count(None) == 64
    assert count(64) == 64
    with pytest.raises(ShardCountMismatch, match="made with 64 shards, but 128 are configured"):
        count(128)
    with pytest.raises(ValueError, match="must be 1 or more, not 0"):
        count(0)
    assert count(None) == 64


def test_the_shard_count_has_a_default(database: Database) -> None:
    assert database.write(settings.shard_count) == settings.DEFAULT_SHARD_COUNT


def test_many_that_ask_first_agree_on_the_shard_count(database: Database) -> None:
    results = together(
        *(lambda: database.write(lambda conn: settings.shard_count(conn, 32)) for _ in range(8))
    )
    assert results == [32] * 8


def ids_of_contents(database: Database) -> set[str]:
    return set(database.read(lambda conn: conn.execute(sa.select(tables.content.c.id)).scalars().all()))


def test_equal_contents_are_stored_once_whoever_stores_them(database: Database) -> None:
    bodies = [{"b": [1, 2], "a": "x"}, {"a": "x", "b": [1, 2]}]
    results = together(
        *(lambda n=n: database.write(lambda conn: content.put(conn, bodies[n % 2], NOW)) for n in range(8))  # type: ignore[misc]
    )
    assert raised(results) == []
    assert set(results) == ids_of_contents(database)
    [key] = ids_of_contents(database)
    assert database.read(lambda conn: content.get(conn, ContentId(key))) == bodies[0]
    with pytest.raises(NotFound, match=r"The Template \(x\) could not be found"):
        database.read(lambda conn: content.get(conn, ContentId("x")))


def put_three(database: Database, prefix: str) -> tuple[ContentId, ...]:
    return tuple(
        database.write(lambda conn: content.put(conn, {"is": prefix + name}, NOW))  # noqa: B023
        for name in ("template", "environment", "files")
    )


def sweep(database: Database, now: float = OLD) -> int:
    purged, after = database.write(lambda conn: content.purge_unused(conn, now, limit=2))
    while after is not None:
        more, after = database.write(lambda conn: content.purge_unused(conn, now, limit=2, after=after))  # noqa: B023
        purged += more
    return purged


COLUMNS = ("template_id", "environment_id", "files_id")
PARTS = ("template", "environment", "files")


def test_contents_are_removed_when_no_stack_uses_them_any_more(database: Database) -> None:
    old = put_three(database, "old ")
    new = put_three(database, "new ")
    stack, other_stack = (a_stack(**dict(zip(COLUMNS, old, strict=True))) for _ in range(2))

    def change(**columns: object) -> None:
        current = database.read(lambda conn: stacks.get(conn, stack.id))
        assert database.write(
            lambda conn: stack_transitions.begin(conn, current, new_id(), action="UPDATE", **columns)
        )

    store(database, stack, other_stack)
    assert sweep(database) == 3
    assert ids_of_contents(database) == set(old)
    put_three(database, "new ")
    change(**dict(zip(COLUMNS, new, strict=True)), previous=dict(zip(PARTS, old, strict=True)))
    database.write(lambda conn: stacks.purge(conn, [other_stack.id]))
    assert sweep(database) == 0, "the stack may have to go back to its last complete goal"
    change(reason="nothing of the goal")
    assert sweep(database) == 0
    change(previous=None)
    assert sweep(database) == 3
    assert ids_of_contents(database) == set(new)
    database.write(lambda conn: stacks.purge(conn, [stack.id]))
    assert sweep(database) == 3
    assert ids_of_contents(database) == set()


def test_a_content_that_was_put_lately_stays_though_nobody_uses_it_yet(database: Database) -> None:
    put_three(database, "")
    assert sweep(database, NOW + content.FRESH) == 0
    database.write(lambda conn: content.put(conn, {"is": "files"}, OLD - 1))
    assert sweep(database) == 2
    assert ids_of_contents(database) == {content.content_id({"is": "files"})}


def test_a_content_put_while_it_is_swept_is_there_afterwards(database: Database) -> None:
    for turn in range(6):
        body = {"turn": turn}
        database.write(lambda conn: content.put(conn, body, NOW))  # noqa: B023
        stack = a_stack(template_id=content.content_id(body))

        def create(body: object = body, stack: Stack = stack) -> None:
            database.write(lambda conn: (content.put(conn, body, OLD), stacks.insert(conn, stack)))

        assert raised(together(create, lambda: sweep(database))) == []
        assert content.content_id(body) in ids_of_contents(database)


@on("postgresql", "mariadb")
def test_stacks_that_share_a_content_are_created_side_by_side(database: Database) -> None:
    database.write(lambda conn: content.put(conn, {}, NOW))

    def outer(conn: sa.Connection) -> None:
        content.put(conn, {}, NOW + 1)
        # Would wait for the outer transaction, and so forever, if that held the row.
        database.write(lambda second_conn: content.put(second_conn, {}, NOW + 1))

    database.write(outer)


def report(**fields: object) -> ConductorRecord:
    plain = {"incarnation": "a/1", "state": ACTIVE, "started_at": NOW, "heartbeat_at": NOW}
    return ConductorRecord(host="a", **{**plain, **fields})  # type: ignore[arg-type]


def test_a_conductor_reports_and_learns_what_the_operator_wants(database: Database) -> None:
    assert database.write(lambda conn: conductors.report(conn, report())) == StateRequest()
    request = StateRequest(DRAINING, "ann", NOW, "a new kernel")
    database.write(lambda conn: conductors.request_state(conn, "a", request))
    later = report(state=DRAINING, heartbeat_at=NOW + 1, shards_owned=9)
    assert database.write(lambda conn: conductors.report(conn, later)) == request
    [stored] = database.read(conductors.list_all)
    assert stored.request == request
    assert (stored.wanted, stored.state, stored.heartbeat_at, stored.shards_owned) == (
        DRAINING,
        DRAINING,
        NOW + 1,
        9,
    )
    # Asking for what is so already is no error; asking somebody unknown is.
    database.write(lambda conn: conductors.request_state(conn, "a", request))
    with pytest.raises(NotFound, match=r"The Conductor \(b\)"):
        database.write(lambda conn: conductors.request_state(conn, "b", request))


def test_two_incarnations_on_one_host_that_report_first_at_once_are_one_row(database: Database) -> None:
    results = together(
        *(
            lambda n=n: database.write(lambda conn: conductors.report(conn, report(incarnation=f"a/{n}")))  # type: ignore[misc]
            for n in range(6)
        )
    )
    assert results == [StateRequest()] * 6
    assert len(database.read(conductors.list_all)) == 1


def test_conductors_that_are_silent_for_long_are_forgotten(database: Database) -> None:
    database.write(lambda conn: conductors.report(conn, report()))
    assert database.write(lambda conn: conductors.purge(conn, NOW)) == 0
    assert database.write(lambda conn: conductors.purge(conn, NOW + 1)) == 1
    assert database.read(conductors.list_all) == []
