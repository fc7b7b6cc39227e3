"""The servers that the tests start: each answers, survives a restart, and leaves no process behind."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import pytest
import sqlalchemy as sa
from harness import permitted, proctree
from harness.etcd import Etcd, EtcdCluster
from harness.galera import Galera
from harness.mariadb import PASSWORD, USER, MariaDB
from harness.memcached import Memcached
from harness.ports import HOST
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.prometheus import Prometheus
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import MissingServer, Server, find_program
from harness.small_disk import SmallDisk
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
def test_a_galera_cluster_serves_while_a_node_is_cut_off_or_dead(tmp_path: pathlib.Path) -> None:
    galera = Galera()
    try:
        galera.start(tmp_path)
        assert galera.proxy is not None
        url = f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{galera.proxy.port}/{galera.create_database()}"
        engine = sa.create_engine(url, poolclass=sa.NullPool)

        def node() -> str | None:
            with contextlib.suppress(sa.exc.SQLAlchemyError), engine.begin() as conn:
                conn.exec_driver_sql("INSERT INTO kept VALUES (1)")
                return str(conn.exec_driver_sql("SELECT @@wsrep_node_name").scalar())
            return None

        with engine.begin() as conn:
            conn.exec_driver_sql("CREATE TABLE kept (number INTEGER)")
        wait_for(lambda: node() == "node0", 60)
        galera.nodes[0].isolate(is_alone=True)
        wait_for(lambda: node() == "node1", 60)
        galera.nodes[0].isolate(is_alone=False)
        wait_for(lambda: node() == "node0", 60)
        galera.nodes[0].kill()
        wait_for(lambda: node() == "node1", 60)
        galera.nodes[0].start()
        wait_for(lambda: node() == "node0", 60)
    finally:
        galera.close()


@pytest.mark.full
def test_nodes_of_rabbitmq_form_a_cluster_that_is_partitioned_and_heals() -> None:
    with RabbitMQ() as first, RabbitMQ(first) as second:
        second.join(first)
        peers = f"[{second.node}]"
        assert first.control("eval", "nodes().").strip() == peers
        second.isolate([first], is_alone=True)
        wait_for(lambda: first.control("eval", "nodes().").strip() == "[]", 60)
        second.isolate([first], is_alone=False)
        wait_for(lambda: first.control("eval", "nodes().").strip() == peers, 120)


def put(node: Etcd, timeout: float) -> bool:
    """Store a value by a node; return whether the cluster has taken it."""
    body = json.dumps({"key": "a2V5", "value": "dmFsdWU="}).encode()
    request = urllib.request.Request(f"{node.client_url}/v3/kv/put", body)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.full
def test_a_cluster_of_etcd_serves_while_a_node_is_dead_or_cut_off() -> None:
    cluster = EtcdCluster()
    try:
        cluster.start()
        nodes = cluster.nodes
        nodes[0].kill()
        nodes[1].wait_ready()
        nodes[0].start()
        cluster.isolate(0, is_alone=True)
        wait_for(lambda: put(nodes[1], 5.0) and put(nodes[2], 5.0), 120)
        assert not put(nodes[0], 2.0)
        cluster.isolate(0, is_alone=False)
        wait_for(lambda: put(nodes[0], 5.0), 120)
    finally:
        cluster.close()


@pytest.mark.full
@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB])
def test_a_database_says_that_its_disk_is_full_and_continues_when_it_is_not(
    kind: type[PostgreSQL] | type[MariaDB],
) -> None:
    if not SmallDisk.can_be_mounted():
        pytest.skip("this account may not mount file systems")
    with contextlib.closing(kind()) as server:
        assert server.use_small_disk()
        server.start()
        engine = sa.create_engine(server.create_database(), poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.exec_driver_sql("CREATE TABLE kept (line TEXT)")

        def store() -> bool:
            with contextlib.suppress(sa.exc.SQLAlchemyError), engine.begin() as conn:
                for _ in range(50):
                    conn.exec_driver_sql("INSERT INTO kept SELECT repeat('x', 60000)")
                return True
            return False

        server.fill_disk()
        wait_for(lambda: not store(), 300)
        server.free_disk()
        wait_for(store, 120)


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


def test_a_missing_server_fails_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(permitted.PERMITTED, raising=False)
    with pytest.raises(MissingServer, match="no-such-server is not installed: run `make test-deps`"):
        find_program("no-such-server", "no-such-package")


def test_what_a_killed_run_leaves_is_cleaned_up(tmp_path: os.PathLike[str]) -> None:
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


def test_a_process_that_ends_early_is_shown_with_what_it_printed(tmp_path: os.PathLike[str]) -> None:
    child = Process(["sh", "-c", "echo no such luck; exit 3"], log=tmp_path / "log")  # type: ignore[operator]
    with pytest.raises(Exception, match="ended with 3:\nno such luck"):
        child.wait_for_text("hello")
