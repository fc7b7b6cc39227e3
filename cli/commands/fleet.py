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

REPORT_TWICE = FRESH
"""Seconds between two reads of the reports: longer than between two reports of a conductor that is alive."""


def fleet_of(session: Session, *, manage: str, sleep: Callable[[float], None] = time.sleep) -> ConductorFleet:
    """Return the fleet: alive by their group, or while that is unreachable, by new reports."""
    presence = presence_of(session)
    settings = replace(fleet_settings(session.conf), manage=manage)
    late = {host for host, row in presence.rows.items() if presence.now - row.heartbeat_at > FRESH}
    if presence.group is not None and not late & presence.group.hosts:
        return make_fleet(presence, frozenset(), settings)
    sleep(REPORT_TWICE)
    rows = {row.host: row for row in session.database.read(conductors.list_all)}
    moved = {host for host, row in rows.items() if row.heartbeat_at != _reported(presence, host)}
    latest = replace(presence, now=session.database.clock(), rows=rows)
    return make_fleet(latest, moved, settings, since=presence.now)


def _reported(presence: Presence, host: str) -> float | None:
    row = presence.rows.get(host)
    return None if row is None else row.heartbeat_at
