"""The sets of servers on which Stoker runs in chaos."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence

from harness.etcd import Etcd, EtcdCluster
from harness.galera import Galera
from harness.mariadb import PASSWORD, USER, MariaDB
from harness.ports import HOST
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import Server
from harness.tcp_link import Address

DATABASE = "database"
BROKER = "broker"
GROUP = "group"
QUORUM = """\
[oslo_messaging_rabbit]
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
use_queue_manager = true
rabbit_stream_fanout = false
[oslo_concurrency]
lock_path = {folder}/lock
"""
"""The options of a cluster of brokers, as the guide to installation has them."""


@dataclasses.dataclass(frozen=True)
class Switch:
    """A fault of a back end itself, by its own means.

    :ivar begin: lets the fault happen.
    :ivar end: ends it.
    """

    kind: str
    target: str
    begin: Callable[[], None]
    end: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class Backend:
    """A server or a cluster, as daemons reach it.

    :ivar addresses: for each address of the URL the ports behind it, in the order in which they are tried.
    :ivar url: function from one port for each address to the URL.
    :ivar nodes: servers that are killed, paused and restarted, by their names.
    :ivar switches: further faults.
    """

    addresses: Sequence[Sequence[Address]]
    url: Callable[[Sequence[int]], str]
    nodes: Sequence[tuple[str, Server]]
    switches: Sequence[Switch] = ()

    @property
    def direct_url(self) -> str:
        """The URL without anything in between."""
        return self.url([targets[0][1] for targets in self.addresses])


@dataclasses.dataclass(frozen=True)
class BackendSet:
    """The back ends of one installation.

    :ivar roles: the back ends by their roles; empty: Stoker needs no server.
    :ivar options: further lines of the configuration.
    :ivar close: ends all servers.
    """

    roles: Mapping[str, Backend]
    options: str = ""
    close: Callable[[], None] = lambda: None


def rabbitmq_backend(server: RabbitMQ) -> Backend:
    """Return the broker of one node, whose disk can be full."""
    vhost = server.create_vhost().rpartition("/")[2]
    # An alarm blocks publishers as a full disk does.
    full = Switch(
        *("disk full", "broker"),
        lambda: _ignore(server.control("set_disk_free_limit", str(10**15))),
        lambda: _ignore(server.control("set_disk_free_limit", "50MB")),
    )
    # Whatever became of the first: without its vhost no daemon would ever connect again.
    emptied = Switch(
        "emptied", "broker", lambda: server.empty_vhost(vhost), lambda: server.provide_vhost(vhost)
    )
    return Backend(
        [[(HOST, server.port)]],
        lambda ports: f"rabbit://guest:guest@{HOST}:{ports[0]}/{vhost}",
        [("rabbitmq", server)],
        [full, emptied],
    )


def postgresql_backend(server: PostgreSQL, faults: Sequence[Switch] = ()) -> Backend:
    """Return the database of one node, which can lose its connections and the right to write.

    :param faults: faults beyond those.
    """
    database = server.create_database().rpartition("/")[2]
    options = "connect_timeout=5&tcp_user_timeout=20000"

    def terminate() -> None:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )

    def set_writable(*, writable: bool) -> None:
        server.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'off' if writable else 'on'}")
        server.execute("SELECT pg_reload_conf()")

    return Backend(
        [[(HOST, server.port)]],
        lambda ports: f"postgresql+psycopg://stoker@{HOST}:{ports[0]}/{database}?{options}",
        [("postgresql", server)],
        [
            *faults,
            Switch("connections terminated", "database", terminate, lambda: None),
            Switch(
                *("read only", "database"),
                lambda: set_writable(writable=False),
                lambda: set_writable(writable=True),
            ),
        ],
    )


def mysql_url(port: int, database: str) -> str:
    """Return the URL of a database of a MariaDB."""
    options = "charset=utf8mb4&connect_timeout=5&read_timeout=60"
    return f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{port}/{database}?{options}"


def _group_backend(server: Server, url: Callable[[Sequence[int]], str]) -> Backend:
    """Return the coordination backend of one node, which can lose its data."""
    emptied = Switch("emptied", "group", server.lose_data, server.start)
    return Backend([[(HOST, server.port)]], url, [(server.name.lower(), server)], [emptied])


def _disk_faults(server: Server) -> list[Switch]:
    """Return the fault of a full disk, where this account may make a disk for it."""
    if not server.use_small_disk():
        print(f"no full disk of {server.name}: this account may not mount file systems", flush=True)
        return []
    return [Switch("disk full", "database", server.fill_disk, server.free_disk)]


def _postgresql(_: pathlib.Path) -> BackendSet:
    database = PostgreSQL({"max_wal_size": "96MB", "min_wal_size": "32MB"})
    faults = _disk_faults(database)
    broker = RabbitMQ()
    group = Etcd()
    servers: Sequence[Server] = (database, broker, group)
    _start(servers)
    roles = {
        DATABASE: postgresql_backend(database, faults),
        BROKER: rabbitmq_backend(broker),
        GROUP: _group_backend(group, lambda ports: f"etcd3+http://{HOST}:{ports[0]}"),
    }
    return BackendSet(roles, close=lambda: _close(servers))


def _mariadb(_: pathlib.Path) -> BackendSet:
    database = MariaDB()
    faults = _disk_faults(database)
    broker = RabbitMQ()
    group = Redis()
    servers: Sequence[Server] = (database, broker, group)
    _start(servers)
    name = database.create_database().rpartition("/")[2].partition("?")[0]
    roles = {
        DATABASE: Backend(
            [[(HOST, database.port)]],
            lambda ports: mysql_url(ports[0], name),
            [("mariadb", database)],
            faults,
        ),
        BROKER: rabbitmq_backend(broker),
        GROUP: _group_backend(group, lambda ports: f"redis://{HOST}:{ports[0]}"),
    }
    return BackendSet(roles, close=lambda: _close(servers))


def _galera(folder: pathlib.Path, *, several_writers: bool = False) -> BackendSet:
    """Return clusters of three each, as OpenStack is operated.

    :param several_writers: whether daemons write to all nodes of the database, against the guide.
    """
    galera = Galera(several_writers=several_writers)
    first = RabbitMQ()
    brokers = [first, RabbitMQ(first), RabbitMQ(first)]
    group = EtcdCluster()

    def close() -> None:
        galera.close()
        group.close()
        _close(brokers)

    try:
        galera.start(folder)
        group.start()
        for broker in brokers:
            broker.start()
        for broker in brokers[1:]:
            broker.join(first)
    except BaseException:
        close()
        raise
    roles = {DATABASE: _galera_backend(galera), BROKER: _broker_cluster(brokers), GROUP: _etcd_cluster(group)}
    return BackendSet(roles, QUORUM.format(folder=folder), close)


def _galera_backend(galera: Galera) -> Backend:
    assert galera.proxy is not None
    name = galera.create_database()
    return Backend(
        [[(HOST, galera.proxy.port)]],
        lambda ports: mysql_url(ports[0], name),
        [(f"galera-{number}", node) for number, node in enumerate(galera.nodes)],
        [
            Switch(
                *("partitioned", f"galera-{number}"),
                functools.partial(node.isolate, is_alone=True),
                functools.partial(node.isolate, is_alone=False),
            )
            for number, node in enumerate(galera.nodes)
        ],
    )


def _broker_cluster(brokers: Sequence[RabbitMQ]) -> Backend:
    vhost = brokers[0].create_vhost().rpartition("/")[2]

    def url(ports: Sequence[int]) -> str:
        return "rabbit://" + ",".join(f"guest:guest@{HOST}:{port}" for port in ports) + f"/{vhost}"

    return Backend(
        [[(HOST, broker.port)] for broker in brokers],
        url,
        [(f"rabbitmq-{number}", broker) for number, broker in enumerate(brokers)],
        [
            Switch(
                *("partitioned", f"rabbitmq-{number}"),
                functools.partial(broker.isolate, others, is_alone=True),
                functools.partial(broker.isolate, others, is_alone=False),
            )
            for number, broker in enumerate(brokers)
            for others in [[other for other in brokers if other is not broker]]
        ],
    )


def _etcd_cluster(group: EtcdCluster) -> Backend:
    """Return the cluster, with each node behind the one address in a fixed order."""
    return Backend(
        [[(HOST, etcd.port) for etcd in group.nodes]],
        lambda ports: f"etcd3+http://{HOST}:{ports[0]}",
        [(f"etcd-{number}", etcd) for number, etcd in enumerate(group.nodes)],
        [
            Switch(
                *("partitioned", f"etcd-{number}"),
                functools.partial(group.isolate, number, is_alone=True),
                functools.partial(group.isolate, number, is_alone=False),
            )
            for number in range(len(group.nodes))
        ],
    )


def _start(servers: Sequence[Server]) -> None:
    try:
        for server in servers:
            server.start()
    except BaseException:
        _close(servers)
        raise


def _close(servers: Sequence[Server]) -> None:
    for server in servers:
        server.close()


def _ignore(_: object) -> None:
    """Drop a result."""


EMBEDDED = "embedded"
SETS: dict[str, Callable[[pathlib.Path], BackendSet]] = {
    "postgresql": _postgresql,
    "galera": _galera,
    "writers": functools.partial(_galera, several_writers=True),
    "mariadb": _mariadb,
    EMBEDDED: lambda _: BackendSet({}),
}
"""The sets by their names; each gets a folder for files of its own."""
