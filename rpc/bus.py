"""The message bus: between processes by oslo.messaging, or inside of one."""

import typing

import oslo_messaging

from ..observe.recorder import SILENT, Recorder
from .client import HintSender
from .level import Level
from .local import LocalBus
from .server import HintReceiver, HintServer
from .transport import open_transport

LOCAL = "local:"
"""Scheme of the URL that stands for the inside of this process."""


class MessageServer(typing.Protocol):
    """The receiving side of one conductor."""

    def start(self) -> None:
        """Begin to receive; returns at once."""

    def stop(self) -> None:
        """Stop receiving and wait for the calls in progress."""


class Bus(typing.Protocol):
    """Sends, and gives servers that receive.  The sending methods are those of `client.HintSender`."""

    def run_tasks(self, traversal: typing.Any, task_ids: typing.Any) -> None:
        """Tell any one conductor."""

    def cancel(self, traversal: typing.Any, spared: typing.Any = (), request: str | None = None) -> None:
        """Tell all."""

    def stop_tasks(self, member: typing.Any, claims: typing.Any) -> None:
        """Tell one."""

    def look_now(self) -> None:
        """Tell all."""

    def check(self) -> None:
        """Try it, once."""

    def listen(self, host: str, receiver: HintReceiver) -> MessageServer:
        """A server that is not started yet."""

    def close(self) -> None:
        """Disconnect."""


class OsloBus(HintSender):
    """A bus on a message broker."""

    def __init__(
        self, transport: oslo_messaging.Transport, recorder: Recorder = SILENT, level: Level | None = None
    ) -> None:
        super().__init__(transport, recorder, level)
        self._transport = transport

    def listen(self, host: str, receiver: HintReceiver) -> HintServer:
        """See Bus."""
        return HintServer(self._transport, host, receiver, self._recorder)

    def close(self) -> None:
        """See Bus."""
        self._transport.cleanup()


def open_bus(conf: typing.Any, url: str, recorder: Recorder = SILENT, level: Level | None = None) -> Bus:
    """The bus of a URL: ``local:``, or one of oslo.messaging's.

    :param conf: see `open_transport`.
    :param recorder: counts what is sent, and what is refused.
    :param level: see HintSender.
    """
    if url.startswith(LOCAL):
        return LocalBus(recorder)
    return OsloBus(open_transport(conf, url), recorder, level)
