"""Servers for the tests: each is started when a test first asks for it, and lives until the end of the run.

A test that stops, pauses or kills a server starts one of its own (``with RabbitMQ() as server:``).
"""

import typing
from collections.abc import Iterator

import pytest
from harness.etcd import Etcd
from harness.keystone import Keystone
from harness.mariadb import MariaDB
from harness.memcached import Memcached
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import MissingServer, Server
from harness.zookeeper import ZooKeeper

S = typing.TypeVar("S", bound=Server)


def _running(server: S) -> Iterator[S]:
    try:
        with server:
            yield server
    except MissingServer as error:
        # Never skipped: a test that was not run proves nothing.
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    yield from _running(RabbitMQ())


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    yield from _running(PostgreSQL())


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    yield from _running(MariaDB())


@pytest.fixture(scope="session")
def etcd() -> Iterator[Etcd]:
    yield from _running(Etcd())


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    yield from _running(Redis())


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    yield from _running(ZooKeeper())


@pytest.fixture(scope="session")
def memcached() -> Iterator[Memcached]:
    yield from _running(Memcached())


@pytest.fixture(scope="session")
def keystone() -> Iterator[Keystone]:
    yield from _running(Keystone())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the simulation; here, for pytest asks the outermost file only."""
    parser.addoption("--seeds", type=int, default=25, help="how many random schedules the simulation tries")
    parser.addoption("--seed", type=int, default=None, help="the one schedule that the simulation tries")
