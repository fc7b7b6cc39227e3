"""Servers for the tests: each is started when a test first asks for it, and lives until the end of the run.

All processes of a run (``-n``) share them.  A test that stops, pauses or kills a server starts one of its own
(``with RabbitMQ() as server:``).

Tests that share a Stoker run in one process, one after the other: a lane.  What takes longest comes first.
"""

import harness.clean_start  # noqa: F401  # isort: skip

import gc
import os
import signal
import typing
from collections.abc import Generator, Iterator

from stoker.cli.daemon import threading_backend  # noqa: F401  - first: it decides how oslo works, for all tests

import hypothesis  # isort: skip
import pytest
from harness import environment, permitted
from harness.barbican import Barbican
from harness.etcd import Etcd
from harness.keystone import Keystone
from harness.mariadb import MariaDB
from harness.memcached import Memcached
from harness.once import run_of
from harness.pace_report import PaceReport
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.scheduling import Budget, Lane, Lanes, PooledScheduling, yield_the_processor
from harness.server import MissingServer, Server
from harness.shared import shared
from harness.tiers import Tier, TierSelection
from harness.zookeeper import ZooKeeper
from stoker.template.sandbox import pool

# An expression must not fail because the host pauses; its processor time has a limit of its own.
pool.WALL_CLOCK = 60.0
pool.install()  # As a program does: templates and conductors of tests evaluate in helper processes.

S = typing.TypeVar("S", bound=Server)


def _shared(kind: type[S], factory: pytest.TempPathFactory) -> S:
    try:
        return shared(kind, *run_of(factory.getbasetemp()))
    except MissingServer as error:
        # Never skipped: a test that was not run proves nothing.
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> RabbitMQ:
    return _shared(RabbitMQ, tmp_path_factory)


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> PostgreSQL:
    return _shared(PostgreSQL, tmp_path_factory)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> MariaDB:
    return _shared(MariaDB, tmp_path_factory)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Etcd:
    return _shared(Etcd, tmp_path_factory)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Redis:
    return _shared(Redis, tmp_path_factory)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> ZooKeeper:
    return _shared(ZooKeeper, tmp_path_factory)


@pytest.fixture(scope="session")
def memcached(tmp_path_factory: pytest.TempPathFactory) -> Memcached:
    return _shared(Memcached, tmp_path_factory)


@pytest.fixture(scope="session")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Keystone:
    return _shared(Keystone, tmp_path_factory)


@pytest.fixture(scope="session")
def barbican(keystone: Keystone) -> Iterator[Barbican]:
    with Barbican(keystone) as server:
        yield server


@pytest.fixture(scope="module")
def registries() -> Iterator[None]:
    """The caller's settings of pip, npm and apt, with certificates, for tests that install something."""
    with pytest.MonkeyPatch.context() as patch:
        for name, text in environment.registries(os.environ).items():
            patch.setenv(name, text)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of all folders: pytest asks the outermost file only."""
    parser.addoption("--seeds", type=int, default=8, help="how many random schedules the simulation tries")
    parser.addoption(
        "--seed", type=int, default=None, help="the one schedule that the simulation tries, or chaos"
    )
    parser.addoption("--focus", default=None, help="a fault and an action of `make simulate`: kill:UPDATE")
    parser.addoption(
        "--servers", type=int, default=12, help="how many servers there are in the chaos on a cloud"
    )
    parser.addoption(
        "--tier", type=Tier, choices=list(Tier), default=None, help="which tests of those that are named"
    )
    parser.addoption(
        "--budget", type=float, default=None, help="seconds after which no test begins; what is left is named"
    )


LANES = Lanes(
    [
        Lane("tests/process/test_deployment.py", "daemons, first half"),
        Lane("tests/process/test_cancel.py", "daemons, first half"),
        Lane("tests/process/test_nested.py", "daemons, first half"),
        Lane("tests/process/test_secrets.py", "daemons, first half"),
        Lane("tests/services/rpc/", "daemons, first half"),
        Lane("tests/process/test_configuration.py", "configuration"),
        Lane("tests/process/test_breakpoints.py", "daemons, second half"),
        Lane("tests/process/test_takeover.py", "daemons, second half"),
        Lane("tests/process/test_observed.py", "daemons, second half"),
        Lane("tests/process/test_upgrade.py", "daemons, second half"),
        Lane("tests/process/test_handbook.py", "handbook"),
        Lane("tests/process/test_clocks.py", "daemons, second half"),
        Lane("tests/process/test_expressions.py", "daemons, second half"),
        Lane("tests/process/test_half_open.py", "daemons, second half"),
        # In one process, for each one that has a test of these makes a cloud, a Heat and forty stacks.
        Lane("tests/heat/", "heat"),
        # Each registers a service of the same type with the one cloud, and waits for the other.
        Lane("tests/cloud/test_horizon.py", "orchestration"),
        Lane("tests/cloud/test_adopt_resources.py", "orchestration"),
        Lane("tests/cloud/test_event_sinks.py", "messaging"),
        Lane("tests/cloud/test_zaqar_types.py", "messaging"),
        Lane("tests/cloud/"),
        Lane("tests/console/", "console"),
        Lane("tests/deploy/", "deploy"),
        Lane("tests/suites/", "suites"),
        Lane("tests/process/"),
        Lane("tests/chaos/", "chaos"),
        Lane("tests/services/ring/", "ring"),
        Lane("tests/services/test_harness_", "servers"),
        Lane("tests/client/", "client"),
        Lane("tests/services/db/", "databases"),
        Lane("tests/api/", "api"),
        Lane("tests/attack/", "attack"),
        Lane("tests/fuzz/", "fuzz"),
        Lane("tests/mutate/", "mutate"),
        Lane("tests/unit/test_wheel.py", "wheel"),
        Lane("tests/doc/test_tutorial.py", "tutorial"),
        Lane("tests/doc/", "doc"),
    ]
)
"""Where the longest takes longer than all tests shared among the processes, it is to be divided."""


BUDGET = pytest.StashKey[Budget]()


def pytest_configure(config: pytest.Config) -> None:
    """A shell lets what it starts in the background ignore Ctrl-C; the programs that are tested must not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # How long an example takes says how busy the machine is: what must be fast is measured elsewhere.
    hypothesis.settings.register_profile(
        "stoker", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("stoker")
    config.stash[BUDGET] = Budget(config.option.budget)
    config.pluginmanager.register(TierSelection(config.option.tier))
    if config.option.tier == Tier.TEST:
        if not hasattr(config, "workerinput"):
            permitted.restrict()
        permitted.watch()
    if hasattr(config, "workerinput"):
        yield_the_processor()
    else:
        config.pluginmanager.register(config.stash[BUDGET])
        config.pluginmanager.register(PaceReport())


def pytest_xdist_make_scheduler(config: pytest.Config, log: typing.Any) -> PooledScheduling:
    """Run in the process that distributes the tests."""
    return PooledScheduling(config, log, lanes=LANES, budget=config.stash[BUDGET])


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
"""Where the Makefile searches for tests that run alone: to search everywhere takes ten seconds more."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process the order stays as it is."""
    for item in items:
        if item.get_closest_marker("alone") and not item.nodeid.startswith(ALONE):
            raise pytest.UsageError(
                f"{item.nodeid} runs alone, and would not be found: only {ALONE} are looked at"
            )
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: LANES.place(item.nodeid))
