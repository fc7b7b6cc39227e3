"""Event sinks: the queues of Zaqar that an environment names, to which a stack's events are sent."""

import re
import typing
from collections.abc import Mapping, Sequence

from ..shapes import JsonMap
from .errors import TemplateError
from .language import Path
from .suggestions import closest

QUEUE = "zaqar-queue"
"""The one type of event sink that Heat has."""
KEYS = ("type", "target", "ttl")
USUAL_TTL = 3600
"""Seconds; Heat's default."""
SHORTEST_TTL = 60
"""Seconds; Zaqar's default."""
LONGEST_TTL = 1_209_600
"""Seconds; Zaqar's default."""
LONGEST_NAME = 64
"""Characters of a queue's name; Zaqar takes no more."""
MOST_SINKS = 10
"""Event sinks of a stack: each event becomes a message for every one of them."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class EventSink(typing.NamedTuple):
    """A queue of Zaqar.

    :ivar target: the name of the queue.
    :ivar ttl: seconds that a message stays in it.
    """

    target: str
    ttl: int = USUAL_TTL


def parse_sinks(entries: Sequence[object], path: Path) -> tuple[EventSink, ...]:
    """Return the event sinks of an environment; equal ones count once.

    :param path: the path of the section, for errors.
    :raises TemplateError: an entry is wrong, or there are too many.
    """
    if len(entries) > MOST_SINKS:
        raise TemplateError(f"a stack has {MOST_SINKS} event sinks at most, not {len(entries)}", path)
    return tuple(dict.fromkeys(_parse(entry, (*path, index)) for index, entry in enumerate(entries)))


def _parse(entry: object, path: Path) -> EventSink:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise TemplateError("must be a map with a type", path)
    if entry["type"] != QUEUE:
        raise TemplateError(f'"{entry["type"]}" is not a type of event sink; known: {QUEUE}', (*path, "type"))
    unknown = [str(key) for key in entry if key not in KEYS]
    if unknown:
        text = f'"{unknown[0]}" is not a key of an event sink{closest(unknown[0], KEYS)}'
        raise TemplateError(text, path)
    return EventSink(_target(entry, path), _ttl(entry, path))


def _target(entry: JsonMap, path: Path) -> str:
    target = entry.get("target")
    here = (*path, "target")
    if not isinstance(target, str):
        raise TemplateError("Queue name must be a string", here)
    if not 0 < len(target) <= LONGEST_NAME:
        raise TemplateError(f"Queue name length must be 1-{LONGEST_NAME}", here)
    if _NAME.fullmatch(target) is None:
        raise TemplateError("the name of a queue has letters of ASCII, digits, _ and - only", here)
    return target


def _ttl(entry: JsonMap, path: Path) -> int:
    ttl = entry.get("ttl")
    if ttl is None:
        return USUAL_TTL
    if not isinstance(ttl, int) or isinstance(ttl, bool) or not SHORTEST_TTL <= ttl <= LONGEST_TTL:
        text = (
            f'must be an integer from {SHORTEST_TTL} to {LONGEST_TTL} (seconds) for queue "{entry["target"]}"'
        )
        raise TemplateError(text, (*path, "ttl"))
    return ttl
