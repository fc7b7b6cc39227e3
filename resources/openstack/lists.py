"""Things in lists of the cloud, by the name or the id that a template has; pure."""

from ...shapes import JsonMap
from ..contract import Members, Thing


def named(things: Members | None, value: Thing | None) -> JsonMap | None:
    """Return the thing with an id or a name; None: there is none, or several, or the list is not known."""
    if things is None or not isinstance(value, str):
        return None
    matches = things.where("id", value) or things.where("name", value)
    return matches[0] if len(matches) == 1 else None
