"""ZooKeeper."""

import pathlib
import socket

from harness.ports import HOST
from harness.server import MissingServer, Server, find_program

JAR = pathlib.Path("/usr/share/java/zookeeper.jar")
PACKAGE = "zookeeper"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# ZooKeeper allows sessions of 2 to 20 ticks.
TICK_MILLISECONDS = 500
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no")


class ZooKeeper(Server):
    """A ZooKeeper server of one; its shortest session timeout is one second."""

    name = "ZooKeeper"
    # Stopped by SIGTERM, a JVM ends with 143.

    @property
    def url(self) -> str:
        """tooz URL."""
        return f"kazoo://{HOST}:{self.port}"

    def _prepare(self) -> None:
        settings = {
            "dataDir": self.directory / "data",
            "clientPort": self.port,
            "clientPortAddress": HOST,
            "tickTime": TICK_MILLISECONDS,
            "maxSessionTimeout": 60000,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,srvr",
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.directory / "zoo.cfg").write_text("".join(lines))
        (self.directory / "log4j.properties").write_text(
            "log4j.rootLogger=INFO, C\n"
            "log4j.appender.C=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.C.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.C.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n\n"
        )

    def _command(self) -> list[str]:
        java = find_program("java", PACKAGE)
        if not JAR.exists():
            raise MissingServer(str(JAR), PACKAGE)
        # Our directory first, for log4j.properties; never the system's /etc/zookeeper.
        classes = f"{self.directory}:{JAR}"
        return [str(java), *JVM, "-cp", classes, MAIN, str(self.directory / "zoo.cfg")]

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.makefile("rb").read()
        except OSError:
            return False
