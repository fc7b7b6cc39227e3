"""A consumer of notifications, as a service beside Stoker has it."""

import typing
from collections.abc import Iterator
from contextlib import contextmanager

import oslo_messaging
from oslo_config import cfg

Json = typing.Any


class Heard:
    """Writes down the notifications that come.

    :ivar all: (priority, publisher, event type, payload) of each, in the order of their coming.
    """

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str, Json]] = []

    def info(self, context: Json, publisher: str, event: str, payload: Json, metadata: Json) -> None:
        self.all.append(("info", publisher, event, payload))

    def error(self, context: Json, publisher: str, event: str, payload: Json, metadata: Json) -> None:
        self.all.append(("error", publisher, event, payload))

    def of(self, event: str) -> list[Json]:
        """The payloads of one event type."""
        return [payload for _, _, name, payload in self.all if name == event]


@contextmanager
def listening(conf: cfg.ConfigOpts, url: str) -> Iterator[Heard]:
    """Listen to the topic ``notifications`` of a broker."""
    heard = Heard()
    transport = oslo_messaging.get_notification_transport(conf, url=url)
    target = oslo_messaging.Target(topic="notifications")
    server = oslo_messaging.get_notification_listener(transport, [target], [heard], executor="threading")
    server.start(override_pool_size=1)  # One thread: they are written down in their order.
    try:
        yield heard
    finally:
        server.stop()
        server.wait()
        transport.cleanup()
