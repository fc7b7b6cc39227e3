"""The data directory of the all-in-one: its configuration and its database."""

import pathlib
from collections.abc import Sequence

from oslo_config import cfg

from ...db.engine import Database
from ...db.errors import WrongRevision
from ...db.schema import revisions
from ...sealing.sealer import Sealer
from ..config.errors import WrongConfiguration
from ..config.files import named, write_private
from ..config.sections import Settings
from .database import CONNECTION

# All conductors share one interpreter with the API, on a machine that its user keeps busy.  They must not
# take each other for dead when it stalls for some seconds.  A restart takes work over before the timeout.
CONFIG = """\
[DEFAULT]
transport_url = local:

[database]
connection = sqlite:///{data}/stoker.sqlite

[coordination]
backend_url = file://{data}/coordination
heartbeat = 1
timeout = 10
poll = 1

[secrets]
key = {key}
"""


def config_file(data_dir: pathlib.Path) -> pathlib.Path:
    """Return the configuration file of a data directory, with a sealing key of its own.

    The first start writes it, readable by its owner only.  ``stoker-manage --config-file`` takes it, too.
    """
    path = data_dir / "stoker.conf"
    if not path.exists():
        write_private(path, CONFIG.format(data=data_dir, key=Sealer.generate_key()))
    return path


def config_files(data_dir: pathlib.Path, others: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """Return the configuration files of a data directory, with others that precede its own.

    :param others: those that the command line names; none: the one that the environment names.
    """
    return [config_file(data_dir), *(others or named())]


def migrate(conf: cfg.ConfigOpts) -> None:
    """Bring the database to this release's version; no older program works on it, for there is one process.

    :raises WrongConfiguration: the database is of a newer release.
    """
    database = Database(Settings(conf).database.connection)
    try:
        if database.read(revisions.current) != revisions.NEWEST:
            # Alembic has a hundred modules, which a start that finds nothing to migrate needs not.
            from ...db.schema import upgrade  # noqa: PLC0415

            upgrade.sync(database)
    except WrongRevision as error:
        raise WrongConfiguration(f"{CONNECTION}: {error}") from error
    finally:
        database.close()
