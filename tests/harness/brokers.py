"""RabbitMQ."""

import itertools
import os
import pathlib
import subprocess

from .server import Server, free_port, program


class RabbitMQ(Server):
    """With an epmd, a cookie and a node name of its own, so that it never meets another one."""

    user = "rabbitmq"
    ready_within = 120.0
    _numbers = itertools.count(1)

    def __init__(self) -> None:
        super().__init__()
        self.distribution_port = free_port()
        self.epmd_port = free_port()
        self._epmd: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """See Server."""
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "loopback_users = none\n"
            "log.console = true\nlog.console.level = warning\n"
            "disk_free_limit.absolute = 50MB\n"
        )
        (self.directory / "enabled_plugins").write_text("[].\n")

    def environment(self) -> dict[str, str]:
        """See Server."""
        home = str(self.directory)
        return {
            "HOME": home,
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"stoker{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_CONFIG_FILE": f"{home}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/enabled_plugins",
            "RABBITMQ_MNESIA_BASE": f"{home}/mnesia",
            "RABBITMQ_LOG_BASE": f"{home}/logs",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +S 2:2",
        }

    def _folder(self) -> str:
        found = sorted(pathlib.Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))
        return str(found[-1]) if found else "/usr/sbin"

    def command(self) -> list[str]:
        """See Server."""
        return [program("rabbitmq-server", self._folder())]

    def launch(self) -> None:
        """See Server.  epmd is started first, as a process of ours that can be stopped by its pid."""
        if self._epmd is None:
            self._epmd = subprocess.Popen(
                [program("epmd"), "-port", str(self.epmd_port), "-address", "127.0.0.1"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        super().launch()

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl; its output."""
        return self.run_as_server(program("rabbitmqctl", self._folder()), "-q", *arguments).stdout

    def url(self, vhost: str = "/") -> str:
        """For oslo.messaging."""
        return f"rabbit://guest:guest@127.0.0.1:{self.port}/{'' if vhost == '/' else vhost}"

    def create_vhost(self) -> str:
        """A new, empty virtual host: its URL."""
        name = f"stoker{os.getpid()}x{next(self._numbers)}"
        self.control("add_vhost", name)
        self.control("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
        return self.url(name)

    def probe(self) -> bool:
        """See Server: the port opens before the broker is ready for clients."""
        if not super().probe():
            return False
        return (
            self.run_as_server(
                program("rabbitmqctl", self._folder()), "-q", "await_startup", check=False
            ).returncode
            == 0
        )

    def stop(self) -> None:
        """See Server."""
        super().stop()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(10)
            self._epmd = None
