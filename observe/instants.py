"""Instants as text, for people and programs."""

import datetime


def iso(moment: float) -> str:
    """Return an instant in ISO 8601, as Heat writes it: ``2026-01-31T12:34:56Z``.

    :param moment: seconds since the epoch.
    """
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact_or_none(moment: float | None) -> str | None:
    """Return an instant with its microseconds, ``2026-01-31T12:34:56.000789Z``; None for None.

    :param moment: seconds since the epoch.
    """
    if moment is None:
        return None
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def iso_or_none(moment: float | None) -> str | None:
    """Return an instant in ISO 8601; None for one that has not come."""
    return None if moment is None else iso(moment)
