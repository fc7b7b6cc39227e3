"""Transactions: run again where that is right, and only there."""

import contextlib
import pathlib
import stat
import subprocess
import sys
import threading
import typing

import pymysql
import pytest
import sqlalchemy as sa
from harness.mariadb import MariaDB
from harness.postgresql import PostgreSQL
from harness.waiting import wait_for
from services.db.rows import on, raised, together
from stoker.db import engine
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Database
from stoker.db.errors import DatabaseError, Unavailable
from stoker.db.schema import tables, upgrade


def add(conn: sa.Connection, name: str, value: int = 0) -> None:
    conn.execute(sa.insert(tables.setting).values(name=name, value=value))


def set_value(conn: sa.Connection, name: str, value: int) -> None:
    s = tables.setting
    conn.execute(sa.update(s).where(s.c.name == name).values(value=value))


def values(database: Database) -> dict[str, object]:
    s = tables.setting
    rows = database.read(lambda conn: conn.execute(sa.select(s.c.name, s.c.value)).all())
    return {row.name: row.value for row in rows}


def test_a_transaction_that_raises_leaves_nothing_behind(database: Database) -> None:
    def add_and_fail(conn: sa.Connection) -> None:
        add(conn, "gone")
        raise DatabaseError("not so")

    with pytest.raises(DatabaseError, match="not so"):
        database.write(add_and_fail)
    assert values(database) == {}


