"""Instants as text, for people and programs."""

import datetime
import functools
import typing


@typing.overload
def iso(moment: float) -> str: ...
@typing.overload
def iso(moment: float | None) -> str | None: ...
def iso(moment: float | None) -> str | None:
    """Return an instant in ISO 8601, as Heat writes it: ``2026-01-31T12:34:56Z``; None for None.

    :param moment: seconds since the epoch; None: it has not come.
    """
    return None if moment is None else _iso(moment)


@functools.lru_cache(maxsize=1000)
def _iso(moment: float) -> str:
    """Return an instant; the resources of a stack share theirs, so of thousands most are known."""
    # Ten times as fast as strftime.
    return f"{datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec='seconds')[:-6]}Z"


def exact_or_none(moment: float | None) -> str | None:
    """Return an instant with its microseconds, ``2026-01-31T12:34:56.000789Z``; None for None.

    :param moment: seconds since the epoch.
    """
    if moment is None:
        return None
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@typing.overload
def instant(text: str) -> float: ...
@typing.overload
def instant(text: None) -> None: ...
def instant(text: str | None) -> float | None:
    """Return the seconds since the epoch of an instant in ISO 8601 with its zone; None for None.

    >>> instant("1970-01-01T00:00:01.500000Z")
    1.5
    """
    return None if text is None else datetime.datetime.fromisoformat(text).timestamp()


def describe_span(seconds: float) -> str:
    """Return a duration for people: ``3 s``, ``5 min``, ``2 h``, ``4 d``.

    One unit is enough here, and scripts compare the texts: no library writes them for us.
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def describe_age(seconds: float) -> str:
    """Return an age for people: ``3 s ago``."""
    return f"{describe_span(seconds)} ago"


def describe_moment(moment: float, now: float) -> str:
    """Return a moment in UTC and its distance: ``14:00:03 UTC (5 min ago)``, ``15:00:03 UTC (in 2 h)``."""
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    same = at.date() == datetime.datetime.fromtimestamp(now, datetime.UTC).date()
    text = at.strftime("%H:%M:%S UTC" if same else "%Y-%m-%d %H:%M:%S UTC")
    if moment <= now:
        return f"{text} ({describe_age(now - moment)})"
    return f"{text} (in {describe_span(moment - now)})"
