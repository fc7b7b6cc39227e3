"""The servers that the tests start: each answers, survives a restart, and leaves no process behind."""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
import sqlalchemy as sa
from harness import proctree
from harness.etcd import Etcd
from harness.mariadb import MariaDB
from harness.memcached import Memcached
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.prometheus import Prometheus
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import MissingServer, Server, find_program
from harness.waiting import wait_for
from harness.zookeeper import ZooKeeper


@pytest.mark.full
@pytest.mark.parametrize("kind", [RabbitMQ, Etcd, ZooKeeper, Redis, Memcached, Prometheus])
def test_a_server_answers_restarts_and_leaves_nothing_behind(kind: type[Server]) -> None:
    with kind() as server:
        port = server.port
        directory = server.directory
        server.kill()
        server.start()
        server.restart()
        assert server.port == port
        procs = proctree.tree(server.process.pid)
        assert procs
    assert not directory.exists()
    assert proctree.wait_gone(procs, 120.0) == []


@pytest.mark.full
@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_database_keeps_its_data_over_a_restart_and_a_kill(
    kind: type[PostgreSQL] | type[MariaDB],
) -> None:
    with kind() as server:
        engine = sa.create_engine(server.create_database(), poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.exec_driver_sql("CREATE TABLE kept (name VARCHAR(20))")
            conn.exec_driver_sql("INSERT INTO kept VALUES ('still here')")
        server.restart()
        server.kill()
        server.start()
        with engine.begin() as conn:
            assert conn.exec_driver_sql("SELECT name FROM kept").scalar() == "still here"


@pytest.mark.full
def test_a_database_that_starts_leaves_the_temporary_tables_of_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o777)
        monkeypatch.setenv("TMPDIR", shared)
        other_table = pathlib.Path(shared, "#sql-temptable-d5e-1-4.MAD")
        other_table.touch()
        os.chmod(other_table, 0o666)
        with MariaDB() as server:
            server.restart()
            assert other_table.exists()


def test_a_missing_server_fails_and_says_how_to_install_it() -> None:
    with pytest.raises(MissingServer, match="no-such-server is not installed: run `make test-deps`"):
        find_program("no-such-server", "no-such-package")


def test_what_a_killed_run_leaves_behind_is_cleaned_up(tmp_path: os.PathLike[str]) -> None:
    program = (
        "import os, pathlib, sys\n"
        "from harness.processes import Process\n"
        "from harness.guard import GUARD\n"
        f"child = Process(['sleep', '600'], log=pathlib.Path({str(tmp_path)!r}, 'log'))\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=os.path.dirname(os.path.dirname(__file__)),
    )
    assert run.stdout is not None
    pid = int(run.stdout.readline())
    proc = proctree.read(pid)
    assert proc is not None
    run.kill()
    run.wait()
    run.communicate()
    wait_for(lambda: not proctree.is_alive(proc), 60)


def test_a_process_that_ends_early_is_told_with_what_it_printed(tmp_path: os.PathLike[str]) -> None:
    child = Process(["sh", "-c", "echo no such luck; exit 3"], log=tmp_path / "log")  # type: ignore[operator]
    with pytest.raises(Exception, match="ended with 3:\nno such luck"):
        child.wait_for_text("hello")
