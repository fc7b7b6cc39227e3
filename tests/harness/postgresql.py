"""PostgreSQL."""

import pathlib
import signal
import uuid

import psycopg
from harness.ports import HOST
from harness.server import Server, find_program

USER = "stoker"
# With fsync off a crash of the machine loses data, while a killed server does not: what it wrote is with
# the kernel.  synchronous_commit stays on for that reason; without fsync it costs one write.
SETTINGS = {
    "listen_addresses": HOST,
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "max_connections": "400",
    "shared_buffers": "128MB",
    # In its directory, which is removed: a killed server leaves nothing in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
}


def _program(name: str) -> pathlib.Path:
    return find_program(name, "postgresql", f"usr/lib/postgresql/*/bin/{name}")


class PostgreSQL(Server):
    """A PostgreSQL server; everybody on this machine may log in as its superuser."""

    name = "PostgreSQL"
    account = "postgres"  # The server refuses to run as root.
    stop_signal = signal.SIGINT  # "Fast": does not wait for clients to go.

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        """:param settings: added to those above."""
        super().__init__()
        self._settings = {**SETTINGS, **(settings or {})}

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the database `postgres`."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://{USER}@{HOST}:{self.port}/{database}"

    def create_database(self) -> str:
        """Make an empty database; its SQLAlchemy URL."""
        name = f"stoker_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url_of(name)

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement outside of a transaction; the rows, if it gives any."""
        with psycopg.connect(self._dsn(database), autocommit=True, connect_timeout=60) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _dsn(self, database: str) -> str:
        return f"postgresql://{USER}@{HOST}:{self.port}/{database}"

    def _prepare(self) -> None:
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
        self._run(_program("initdb"), f"--username={USER}", *options, "-D", self.directory / "data")

    def _command(self) -> list[str]:
        settings = {**self._settings, "port": str(self.port), "unix_socket_directories": str(self.directory)}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(_program("postgres")), "-D", str(self.directory / "data"), *arguments]

    def _answers(self) -> bool:
        try:
            return self.execute("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False
