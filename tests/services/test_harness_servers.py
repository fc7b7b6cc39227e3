"""The servers that the tests start: each answers, survives a restart, and leaves no process behind."""

import os
import time

import pytest
import sqlalchemy as sa
from harness.brokers import RabbitMQ
from harness.coordinators import Etcd, Memcached, Redis, ZooKeeper
from harness.databases import MariaDB, PostgreSQL
from harness.server import Server, ServerError, program


@pytest.mark.parametrize("kind", [RabbitMQ, Etcd, ZooKeeper, Redis, Memcached])
def test_a_server_answers_restarts_and_leaves_nothing_behind(kind: type[Server]) -> None:
    server = kind()
    try:
        server.start()
        assert server.probe()
        server.restart()
        assert server.probe()
        group = server.process.pid
    finally:
        server.stop()
    assert not server.directory.exists()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process of the server is still there")


@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_database_keeps_its_data_over_a_restart(kind: type[PostgreSQL] | type[MariaDB]) -> None:
    server = kind()
    try:
        server.start()
        engine = sa.create_engine(server.create_database(), poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.exec_driver_sql("CREATE TABLE kept (name VARCHAR(20))")
            conn.exec_driver_sql("INSERT INTO kept VALUES ('still here')")
        server.restart()
        with engine.begin() as conn:
            assert conn.exec_driver_sql("SELECT name FROM kept").scalar() == "still here"
    finally:
        server.stop()


def test_a_missing_server_fails_and_says_how_to_install_it() -> None:
    with pytest.raises(ServerError, match="no-such-server is not installed; `make test-deps` installs it"):
        program("no-such-server")