def test_a_thread_keeps_one_connection_for_what_it_writes_but_not_after_an_error_or_a_minute(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []
    sa.event.listen(database.engine, "checkout", lambda *connection: taken.append(connection[0]))

    def write_twice() -> None:
        database.write(lambda conn: set_value(conn, "one", 1))
        database.write(lambda conn: set_value(conn, "one", 2))

    with database.keeping():
        write_twice()
        assert len(taken) == 1
        together(write_twice)
        assert len(taken) == 3, "another thread keeps none"
        with pytest.raises(ZeroDivisionError):
            database.write(lambda conn: 1 / 0)
        assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        write_twice()
        assert len(taken) == 4
        values(database)
        assert len(taken) == 5, "readers have other options"
        monkeypatch.setattr(engine, "KEPT_FOR", 0)
        write_twice()
        assert len(taken) == 7
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    write_twice()
    assert len(taken) == 9


@on("postgresql", "mariadb")
def test_a_brief_transaction_leaves_the_connection_that_a_thread_keeps_alone(database: Database) -> None:
    with database.keeping():
        for value in range(3):
            database.write(lambda conn: add(conn, f"brief {value}"), brief=True)  # noqa: B023
            database.write(lambda conn: add(conn, f"kept {value}"))  # noqa: B023
    assert len(values(database)) == 6


def test_a_thread_keeps_no_connection_of_a_small_pool(database: Database) -> None:
    small = Database(database.url, pool_size=1)
    with small.keeping():
        small.write(lambda conn: add(conn, "one"))
        assert values(small) == {"one": 0}
    small.close()


@on("postgresql")
def test_only_a_transaction_that_writes_begins_at_the_server(database: Database) -> None:
    def status(conn: sa.Connection) -> str:
        conn.execute(sa.select(1))
        return str(conn.connection.dbapi_connection.info.transaction_status.name)  # type: ignore[union-attr]

    statuses = [database.read(status), database.write(status), database.read(status)]
    assert statuses == ["IDLE", "INTRANS", "IDLE"]


@on("postgresql", "mariadb")
def test_the_loser_of_a_deadlock_is_run_again_and_both_succeed(database: Database) -> None:
    database.write(lambda conn: [add(conn, name) for name in ("one", "two")])
    met = threading.Barrier(2)
    runs = []

    def lock_both(first: str, second: str, value: int) -> None:
        def set_both(conn: sa.Connection) -> None:
            runs.append(value)
            set_value(conn, first, value)
            if runs.count(value) == 1:
                met.wait(60)  # each holds one row and now wants the other's
            set_value(conn, second, value)

        database.write(set_both)

    results = together(lambda: lock_both("one", "two", 1), lambda: lock_both("two", "one", 2))
    assert raised(results) == []
    # Once more for each deadlock: the loser may lock its first row again before the winner gets its second.
    assert len(runs) > 2
    assert len(set(values(database).values())) == 1


@on("postgresql")
def test_a_serialization_failure_is_run_again(database: Database) -> None:
    runs = []

    def fail_once(conn: sa.Connection) -> str:
        runs.append(1)
        if len(runs) == 1:
            conn.exec_driver_sql("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$")
        return "done"

    assert database.write(fail_once) == "done"
    assert len(runs) == 2


@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_restart_of_the_server_is_not_noticed_and_its_absence_is_one_error(
    kind: type[PostgreSQL] | type[MariaDB],
) -> None:
    with kind() as server:
        database = Database(server.create_database(), tries=3)
        upgrade.upgrade(database)
        reader = Database(database.url, tries=3)
        assert values(reader) == {}
        server.restart()
        database.write(lambda conn: add(conn, "after"))
        assert values(reader) == {"after": 0}
        reader.close()
        server.kill()
        fresh = Database(database.url, tries=2)
        for run_transaction in (database.read, database.write, fresh.read):
            with pytest.raises(Unavailable):
                run_transaction(lambda conn: add(conn, "lost"))
        database.close()


@pytest.mark.parametrize("keeps", [False, True])
@on("postgresql", "mariadb")
def test_a_connection_lost_while_the_transaction_works_lets_it_run_again(
    database: Database, keeps: bool
) -> None:
    runs = []

    def lose_connection(conn: sa.Connection) -> None:
        runs.append(1)
        add(conn, "kept")
        if len(runs) == 1:
            cut(conn)
            conn.execute(sa.select(1))

    with database.keeping() if keeps else contextlib.nullcontext():
        database.write(lose_connection)
    assert len(runs) == 2
    assert values(database) == {"kept": 0}


def cut(conn: sa.Connection) -> None:
    """End the connection at the server's side."""
    if conn.dialect.name == "postgresql":
        query_of_pid = "SELECT pg_backend_pid()"
        kill = "SELECT pg_terminate_backend({})"
        count_of_sessions = "SELECT count(*) FROM pg_stat_activity WHERE pid = {}"
    else:
        query_of_pid = "SELECT connection_id()"
        kill = "KILL CONNECTION {}"
        count_of_sessions = "SELECT count(*) FROM information_schema.processlist WHERE id = {}"
    number = conn.execute(sa.text(query_of_pid)).scalar_one()
    # By itself each statement sees what is there now.
    engine = sa.create_engine(conn.engine.url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as killer:
        killer.exec_driver_sql(kill.format(number))
        wait_for(lambda: killer.exec_driver_sql(count_of_sessions.format(number)).scalar_one() == 0)


@on("postgresql", "mariadb")
def test_a_connection_lost_during_the_commit_is_reported_and_not_run_again(database: Database) -> None:
    runs = []
    own_database = Database(database.url)

    @sa.event.listens_for(own_database.engine, "commit")
    def lose_the_answer(conn: sa.Connection) -> None:
        raw = conn.connection.dbapi_connection
        assert raw is not None
        raw.commit()  # it takes place …
        cut(conn)  # … and nobody learns of it

    def add_uncommitted(conn: sa.Connection) -> None:
        runs.append(1)
        add(conn, "open")

    with pytest.raises(Unavailable, match="lost during a commit"):
        own_database.write(add_uncommitted)
    own_database.close()
    assert len(runs) == 1
    assert values(database) == {"open": 0}


@on("sqlite")
def test_many_writers_of_sqlite_wait_for_each_other_and_all_succeed(database: Database) -> None:
    # Each waits, none is run again.
    patient = Database(database.url, pool_size=16, tries=1, limits=DatabaseLimits(busy=300.0))

    def read_and_add(conn: sa.Connection, name: str) -> None:
        conn.execute(sa.select(tables.setting)).all()
        add(conn, name)

    def write_often(number: int) -> None:
        for turn in range(10):
            # Reads first: begun as a reader, the second of two such writers could only fail.
            patient.write(lambda conn: read_and_add(conn, f"{number}-{turn}"))  # noqa: B023

    results = together(*(lambda n=number: write_often(n) for number in range(16)))
    patient.close()
    assert raised(results) == []
    assert len(values(database)) == 160


@on("sqlite")
def test_a_reader_of_sqlite_does_not_wait_for_a_writer(database: Database) -> None:
    def read_meanwhile(conn: sa.Connection) -> dict[str, object]:
        add(conn, "unseen")
        return values(database)

    assert database.write(read_meanwhile) == {}


@on("sqlite")
def test_a_writer_of_sqlite_that_waits_too_long_is_run_again(database: Database) -> None:
    hasty = Database(database.url, tries=3, sleep=lambda seconds: None)
    sa.event.listen(hasty.engine, "connect", lambda dbapi, record: dbapi.execute("PRAGMA busy_timeout=1"))

    def blocked(conn: sa.Connection) -> None:
        with pytest.raises(Unavailable, match="unavailable in 3 tries.*locked"):
            hasty.write(lambda second_conn: add(second_conn, "never"))

    database.write(blocked)
    hasty.write(lambda conn: add(conn, "now"))
    hasty.close()
    assert values(database) == {"now": 0}


def test_a_thread_that_gets_no_connection_gets_an_error_that_says_so(database: Database) -> None:
    narrow = Database(database.url, pool_size=1)
    narrow.engine.pool._timeout = 0.05  # type: ignore[attr-defined]

    def nested(conn: sa.Connection) -> None:
        with pytest.raises(Unavailable, match="No connection became free"):
            narrow.read(lambda second: narrow.read(lambda third: None))

    narrow.read(nested)
    narrow.close()


@on("postgresql", "mariadb")
def test_each_statement_sees_what_others_have_committed_before_it(database: Database) -> None:
    def count_twice(conn: sa.Connection) -> tuple[int, int]:
        count = sa.select(sa.func.count()).select_from(tables.setting)
        before = conn.execute(count).scalar_one()
        database.write(lambda second_conn: add(second_conn, "later"))
        return before, conn.execute(count).scalar_one()

    assert database.write(count_twice) == (0, 1)


FULL = {
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$",
    "mysql": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full'",
}


def test_a_full_disk_counts_as_a_database_that_is_unavailable(database: Database) -> None:
    """A change that could not be stored is kept then, and tried again."""

    def fill(conn: sa.Connection) -> None:
        if database.dialect in FULL:
            conn.exec_driver_sql(FULL[database.dialect])
            return
        pages, free, size = (
            conn.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("page_count", "freelist_count", "page_size")
        )
        conn.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        try:
            # More than the pages hold that the rows of other tests have left.
            row = {"id": "a", "body": "x" * (free + 10) * size, "created_at": 0.0}
            conn.execute(sa.insert(tables.content).values(**row))
        finally:
            conn.exec_driver_sql("PRAGMA max_page_count = 1073741823")

    with pytest.raises(Unavailable, match="cannot store anything"):
        database.write(fill)


READ_ONLY = {
    "postgresql": "SET transaction_read_only = on",
    "mysql": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'read-only'",
}


@on("postgresql", "mariadb")
def test_a_server_that_takes_no_writes_is_left_for_the_one_that_a_new_connection_leads_to(
    database: Database,
) -> None:
    connections: list[object] = []

    def write(conn: sa.Connection) -> None:
        connections.append(conn.connection.dbapi_connection)
        if len(connections) == 1:
            conn.exec_driver_sql(READ_ONLY[database.dialect])
        add(conn, "written")

    database.write(write)
    assert len(set(map(id, connections))) == 2


@on("mariadb")
def test_a_commit_on_a_node_of_galera_without_the_majority_may_have_taken_place(database: Database) -> None:
    def refuse() -> None:
        raise pymysql.err.OperationalError(1180, "(provider status: Not connected to Primary Component)")

    def write(conn: sa.Connection) -> None:
        add(conn, "unsure")
        connection: typing.Any = conn.connection.dbapi_connection
        connection.commit = refuse

    with pytest.raises(Unavailable, match="lost during a commit"):
        database.write(write)
    database.write(lambda conn: add(conn, "sure"))


@on("mariadb")
def test_a_first_connection_that_is_lost_while_it_is_examined_is_made_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = pymysql.Connection.query
    lost = []

    def lose_once(self: typing.Any, sql: typing.Any, *arguments: typing.Any, **options: typing.Any) -> int:
        if "lower_case_table_names" in str(sql) and not lost:
            lost.append(sql)
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        return query(self, sql, *arguments, **options)

    monkeypatch.setattr(pymysql.Connection, "query", lose_once)
    fresh = Database(database.url)
    assert fresh.read(lambda conn: conn.execute(sa.select(1)).scalar_one()) == 1
    assert lost
    fresh.close()


def test_a_thread_knows_that_it_runs_a_transaction(tmp_path: pathlib.Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/s.sqlite")
    assert database.read(lambda conn: engine.in_transaction())
    with pytest.raises(ZeroDivisionError):
        database.write(lambda conn: 1 // (engine.in_transaction() - 1))
    assert not engine.in_transaction()
    database.close()


def test_a_new_file_is_its_owners_alone(tmp_path: pathlib.Path) -> None:
    private = tmp_path / "own.sqlite"
    shared = tmp_path / "shared.sqlite"
    shared.touch()
    shared.chmod(0o660)
    for path in (private, shared):
        Database(f"sqlite:///{path}").write(lambda conn: conn.exec_driver_sql("CREATE TABLE t (i INTEGER)"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes.pop("shared.sqlite") == 0o660
    assert {oct(mode) for name, mode in modes.items() if name.startswith("own")} == {"0o600"}


def test_a_new_connection_leaves_the_locks_of_its_process(tmp_path: pathlib.Path) -> None:
    """Else another process takes itself for the last one, and removes the journal that this one writes."""
    path = tmp_path / "shared.sqlite"
    database = Database(f"sqlite:///{path}")
    database.write(lambda conn: conn.exec_driver_sql("CREATE TABLE t (i INTEGER)"))
    Database(f"sqlite:///{path}").read(lambda conn: conn.exec_driver_sql("SELECT i FROM t").all())
    count = (
        "import sqlite3, sys; print(*next(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM t')))"
    )
    counts = []
    for number in range(2):
        insert = f"INSERT INTO t VALUES ({number})"
        database.write(lambda conn, insert=insert: conn.exec_driver_sql(insert))
        counts.append(subprocess.check_output([sys.executable, "-c", count, str(path)], text=True).strip())
    assert counts == ["1", "2"]
