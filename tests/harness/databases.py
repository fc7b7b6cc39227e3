"""PostgreSQL and MariaDB."""

import glob
import itertools
import os

import sqlalchemy as sa

from .server import Server, program


class PostgreSQL(Server):
    """With the safety of its disk writes off: nothing here has to survive a power cut."""

    user = "postgres"
    _numbers = itertools.count(1)

    def _program(self, name: str) -> str:
        return program(name, *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))

    def prepare(self) -> None:
        """See Server."""
        self.run_as_server(
            self._program("initdb"),
            "-D",
            str(self.directory / "data"),
            "-A",
            "trust",
            "-U",
            "stoker",
            "-E",
            "UTF8",
        )
        with open(self.directory / "data" / "postgresql.conf", "a") as conf:
            conf.write(f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories=''\n")
            conf.write("fsync=off\nsynchronous_commit=off\nfull_page_writes=off\nmax_connections=200\n")

    def command(self) -> list[str]:
        """See Server."""
        return [self._program("postgres"), "-D", str(self.directory / "data")]

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://stoker@127.0.0.1:{self.port}/{database}"

    def probe(self) -> bool:
        """See Server."""
        return _answers(self._url("postgres"))

    def create_database(self) -> str:
        """A new, empty database: its URL."""
        name = f"stoker_{os.getpid()}_{next(self._numbers)}"
        _execute(self._url("postgres"), f"CREATE DATABASE {name}")
        return self._url(name)


class MariaDB(Server):
    """As PostgreSQL above."""

    user = "mysql"
    _numbers = itertools.count(1)

    def prepare(self) -> None:
        """See Server."""
        self.run_as_server(
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={self.directory / 'data'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )

    def command(self) -> list[str]:
        """See Server."""
        return [
            program("mariadbd"),
            "--no-defaults",
            f"--datadir={self.directory / 'data'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.directory / 'socket'}",
            f"--pid-file={self.directory / 'pid'}",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--innodb-buffer-pool-size=128M",
            "--max-connections=200",
            "--skip-name-resolve",
        ]

    def _url(self, database: str) -> str:
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}"

    def probe(self) -> bool:
        """See Server."""
        return _answers(self._url("mysql"))

    def create_database(self) -> str:
        """A new, empty database: its URL."""
        name = f"stoker_{os.getpid()}_{next(self._numbers)}"
        _execute(self._url("mysql"), f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        return f"{self._url(name)}?charset=utf8mb4"


def _execute(url: str, statement: str) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as conn:
        conn.exec_driver_sql(statement)


def _answers(url: str) -> bool:
    try:
        _execute(url, "SELECT 1")
    except sa.exc.OperationalError:
        return False
    return True
