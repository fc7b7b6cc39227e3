"""etcd."""

import json
import urllib.error
import urllib.request

from harness.ports import HOST, free_port
from harness.server import Server, find_program


class Etcd(Server):
    """An etcd cluster of one."""

    name = "etcd"

    def __init__(self) -> None:
        super().__init__()
        self._peer_port: int | None = None

    @property
    def url(self) -> str:
        """tooz URL."""
        return f"etcd3+http://{HOST}:{self.port}"

    @property
    def client_url(self) -> str:
        """Where its own API is."""
        return f"http://{HOST}:{self.port}"

    def _command(self) -> list[str]:
        if self._peer_port is None:
            self._peer_port = free_port()
        peer = f"http://{HOST}:{self._peer_port}"
        return [
            str(find_program("etcd", "etcd-server")),
            "--name=stoker",
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={self.client_url}",
            f"--advertise-client-urls={self.client_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=stoker={peer}",
            "--logger=zap",
            "--log-outputs=stderr",
        ]

    def _environment(self) -> dict[str, str]:
        return {"GOMAXPROCS": "1"}  # more threads take more of the processor, for nothing here

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.client_url}/health", timeout=5) as answer:
                return bool(json.load(answer).get("health") == "true")
        except (OSError, urllib.error.URLError, ValueError):
            return False
