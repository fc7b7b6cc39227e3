"""etcd, ZooKeeper, Redis and memcached."""

import glob
import socket
import urllib.request

from .server import Server, free_port, program


class Etcd(Server):
    """One node."""

    def __init__(self) -> None:
        super().__init__()
        self.peer_port = free_port()

    def command(self) -> list[str]:
        """See Server."""
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        return [
            program("etcd"),
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def probe(self) -> bool:
        """See Server."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1) as answer:
                return b"true" in answer.read()
        except OSError:
            return False

    @property
    def url(self) -> str:
        """For tooz."""
        return f"etcd3+http://127.0.0.1:{self.port}"


class ZooKeeper(Server):
    """One node."""

    def prepare(self) -> None:
        """See Server."""
        (self.directory / "zoo.cfg").write_text(
            f"tickTime=500\ndataDir={self.directory / 'data'}\nclientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n"
            "maxClientCnxns=0\n"
        )

    def command(self) -> list[str]:
        """See Server."""
        jars = ":".join(
            [*glob.glob("/usr/share/java/zookeeper.jar"), *sorted(glob.glob("/usr/share/java/*.jar"))]
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [program("java"), "-Xmx128m", "-cp", jars, main, str(self.directory / "zoo.cfg")]

    def probe(self) -> bool:
        """See Server."""
        return _says(self.port, b"ruok", b"imok")

    @property
    def url(self) -> str:
        """For tooz."""
        return f"kazoo://127.0.0.1:{self.port}"


class Redis(Server):
    """Keeps its data over restarts."""

    def command(self) -> list[str]:
        """See Server."""
        return [
            program("redis-server"),
            *("--port", str(self.port)),
            *("--bind", "127.0.0.1"),
            *("--dir", str(self.directory)),
            *("--appendonly", "yes"),
            *("--save", ""),
        ]

    def probe(self) -> bool:
        """See Server."""
        return _says(self.port, b"PING\r\n", b"+PONG")

    @property
    def url(self) -> str:
        """For tooz."""
        return f"redis://127.0.0.1:{self.port}"


class Memcached(Server):
    """Forgets everything at a restart."""

    def command(self) -> list[str]:
        """See Server; as root it wants to be told an account."""
        return [program("memcached"), "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-m", "16"]

    def probe(self) -> bool:
        """See Server."""
        return _says(self.port, b"version\r\n", b"VERSION")

    @property
    def url(self) -> str:
        """For tooz."""
        return f"memcached://127.0.0.1:{self.port}"


def _says(port: int, question: bytes, answer: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as link:
            link.sendall(question)
            link.settimeout(1)
            return link.recv(100).startswith(answer)
    except OSError:
        return False
