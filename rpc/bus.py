"""The message bus: between processes by oslo.messaging, or inside of one."""

import typing

import oslo_messaging

from ..observe.recorder import SILENT, Recorder
from .client import OsloSender
from .contract import Hint, HintReceiver
from .level import Level
from .local import LocalBus
from .server import HintServer

LOCAL = "local:"
"""Scheme of the URL that means: inside of this process."""


class MessageServer(typing.Protocol):
    """The receiving side of one conductor."""

    def start(self) -> None:
        """Start to receive; returns at once."""

    def stop(self) -> None:
        """Stop receiving, and wait for the calls in progress."""


class Bus(typing.Protocol):
    """Sends hints, and makes servers that receive them."""

    def send(self, hint: Hint) -> None:
        """Send a hint, or lose it, as client.HintSender does."""

    def poll_now(self) -> None:
        """Ask all conductors to poll the ring's members now, and to report their shards."""

    def check(self) -> None:
        """Try the bus, once."""

    def listen(self, host: str, receiver: HintReceiver) -> MessageServer:
        """Return a server that is not started yet."""

    def close(self) -> None:
        """Disconnect."""


class OsloBus(OsloSender):
    """A bus on a message broker.

    :param recorder: counts messages that are sent, and refused.
    :param level: the highest version of messages, as for OsloSender.
    """

    def __init__(
        self, transport: oslo_messaging.Transport, recorder: Recorder = SILENT, level: Level | None = None
    ) -> None:
        super().__init__(transport, recorder, level)
        self._transport = transport

    def listen(self, host: str, receiver: HintReceiver) -> HintServer:
        """Return a server that is not started yet."""
        return HintServer(self._transport, host, receiver, self._recorder)

    def close(self) -> None:
        """Disconnect."""
        self._transport.cleanup()


def open_transport(conf: typing.Any, url: str) -> oslo_messaging.Transport:
    """Return a connection to the message bus.

    :param conf: an oslo.config ConfigOpts, for oslo.messaging's own options; must be the process-wide one,
        since oslo.messaging 18.3 registers its tracing and metrics options there only.
    :param url: e.g. ``rabbit://user:password@host:5672/vhost`` or ``kombu+memory://``.
    """
    return oslo_messaging.get_rpc_transport(conf, url=url)


def open_bus(conf: typing.Any, url: str, recorder: Recorder = SILENT, level: Level | None = None) -> Bus:
    """Return the bus of a URL: ``local:``, or one of oslo.messaging's.

    :param conf: the process-wide ConfigOpts, as for `open_transport`.
    :param recorder: counts messages that are sent, and refused.
    :param level: the highest version of messages, as for OsloSender.
    """
    if url.startswith(LOCAL):
        return LocalBus(recorder)
    return OsloBus(open_transport(conf, url), recorder, level)
