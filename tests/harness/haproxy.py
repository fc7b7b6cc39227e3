"""HAProxy."""

import pathlib
import socket
from collections.abc import Mapping

from harness.ports import HOST
from harness.server import Server, find_program


class HAProxy(Server):
    """A proxy with a configuration of the project's, in which the addresses are those of a test.

    :param config: the file of the configuration.
    :param replacements: texts of the file, and those that take their places; `FRONTEND` in one of these is
        the address of the proxy.
    """

    name = "HAProxy"

    def __init__(self, config: pathlib.Path, replacements: Mapping[str, str]) -> None:
        super().__init__()
        self._config = config
        self._replacements = replacements

    @property
    def url(self) -> str:
        """The address of its frontend."""
        return f"http://{HOST}:{self.port}"

    def _prepare(self) -> None:
        text = self._config.read_text()
        for original, replacement in self._replacements.items():
            assert original in text, f"{self._config.name} has no {original}"
            text = text.replace(original, replacement.replace("FRONTEND", f"{HOST}:{self.port}"))
        (self.directory / "haproxy.cfg").write_text(text)

    def _command(self) -> list[str]:
        return [str(find_program("haproxy", "haproxy")), "-db", "-f", str(self.directory / "haproxy.cfg")]

    def _answers(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=5).close()
        except OSError:
            return False
        return True
