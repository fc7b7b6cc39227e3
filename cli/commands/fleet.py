"""Reads the conductors that may work on a stack, for diagnoses."""

import time
from collections.abc import Callable
from dataclasses import replace

from ...db import conductors
from ...features.diagnosis.fleet import ConductorFleet
from ...features.diagnosis.presence import FRESH, Presence, make_fleet
from ..wiring.console import fleet_settings
from .presence import presence_of
from .sessions import Session

REPORT_TWICE = 5.6
"""Seconds between two reads of the reports: longer than between two reports of a conductor that rests."""


def fleet_of(session: Session, *, manage: str, sleep: Callable[[float], None] = time.sleep) -> ConductorFleet:
    """Return the fleet: alive by their group, or while that is unreachable, by new reports."""
    presence = presence_of(session)
    late = {
        host: row.heartbeat_at
        for host, row in presence.rows.items()
        if presence.now - row.heartbeat_at > FRESH
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
