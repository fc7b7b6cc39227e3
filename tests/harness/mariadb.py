"""MariaDB."""

import pathlib
import typing
import uuid
from collections.abc import Mapping, Sequence

import pymysql
from harness.ports import HOST
from harness.server import Server, find_program

USER = PASSWORD = "stoker"
# What a commit wrote is with the kernel (2), so a killed server loses nothing; a crash of the machine would.
SETTINGS = {
    "bind-address": HOST,
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-doublewrite": "0",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "64M",
    "max-connections": "400",
    "performance-schema": "0",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
}


class MariaDB(Server):
    """A MariaDB server.

    :cvar settings: of the server, without what differs from one to the next.
    """

    name = "MariaDB"
    account = "mysql"  # The server refuses to run as root.
    settings: typing.ClassVar[Mapping[str, str]] = SETTINGS

    def __init__(self) -> None:
        super().__init__()
        self._has_account = False

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the server, with no database chosen."""
        return f"mysql+pymysql://{USER}:{PASSWORD}@{HOST}:{self.port}/"

    def url_of(self, database: str) -> str:
        """SQLAlchemy URL of a database."""
        return f"{self.url}{database}?charset=utf8mb4"

    def create_database(self) -> str:
        """Make an empty database; its SQLAlchemy URL."""
        name = f"stoker_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def execute(self, sql: str, database: str | None = None) -> Sequence[tuple[object, ...]]:
        """Run one statement as root, committed at once; the rows, if it gives any."""
        connection = pymysql.connect(
            unix_socket=str(self._socket), user="root", database=database, autocommit=True, connect_timeout=60
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    @property
    def _socket(self) -> pathlib.Path:
        return self.directory / "socket"

    @property
    def _places(self) -> dict[str, str]:
        """Where it writes.  A server that starts removes all temporary tables in its tmpdir, whosesoever."""
        return {"datadir": str(self.directory / "data"), "tmpdir": str(self.directory)}

    def _prepare(self) -> None:
        self._has_account = False
        program = find_program("mariadb-install-db", "mariadb-server")
        options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        speed = ["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"]
        places = [f"--{name}={path}" for name, path in self._places.items()]
        self._run(program, *options, *speed, *places)

    def _command(self) -> list[str]:
        settings = {
            **self.settings,
            "port": str(self.port),
            **self._places,
            "socket": str(self._socket),
            "pid-file": str(self.directory / "pid"),
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        program = find_program("mariadbd", "mariadb-server")
        return [str(program), "--no-defaults", "--skip-name-resolve", "--skip-log-bin", *arguments]

    def _answers(self) -> bool:
        try:
            return list(self.execute("SELECT 1")) == [(1,)]
        except pymysql.MySQLError:
            return False

    def _started(self) -> None:
        if not self._has_account:
            self.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'")
            self.execute(f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%'")
            self._has_account = True
