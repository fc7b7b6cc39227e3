"""A Galera cluster: MariaDB servers that write together, behind an HAProxy that sends all to one of them, or
each connection to the next one.
"""

import contextlib
import http.server
import pathlib
import threading
import typing
from collections.abc import Mapping, Sequence

import pymysql
from harness.fault_proxy import BusyServer
from harness.haproxy import HAProxy
from harness.mariadb import PASSWORD, SETTINGS, USER, MariaDB
from harness.ports import HOST, free_port
from harness.server import find_program
from harness.waiting import wait_for

LIBRARY = pathlib.Path("/usr/lib/galera/libgalera_smm.so")
SYNCED = "4"
"""The state of a node that serves, of wsrep_local_state."""
CHECK_WITHIN = 2
"""Seconds in which a node that serves answers a check."""
PROXY = """\
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    # A busy machine answers late; a node that does not answer is the check's own finding, within seconds.
    timeout check 10s
listen database
    bind ADDRESS
    option httpchk
    default-server inter 500 fall 2 rise 2 on-marked-down shutdown-sessions
SERVERS
"""


class GaleraNode(MariaDB):
    """A node of a cluster.

    :param number: its number in the cluster.
    :param peers: addresses at which all nodes of the cluster listen to each other.
    :param waits: whether statements wait until the node has all that others had committed before.
    """

    name = "Galera"
    settings: typing.ClassVar[Mapping[str, str]] = {
        **SETTINGS,
        "binlog-format": "ROW",
        "innodb-autoinc-lock-mode": "2",
        "performance-schema": "1",  # Galera's threads need it, or none starts.
        "wsrep-on": "ON",
        "wsrep-provider": str(LIBRARY),
        "wsrep-cluster-name": "stoker",
        "wsrep-sst-method": "rsync",
        "wsrep-slave-threads": "2",
    }

    def __init__(self, number: int, peers: Sequence[str], *, waits: bool = False) -> None:
        super().__init__()
        self._waits = waits
        self._number = number
        self._peers = peers
        self._transfer_ports = (free_port(), free_port())
        self.is_first = False

    def _prepare(self) -> None:
        find_program("rsync", "rsync")
        super()._prepare()

    def _command(self) -> list[str]:
        peer = self._peers[self._number]
        snapshots, increments = self._transfer_ports
        cluster = "" if self.is_first else ",".join(self._peers)
        # A node that was killed may be the only one that is left: it begins a cluster again.
        provider = {
            "gmcast.listen_addr": f"tcp://{peer}",
            "ist.recv_addr": f"{HOST}:{increments}",
            "pc.recovery": "true",
            "gcache.size": "64M",
            "evs.keepalive_period": "PT0.5S",
            "evs.suspect_timeout": "PT2S",
            "evs.inactive_timeout": "PT4S",
        }
        options = {
            "wsrep-sync-wait": "15" if self._waits else "0",
            "wsrep-node-name": f"node{self._number}",
            "wsrep-node-address": peer,
            "wsrep-sst-receive-address": f"{HOST}:{snapshots}",
            "wsrep-cluster-address": f"gcomm://{cluster}",
            "wsrep-provider-options": ";".join(f"{name}={value}" for name, value in provider.items()),
        }
        command = [part for part in super()._command() if part != "--skip-log-bin"]
        return [*command, *(f"--{name}={value}" for name, value in options.items())]

    def is_synced(self) -> bool:
        """Return whether it serves: it belongs to the majority, and has all of its writes."""
        try:
            connection = pymysql.connect(
                **{"unix_socket": str(self.directory / "socket"), "user": "root"},
                connect_timeout=CHECK_WITHIN,
                read_timeout=CHECK_WITHIN,
            )
            with connection, connection.cursor() as cursor:
                cursor.execute("SHOW STATUS WHERE Variable_name IN ('wsrep_local_state', 'wsrep_ready')")
                rows = cursor.fetchall()
        except pymysql.MySQLError:
            return False
        values = {str(name): str(value) for name, value in rows}
        return values == {"wsrep_local_state": SYNCED, "wsrep_ready": "ON"}

    def isolate(self, *, is_alone: bool) -> None:
        """Cut its connections to the other nodes, or allow them again."""
        self.execute(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={int(is_alone)}'")

    def _answers(self) -> bool:
        return self.is_synced()

    def _started(self) -> None:
        if self.is_first:
            super()._started()


class _Checks:
    """Answers to HAProxy whether nodes serve, each at a port of its own."""

    def __init__(self, nodes: Sequence[GaleraNode]) -> None:
        self._servers = [BusyServer((HOST, 0), _handler(node)) for node in nodes]
        self.ports = [int(server.server_address[1]) for server in self._servers]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.shutdown()
            server.server_close()


def _handler(node: GaleraNode) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:  # noqa: N802
            with contextlib.suppress(OSError):
                self.send_response(200 if node.is_synced() else 503)
                self.end_headers()

        def log_message(self, *args: typing.Any) -> None:
            """Log no requests."""

    return Handler


class Galera:
    """A cluster of three behind a proxy.

    :param several_writers: whether connections go to all nodes in turn, and not to the first one that serves.
    :ivar nodes: its nodes.
    :ivar proxy: the proxy.
    """

    def __init__(self, *, several_writers: bool = False) -> None:
        peers = [f"{HOST}:{free_port()}" for _ in range(3)]
        self._several_writers = several_writers
        self.nodes = [GaleraNode(number, peers, waits=several_writers) for number in range(3)]
        self._checks: _Checks | None = None
        self.proxy: HAProxy | None = None

    def start(self, folder: pathlib.Path) -> None:
        """Start all.

        :param folder: gets the configuration of the proxy.
        """
        self.nodes[0].is_first = True
        for node in self.nodes:
            node.start()
        # From now on it joins the others, however it is started again.
        self.nodes[0].is_first = False
        self._checks = _Checks(self.nodes)
        servers = [
            f"    server node{number} {HOST}:{node.port} check port {port}{self._role(number)}"
            for number, (node, port) in enumerate(zip(self.nodes, self._checks.ports, strict=True))
        ]
        config = folder / "haproxy.cfg"
        config.write_text(PROXY)
        self.proxy = HAProxy(config, {"ADDRESS": "FRONTEND", "SERVERS": "\n".join(servers)})
        self.proxy.start()
        wait_for(self._serves, 120, lambda: "the proxy leads to no node")

    def _role(self, number: int) -> str:
        """Return HAProxy's word for a node that gets connections only where those before it do not."""
        return " backup" if number and not self._several_writers else ""

    def _serves(self) -> bool:
        """Return whether the proxy leads to a node."""
        assert self.proxy is not None
        try:
            pymysql.connect(
                host=HOST, port=self.proxy.port, user=USER, password=PASSWORD, connect_timeout=CHECK_WITHIN
            ).close()
        except pymysql.MySQLError:
            return False
        return True

    def create_database(self) -> str:
        """Make an empty database; return its name."""
        return self.nodes[0].create_database().rpartition("/")[2].partition("?")[0]

    def close(self) -> None:
        """End all, and remove the data."""
        for server in (self.proxy, *self.nodes):
            if server is not None:
                server.close()
        if self._checks is not None:
            self._checks.close()
