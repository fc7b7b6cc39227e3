"""Queues messages that wait for the broker.

futurist's pool is no replacement: a full one rejects the newest message, but here the oldest is worth least;
and its shutdown waits for an unavailable broker without a limit.
"""

import collections
import functools
import logging
import threading
import typing
from collections.abc import Callable

from .client import HintSender
from .contract import Hint

LOG = logging.getLogger(__name__)
MOST = 10_000


class SendQueue:
    """Sends messages in order, with a thread of its own.

    So a slow or unavailable broker delays neither a request nor the work loop.

    It holds MOST messages at most, and drops the oldest beyond that.

    :param name: of the thread, and of the messages in the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: collections.deque[Callable[[], None]] = collections.deque()
        self._soon = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start to send; returns at once."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> bool:
        """Send the hints that wait, for `wait` seconds at most; return whether all was sent."""
        with self._soon:
            self._stopping = True
            self._soon.notify()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def put(self, message: Callable[[], None]) -> None:
        """Queue a message; returns at once."""
        with self._soon:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                LOG.warning("The broker is unavailable, dropping the oldest message of the %s", self._name)
            self._waiting.append(message)
            self._soon.notify()

    def _run(self) -> None:
        while True:
            with self._soon:
                self._soon.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                send = self._waiting.popleft()
            try:
                send()
            except Exception:  # top of a thread: one message that cannot be sent must not stop the others
                LOG.exception("A message of the %s was lost", self._name)


class HintChannel(typing.Protocol):
    """A way for hints out of this process, such as a bus."""

    def send(self, hint: Hint) -> None:
        """Send a hint, or lose it, as client.HintSender does."""


class Outbox(HintSender):
    """Sends hints when their turn comes; redelivery repeats a hint that is lost."""

    def __init__(self, channel: HintChannel) -> None:
        self._channel = channel
        self._queue = SendQueue("outbox")

    def start(self) -> None:
        """Start to send; returns at once."""
        self._queue.start()

    def stop(self, wait: float = 2.0) -> bool:
        """Send the hints that wait, for `wait` seconds at most; return whether all was sent."""
        return self._queue.stop(wait)

    def send(self, hint: Hint) -> None:
        """Queue a hint to be sent; returns at once."""
        self._queue.put(functools.partial(self._channel.send, hint))
