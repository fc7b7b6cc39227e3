"""Servers for the tests: each is started when a test first asks for it, and lives until the end of the run.

A test that stops, pauses or kills a server starts one of its own (``with RabbitMQ() as server:``).

Where tests run in several processes (``-n``), each process has its own servers.  So tests that share a server
run in one process, one after the other; what takes longest comes first.
"""

import gc
import signal
import typing
from collections.abc import Generator, Iterator

from stoker.cli.daemon import threading_backend  # noqa: F401  - first: it decides how oslo works, for all tests

import hypothesis  # isort: skip
import pytest
from harness.barbican import Barbican
from harness.etcd import Etcd
from harness.keystone import Keystone
from harness.mariadb import MariaDB
from harness.memcached import Memcached
from harness.pace_report import PaceReport
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import MissingServer, Server
from harness.zookeeper import ZooKeeper
from stoker.sandbox import pool
from xdist.scheduler.loadscope import LoadScopeScheduling

# An expression must not fail because the host pauses; its processor time has a limit of its own.
pool.WALL_CLOCK = 60.0
pool.install()  # As a program does: templates and conductors of tests evaluate in helper processes.

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


@pytest.fixture(scope="session")
def barbican(keystone: Keystone) -> Iterator[Barbican]:
    yield from _running(Barbican(keystone))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the simulation; here, for pytest asks the outermost file only."""
    parser.addoption("--seeds", type=int, default=8, help="how many random schedules the simulation tries")
    parser.addoption(
        "--seed", type=int, default=None, help="the one schedule that the simulation tries, or chaos"
    )
    parser.addoption(
        "--servers", type=int, default=12, help="how many servers there are in the chaos on a cloud"
    )


FILE = ""
"""Each file by itself: its tests share nothing with those of others, or all processes share it."""
TOGETHER = {
    "tests/process/test_deployment.py": "daemons, first half",
    "tests/process/test_cancel.py": "daemons, first half",
    "tests/process/test_nested.py": "daemons, first half",
    "tests/process/test_secrets.py": "daemons, first half",
    "tests/services/rpc/": "daemons, first half",
    "tests/process/test_configuration.py": "configuration",
    "tests/process/test_breakpoints.py": "daemons, second half",
    "tests/process/test_takeover.py": "daemons, second half",
    "tests/process/test_observed.py": "daemons, second half",
    "tests/process/test_upgrade.py": "daemons, second half",
    "tests/process/test_handbook.py": "handbook",
    "tests/process/test_clocks.py": "daemons, second half",
    "tests/process/test_expressions.py": "daemons, second half",
    "tests/process/test_half_open.py": "daemons, second half",
    "tests/cloud/": FILE,
    "tests/console/": "console",
    "tests/deploy/": "deploy",
    "tests/process/": FILE,
    "tests/services/ring/": "ring",
    "tests/services/test_harness_": "servers",
    "tests/client/": "client",
    "tests/services/db/": "databases",
    "tests/api/": "api",
    "tests/unit/test_wheel.py": "wheel",
    "tests/doc/test_tutorial.py": "tutorial",
    "tests/doc/": "doc",
}
"""Beginnings of the names of tests -> what they run together with, in one process, in this order.

Where the longest of them takes longer than all tests shared among the processes, it is to be divided.
"""


def pytest_configure(config: pytest.Config) -> None:
    """A shell lets what it starts in the background ignore Ctrl-C; the programs that are tested must not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # How long an example takes says how busy the machine is: what must be fast is measured elsewhere.
    hypothesis.settings.register_profile(
        "stoker", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("stoker")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PaceReport())


class Scheduling(LoadScopeScheduling):
    """The marks by which pytest-xdist 3.8 keeps tests together do not work with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        lane = next((lane for name, lane in TOGETHER.items() if nodeid.startswith(name)), nodeid)
        return nodeid.partition("::")[0] if lane == FILE else lane


def pytest_xdist_make_scheduler(config: pytest.Config, log: typing.Any) -> Scheduling:
    """In the process that hands out the tests."""
    config.option.loadscopereorder = False  # The order is ours.
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collected tests, and what they have imported, out of each later search for garbage.

    It took a fifth of the time of tests that run in this process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


ALONE = ("tests/process/", "tests/services/")
"""Where the Makefile looks for tests that run alone: to look everywhere takes ten seconds more."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process the order stays as it is."""
    for item in items:
        if item.get_closest_marker("alone") and not item.nodeid.startswith(ALONE):
            raise pytest.UsageError(
                f"{item.nodeid} runs alone, and would not be found: only {ALONE} are looked at"
            )
    if not hasattr(config, "workerinput"):
        return

    def place(item: pytest.Item) -> int:
        names = (index for index, name in enumerate(TOGETHER) if item.nodeid.startswith(name))
        return next(names, len(TOGETHER))

    items.sort(key=place)
