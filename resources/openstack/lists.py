"""Things in lists of the cloud, by the name or the id that a template has; pure."""

from collections.abc import Sequence

from ...shapes import JsonMap
from ..contract import Thing


def named(things: Sequence[JsonMap] | None, value: Thing | None) -> JsonMap | None:
    """Return the thing with an id or a name; None: there is none, or several, or the list is not known."""
    if things is None or not isinstance(value, str):
        return None
    matches = [thing for thing in things if thing.get("id") == value]
    matches = matches or [thing for thing in things if thing.get("name") == value]
    return matches[0] if len(matches) == 1 else None
