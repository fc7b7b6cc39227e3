"""RabbitMQ."""

import pathlib
import typing
import uuid
from collections.abc import Sequence

import amqp
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.server import Server, find_program

PROGRAMS = pathlib.Path("/usr/lib/rabbitmq/bin")
PACKAGE = "rabbitmq-server"
VHOSTS_AT_ONCE = 8
COOKIE = "stokertests"
# Idle schedulers must not spin: there are as many as cores, and the tests need the cores.
ERLANG = "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
CONFIGURATION = """\
listeners.tcp.1 = {host}:{port}
disk_free_limit.absolute = 50MB
handshake_timeout = 300000
log.console = true
log.console.level = info
log.file = false
cluster_partition_handling = autoheal
"""
ADD_VHOST = (
    'rabbit_vhost:add(<<"{name}">>, <<"tests">>), '
    "rabbit_auth_backend_internal:set_permissions("
    '<<"guest">>, <<"{name}">>, <<".*">>, <<".*">>, <<".*">>, <<"tests">>)'
)


class RabbitMQ(Server):
    """A RabbitMQ node with a port mapper (epmd), cookie and home of its own, and no plugins.

    :param mapper: another node, whose port mapper this one uses, so that they find each other.
    """

    name = "RabbitMQ"
    start_within = 90.0

    def __init__(self, mapper: "RabbitMQ | None" = None) -> None:
        super().__init__()
        self._mapper = mapper
        self._ready_vhosts: list[str] = []
        self._epmd: Process | None = None
        self._epmd_port = 0
        self._node_port = 0

    @property
    def url(self) -> str:
        """oslo.messaging URL of the vhost `/`."""
        return self.url_of("")

    def url_of(self, vhost: str) -> str:
        """oslo.messaging URL of a vhost; "" stands for `/`."""
        return f"rabbit://guest:guest@{HOST}:{self.port}/{vhost}"

    @property
    def node(self) -> str:
        """Its name in a cluster."""
        return f"stoker{self.port}@localhost"

    @property
    def epmd_port(self) -> int:
        """The port of its port mapper, once it was started."""
        return self._epmd_port

    def join(self, other: "RabbitMQ") -> None:
        """Join the cluster of another node, without what this one has."""
        self.control("stop_app")
        self.control("reset")
        self.control("join_cluster", other.node)
        self.control("start_app")

    def isolate(self, others: Sequence["RabbitMQ"], *, is_alone: bool) -> None:
        """Cut its connections to other nodes by a wrong password for them, or allow them again."""
        cookie = "wrong" if is_alone else COOKIE
        for other in others:
            self.control("eval", f"erlang:set_cookie('{other.node}', {cookie}).")
            if is_alone:
                self.control("eval", f"erlang:disconnect_node('{other.node}').")

    def create_vhost(self) -> str:
        """Make an empty vhost; its oslo.messaging URL."""
        if not self._ready_vhosts:
            # The control program takes a second to start, so each call makes several.
            names = [f"stoker-{uuid.uuid4().hex}" for _ in range(VHOSTS_AT_ONCE)]
            self.control("eval", ", ".join(ADD_VHOST.format(name=name) for name in names) + ".")
            self._ready_vhosts = names
        return self.url_of(self._ready_vhosts.pop(0))

    def empty_vhost(self, vhost: str) -> None:
        """Lose all that a vhost has."""
        self.control("delete_vhost", vhost)
        self.provide_vhost(vhost)

    def provide_vhost(self, vhost: str) -> None:
        """Make a vhost, unless it exists."""
        if vhost not in self.control("list_vhosts", "--silent").split():
            self.control("add_vhost", vhost)
        self.control("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl; what it printed.

        :raises ProcessEnded: the command failed.
        """
        return self._run(PROGRAMS / "rabbitmqctl", *arguments, env=self._environment())

    def __getstate__(self) -> dict[str, typing.Any]:
        return {**super().__getstate__(), "_epmd": None, "_ready_vhosts": []}

    def close(self) -> None:
        super().close()
        if self._epmd is not None:
            self._epmd.kill()
        self._epmd = None
        self._ready_vhosts = []

    def _prepare(self) -> None:
        find_program("rabbitmq-server", PACKAGE)
        self._epmd_port = free_port() if self._mapper is None else self._mapper.epmd_port
        self._node_port = free_port()
        (self.directory / "rabbitmq.conf").write_text(CONFIGURATION.format(host=HOST, port=self.port))
        (self.directory / "enabled_plugins").write_text("[].\n")
        cookie = self.directory / ".erlang.cookie"
        cookie.write_text(COOKIE)
        cookie.chmod(0o400)

    def _command(self) -> list[str]:
        if self._mapper is None and (self._epmd is None or not self._epmd.is_running):
            # Otherwise the node starts a port mapper as a daemon, which nobody would stop.
            self._epmd = Process(
                [find_program("epmd", PACKAGE), "-address", HOST, "-port", str(self._epmd_port)],
                log=self.directory / "epmd.log",
                env=self._environment(),
            )
            self._epmd.wait_for_port(self._epmd_port)
        # The program of that name in /usr/sbin is a wrapper: it changes to the system's account and folders.
        return [str(PROGRAMS / "rabbitmq-server")]

    def _environment(self) -> dict[str, str]:
        directory = self.directory
        return {
            "HOME": str(directory),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(directory / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG,
        }

    def _answers(self) -> bool:
        try:
            with amqp.Connection(f"{HOST}:{self.port}", connect_timeout=5, read_timeout=5) as connection:
                return bool(connection.connected)
        except (OSError, amqp.AMQPError):
            return False
