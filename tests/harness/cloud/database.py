"""The database server of a cloud, which may begin with what was made before."""

import pathlib
import subprocess

from harness.mariadb import SETTINGS, MariaDB

NO_HURRY = {
    # What is lost with a killed server does not matter: the cloud is gone, too.
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "256M",
    "max-connections": "800",
    # A program with a hundred green threads may be busy for long before it says who it is.
    "connect-timeout": "300",
    "net-read-timeout": "300",
}


class CloudDatabase(MariaDB):
    """A MariaDB server with room for a dozen services.

    :param archive: the archive of a server that was stopped; None: it begins empty.
    """

    name = "Cloud-MariaDB"
    settings = {**SETTINGS, **NO_HURRY}

    def __init__(self, archive: pathlib.Path | None = None) -> None:
        super().__init__()
        self._kept = archive

    def _prepare(self) -> None:
        if self._kept is None:
            super()._prepare()
            return
        subprocess.run(["tar", "-xzf", self._kept, "-C", self.directory], check=True)
        self._has_account = True

    def keep(self, archive: pathlib.Path) -> None:
        """Stop it, and write all it has to an archive."""
        self.stop()
        pack(self.directory, archive, "data")


def pack(directory: pathlib.Path, archive: pathlib.Path, name: str) -> None:
    """Write a folder of the directory to an archive."""
    compress = "--use-compress-program=gzip -1"
    subprocess.run(["tar", compress, "-cf", archive, "-C", directory, name], check=True)
