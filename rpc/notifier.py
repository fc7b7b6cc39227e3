"""Notifications for other services, by oslo.messaging's notifier.

=============================================== ===================================================
event type                                      when
=============================================== ===================================================
orchestration.stack.ACTION.start, .end, .error  a stack has begun something, or ended it; as Heat's
orchestration.breakpoint.reached, .cleared      a resource is held at a breakpoint, or is not any more
=============================================== ===================================================

One may be lost, with the process that was to send it; none is sent for what did not happen.
"""

import functools
import typing
from collections.abc import Sequence

import oslo_messaging

from ..db.notifications import EventKind, Notification
from ..observe.instants import iso_or_none
from .bus import LOCAL
from .outbox import SendQueue

Json = typing.Any
SERVICE = "orchestration"
NO_DESCRIPTION = "No description"
LEVELS = ("INFO", "DEBUG", "AUDIT", "SAMPLE", "WARN", "ERROR", "CRITICAL")
NEED_A_BROKER = frozenset({"messaging", "messagingv2", "routing"})
"""Drivers; the others write to a log, or nowhere."""
UNUSED = "kombu+memory://"
"""A transport for a driver that sends nothing."""
_ENDINGS = {"IN_PROGRESS": "start", "COMPLETE": "end"}
ACTIONS = (
    "CREATE",
    "UPDATE",
    "DELETE",
    "ROLLBACK",
    "SUSPEND",
    "RESUME",
    "CHECK",
    "SNAPSHOT",
    "RESTORE",
    "ADOPT",
)
"""Of stacks."""


class Notifier:
    """Sends what the database says that is true now, with a thread of its own.  Thread-safe.

    :param sender: oslo.messaging's.
    :param level: one of LEVELS; failures have ERROR.
    """

    def __init__(self, sender: oslo_messaging.Notifier, *, level: str = "INFO") -> None:
        self._sender = sender
        self._level = level
        self._queue = SendQueue("notifications")

    def start(self) -> None:
        """Begin to send; returns at once."""
        self._queue.start()

    def stop(self) -> None:
        """Send what waits, for two seconds at the most."""
        self._queue.stop()

    def tell(self, notices: Sequence[Notification]) -> None:
        """Send them when their turn comes; returns at once."""
        for notice in notices:
            self._queue.put(functools.partial(self._send, notice))

    def _send(self, notice: Notification) -> None:
        failed = notice.kind == EventKind.STACK and notice.status == "FAILED"
        send = getattr(self._sender, "error" if failed else self._level.lower())
        send({}, event_type(notice), payload(notice))


def event_type(notice: Notification) -> str:
    """Name of the notification."""
    if notice.kind == EventKind.STACK:
        return f"{SERVICE}.stack.{notice.action.lower()}.{_ENDINGS.get(notice.status, 'error')}"
    return f"{SERVICE}.breakpoint.{notice.kind}"


def event_types() -> dict[str, str]:
    """All there are, each with its meaning."""
    meanings = {"start": "has begun", "end": "has ended well", "error": "has failed"}
    found = {
        f"{SERVICE}.stack.{action.lower()}.{ending}": f"The {action} of a stack {meaning}."
        for action in ACTIONS
        for ending, meaning in meanings.items()
    }
    found[f"{SERVICE}.breakpoint.{EventKind.REACHED}"] = "A resource is held at a breakpoint."
    found[f"{SERVICE}.breakpoint.{EventKind.CLEARED}"] = "It is not held there any more."
    return found


def payload(notice: Notification) -> dict[str, Json]:
    """Heat's (heat/engine/api.py, format_notification_body), without `user_identity`, which is not stored;
    with the resource for a breakpoint."""
    body: dict[str, Json] = {
        "tenant_id": notice.tenant,
        "user_id": notice.owner,
        "user_identity": None,
        "username": notice.owner,
        "stack_identity": notice.stack_id,
        "stack_name": notice.name,
        "state": f"{notice.action}_{notice.status}",
        "state_reason": notice.reason,
        "create_at": iso_or_none(notice.created_at),
        "updated_at": iso_or_none(notice.updated_at),
        "description": notice.description or NO_DESCRIPTION,
        "tags": list(notice.tags),
    }
    if notice.at is not None:
        body |= {
            "parent_id": notice.parent_id,
            "root_id": notice.root_id,
            "resource_name": notice.at.name,
            "resource_type": notice.at.type,
            "physical_resource_id": notice.at.physical_id,
            "hook": notice.at.hook,
            "event_id": notice.at.event,
        }
    return body


def open_notifier(
    conf: typing.Any, *, publisher: str, level: str, url: str
) -> tuple[Notifier, oslo_messaging.Transport] | None:
    """A notifier that is not started yet, and its connection; None: no driver is configured.

    :param conf: see transport.open_transport; ``[oslo_messaging_notifications]`` is registered.
    :param url: of the broker, where ``[oslo_messaging_notifications] transport_url`` does not name another.
    :raises ValueError: there is no broker.
    :raises oslo_messaging.MessagingException: its URL is wrong.
    """
    wanted = conf.oslo_messaging_notifications
    if not wanted.driver:
        return None
    url = wanted.transport_url or url
    if url.startswith(LOCAL):
        if needy := sorted(NEED_A_BROKER & {*wanted.driver}):
            raise ValueError(f"driver {', '.join(needy)} needs a broker, {url} is inside of this process")
        url = UNUSED
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    return Notifier(oslo_messaging.Notifier(transport, publisher_id=publisher), level=level), transport
