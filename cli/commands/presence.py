"""Reads which conductors are alive, for the commands."""

from ...db import conductors
from ...features.diagnosis.presence import Presence
from ..wiring.coordination import make_observer
from ..wiring.servers import silence_libraries
from .sessions import Session


def presence_of(session: Session) -> Presence:
    """Read the conductors' reports, after each member of the group has sent a heartbeat, or some seconds.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    silence_libraries()
    group = make_observer(session.conf).status()
    rows = {row.host: row for row in session.database.read(conductors.list_all)}
    status, why = (None, group) if isinstance(group, str) else (group, None)
    return Presence(session.database.clock(), rows, status, why, session.shard_count)
