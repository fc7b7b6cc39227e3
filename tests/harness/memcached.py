"""memcached."""

import os
import socket

from harness.ports import HOST
from harness.server import Server, find_program


class Memcached(Server):
    """A memcached server; it forgets everything when it stops."""

    name = "memcached"

    @property
    def url(self) -> str:
        """tooz URL."""
        return f"memcached://{HOST}:{self.port}"

    def _command(self) -> list[str]:
        # Started by root it requires an account to change to.
        user = ("-u", "nobody") if os.geteuid() == 0 else ()
        program = find_program("memcached", "memcached")
        return [str(program), "-l", HOST, "-p", str(self.port), "-U", "0", "-m", "64", *user]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=5) as connection:
                connection.sendall(b"version\r\n")
                return connection.recv(100).startswith(b"VERSION ")
        except OSError:
            return False
