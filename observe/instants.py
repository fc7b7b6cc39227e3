"""Instants as text, for people and programs."""

import datetime


def iso(moment: float) -> str:
    """Return an instant in ISO 8601, as Heat writes it: ``2026-01-31T12:34:56Z``.

    :param moment: seconds since the epoch.
    """
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
