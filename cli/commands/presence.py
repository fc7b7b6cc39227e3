"""Reads which conductors are alive, for the commands."""

import time
from collections.abc import Callable
from dataclasses import replace

from ...db import conductors
from ...engine.diagnosis.fleet import SKEW, ConductorFleet
from ...engine.diagnosis.presence import Presence, make_fleet
from ..wiring.console import fleet_settings
from ..wiring.coordination import make_observer
from ..wiring.probes import silence_libraries
from .sessions import Session

REPORT_TWICE = 1.6
"""Seconds between two reads of the conductors' reports: longer than between two reports of one of them."""


def presence_of(session: Session) -> Presence:
    """Read the conductors' reports, after each member of the group has sent a heartbeat, or some seconds.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    silence_libraries()
    group = make_observer(session.conf).status()
    rows = {row.host: row for row in session.database.read(conductors.list_all)}
    status, why = (None, group) if isinstance(group, str) else (group, None)
    return Presence(session.database.clock(), rows, status, why, session.shard_count)


def fleet_of(session: Session, *, manage: str, sleep: Callable[[float], None] = time.sleep) -> ConductorFleet:
    """Return the fleet: alive by their group, or while that is unreachable, by new reports."""
    presence = presence_of(session)
    late = {
        row.host: row.heartbeat_at for row in presence.rows.values() if presence.now - row.heartbeat_at > SKEW
    }
    moved: set[str] = set()
    if presence.group is None or late.keys() & presence.group.hosts:
        sleep(REPORT_TWICE)
        again = session.database.read(conductors.list_all)
        moved = {row.host for row in again if row.heartbeat_at != _reported(presence, row.host)}
        presence = replace(presence, now=session.database.clock(), rows={row.host: row for row in again})
    return make_fleet(presence, moved, replace(fleet_settings(session.conf), manage=manage))


def _reported(presence: Presence, host: str) -> float | None:
    row = presence.rows.get(host)
    return None if row is None else row.heartbeat_at
