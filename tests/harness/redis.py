"""Redis."""

import socket

from harness.ports import HOST
from harness.server import Server, find_program


class Redis(Server):
    """A Redis server that keeps its data over a restart and over a kill."""

    name = "Redis"

    @property
    def url(self) -> str:
        """tooz URL."""
        return f"redis://{HOST}:{self.port}"

    def _command(self) -> list[str]:
        return [
            str(find_program("redis-server", "redis-server")),
            *("--bind", HOST),
            *("--port", str(self.port)),
            *("--dir", str(self.directory)),
            *("--appendonly", "yes"),
            *("--appendfsync", "no"),
            *("--save", ""),
        ]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=5) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100) == b"+PONG\r\n"
        except OSError:
            return False
