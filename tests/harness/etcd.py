"""etcd."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence

from harness import proctree
from harness.ports import HOST, free_port
from harness.server import Server, find_program
from harness.tcp_link import Link, Links, LinkState


def peer_address() -> str:
    """Return a free address at which a node may listen to others."""
    return f"http://{HOST}:{free_port()}"


class Etcd(Server):
    """A node of an etcd cluster, or a cluster of one.

    :param members: addresses of all nodes by their names, at which they listen to each other; None: this
        node is alone.
    :param member: the node's own name.
    :param listens_at: the address behind that of the node itself; None: it is the same.
    """

    name = "etcd"

    def __init__(
        self,
        members: Mapping[str, str] | None = None,
        member: str = "stoker",
        listens_at: str | None = None,
    ) -> None:
        super().__init__()
        self._listens_at = listens_at
        self._members = members
        self._member = member

    @property
    def url(self) -> str:
        """tooz URL."""
        return f"etcd3+http://{HOST}:{self.port}"

    @property
    def client_url(self) -> str:
        """Where its own API is."""
        return f"http://{HOST}:{self.port}"

    def _command(self) -> list[str]:
        if self._members is None:
            self._members = {self._member: peer_address()}
        peer = self._members[self._member]
        return [
            str(find_program("etcd", "etcd-server")),
            f"--name={self._member}",
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={self.client_url}",
            f"--advertise-client-urls={self.client_url}",
            f"--listen-peer-urls={self._listens_at or peer}",
            f"--initial-advertise-peer-urls={peer}",
            "--initial-cluster=" + ",".join(f"{name}={url}" for name, url in self._members.items()),
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

    def begin(self) -> None:
        """Start it without waiting: the first nodes of a cluster answer once there is a majority."""
        self._launch()


class EtcdCluster:
    """Nodes that reach each other by links, so that one can be cut off while its clients still reach it.

    :ivar nodes: the nodes.
    """

    def __init__(self, count: int = 3) -> None:
        self._links = Links()
        ports = [free_port() for _ in range(count)]
        self._ways: Sequence[Link] = [self._links.add((HOST, port)) for port in ports]
        members = {f"etcd-{number}": f"http://{HOST}:{way.port}" for number, way in enumerate(self._ways)}
        self.nodes = [
            Etcd(members, name, f"http://{HOST}:{port}") for name, port in zip(members, ports, strict=True)
        ]

    def start(self) -> None:
        """Start all nodes."""
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            node.wait_ready()

    def isolate(self, number: int, *, is_alone: bool) -> None:
        """Cut the connections between a node and the others, or allow them again."""
        pid = self.nodes[number].process.pid
        for other, way in enumerate(self._ways):
            if other == number:
                way.set(LinkState.CUT if is_alone else LinkState.OPEN)
            else:
                way.refuse(lambda port: is_alone and proctree.has_port(pid, port))

    def close(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.close()
        self._links.close()
