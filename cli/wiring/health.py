"""The state of servers and conductors that the API shows."""

from collections.abc import Callable

from oslo_config import cfg

from ...api.health import DatabaseHealth
from ...ring.observer import GroupStatus
from .coordination import make_observer
from .database import connect


def database_health(conf: cfg.ConfigOpts) -> DatabaseHealth:
    """Make the check of the database.

    It has a connection of its own: while all others are busy the database is healthy.
    """
    database = connect(conf, pool_size=1)
    return DatabaseHealth(database.ping)


def conductors_in_group(conf: cfg.ConfigOpts) -> Callable[[], GroupStatus | str]:
    """Return a function that reads which conductors are alive, once in [coordination] poll seconds.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    return make_observer(conf, keep=conf.coordination.poll).status
