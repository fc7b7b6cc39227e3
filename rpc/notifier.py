"""Sends notifications for other services, by oslo.messaging's notifier.

=============================================== ===================================================
event type                                      when
=============================================== ===================================================
orchestration.stack.ACTION.start, .end, .error  a stack has started or ended an action; as Heat's
orchestration.breakpoint.reached, .cleared      a resource is held at a breakpoint, or is no longer
orchestration.drift.detected, .resolved         a resource differs from the cloud, or no longer
orchestration.autoscaling.start, .end, .error   a signal scales a group, or that has ended; as Heat's
audit.http.response                             a request was answered; see api/audit.py
=============================================== ===================================================

One may be lost, with the process that was to send it; none is sent for an action that did not happen.
"""

import functools
import typing
from collections.abc import Sequence
from dataclasses import dataclass

import oslo_messaging

from ..db.notifications import EventKind, Notification
from ..observe.instants import iso
from ..settings import setting
from ..shapes import Json
from .bus import LOCAL
from .outbox import SendQueue

SERVICE = "orchestration"
AUDITED = "audit.http.response"
"""The event type that keystonemiddleware's audit filter gives its events, too."""
NO_DESCRIPTION = "No description"
LEVELS = ("INFO", "DEBUG", "AUDIT", "SAMPLE", "WARN", "ERROR", "CRITICAL")
NEED_A_BROKER = frozenset({"messaging", "messagingv2", "routing"})
"""Drivers that need a broker; the others write to a log, or nowhere."""
UNUSED = "kombu+memory://"
"""A transport for a driver that sends nothing."""
_ENDINGS = {"IN_PROGRESS": "start", "COMPLETE": "end"}


@dataclass(frozen=True)
class NotificationSettings:
    """The form of notifications."""

    publisher: str | None = setting(
        "default_publisher_id",
        None,
        "Publisher of the notifications. The drivers in [oslo_messaging_notifications] driver send them; by "
        "default there is no driver, and no notification is sent.",
        default_text="orchestration.HOST",
    )
    level: str = setting(
        "default_notification_level",
        "INFO",
        "Priority of the notifications, which also ends their topic; those of failures have ERROR.",
        choices=dict.fromkeys(LEVELS, ""),
        ignores_case=True,
    )


class Notifier:
    """Sends notifications of committed events, with a thread of its own.  Thread-safe.

    :param sender: oslo.messaging's.
    :param level: one of LEVELS; failures have ERROR.
    """

    def __init__(self, sender: oslo_messaging.Notifier, *, level: str = NotificationSettings.level) -> None:
        self._sender = sender
        self._level = level
        self._queue = SendQueue("notifications")

    def start(self) -> None:
        """Start to send; returns at once."""
        self._queue.start()

    def stop(self) -> None:
        """Send the notifications that wait, for two seconds at most."""
        self._queue.stop()

    def notify(self, notifications: Sequence[Notification]) -> None:
        """Queue notifications; returns at once."""
        for notification in notifications:
            self._queue.put(functools.partial(self._send, notification))

    def audit(self, event: Json) -> None:
        """Queue an audit event of a request; returns at once."""
        self._queue.put(functools.partial(self._sender.info, {}, AUDITED, event))

    def _send(self, notification: Notification) -> None:
        failed = notification.kind == EventKind.STACK and notification.status == "FAILED"
        failed = failed or (notification.scaling is not None and notification.scaling.ending == "error")
        send = getattr(self._sender, "error" if failed else self._level.lower())
        send({}, event_type(notification), payload(notification))


def event_type(notification: Notification) -> str:
    """Return the event type of a notification."""
    if notification.kind == EventKind.STACK:
        return f"{SERVICE}.stack.{notification.action.lower()}.{_ENDINGS.get(notification.status, 'error')}"
    if notification.scaling is not None:
        return f"{SERVICE}.{notification.kind}.{notification.scaling.ending}"
    if notification.drift is not None:
        return f"{SERVICE}.{notification.kind}.{notification.drift.ending.lower()}"
    return f"{SERVICE}.breakpoint.{notification.kind}"


def payload(notification: Notification) -> dict[str, Json]:
    """Return the payload, as Heat's format_notification_body (heat/engine/api.py) makes it.

    `user_identity` is empty, because it is not stored.  A breakpoint's has the resource, too, and a scaling's
    what Heat's has (heat/engine/notification/autoscaling.py).
    """
    body: dict[str, Json] = {
        "tenant_id": notification.project_id,
        "user_id": notification.owner,
        "user_identity": None,
        "username": notification.owner,
        "stack_identity": notification.stack_id,
        "stack_name": notification.name,
        "state": f"{notification.action}_{notification.status}",
        "state_reason": notification.reason,
        "create_at": iso(notification.created_at),
        "updated_at": iso(notification.updated_at),
        "description": notification.description or NO_DESCRIPTION,
        "tags": list(notification.tags),
    }
    if (scaling := notification.scaling) is not None:
        body |= {
            "adjustment": scaling.by,
            "adjustment_type": "".join(part.capitalize() for part in scaling.kind.split("_")),
            "capacity": scaling.capacity,
            "groupname": scaling.group,
            "message": scaling.message,
        }
    if (drift := notification.drift) is not None:
        body |= {
            "parent_id": notification.parent_id,
            "root_id": notification.root_id,
            "resource_name": drift.name,
            "resource_type": drift.type,
            "physical_resource_id": drift.physical_id,
            "event_id": drift.event,
        }
    if notification.at is not None:
        body |= {
            "parent_id": notification.parent_id,
            "root_id": notification.root_id,
            "resource_name": notification.at.name,
            "resource_type": notification.at.type,
            "physical_resource_id": notification.at.physical_id,
            "hook": notification.at.hook,
            "event_id": notification.at.event,
        }
    return body


def open_notifier(
    conf: typing.Any, *, publisher: str, level: str, url: str
) -> tuple[Notifier, oslo_messaging.Transport] | None:
    """Return a notifier that is not started yet, and its connection; None: no driver is configured.

    :param conf: the process-wide ConfigOpts, as for `bus.open_transport`; its
        ``[oslo_messaging_notifications]`` is registered.
    :param url: of the broker, where ``[oslo_messaging_notifications] transport_url`` does not name another.
    :raises ValueError: there is no broker.
    :raises oslo_messaging.MessagingException: its URL is wrong.
    """
    options = conf.oslo_messaging_notifications
    if not options.driver:
        return None
    url = options.transport_url or url
    if url.startswith(LOCAL):
        if needy := sorted(NEED_A_BROKER & {*options.driver}):
            raise ValueError(f"driver {', '.join(needy)} needs a broker, {url} is inside of this process")
        url = UNUSED
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    return Notifier(oslo_messaging.Notifier(transport, publisher_id=publisher), level=level), transport
