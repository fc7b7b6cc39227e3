"""Messages between the parts of one process: the embedded default, where no other process is to be reached.

oslo.messaging on kombu's in-memory transport would do it too, but it polls without a pause: an idle conductor
then takes a quarter of a core.
"""

import threading

from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .client import HintSender
from .contract import MESSAGES, Hint, HintReceiver, Reach, deliver


class LocalBus(HintSender):
    """Implements rpc.bus.Bus: calls the receivers that listen, in the sender's thread.  Thread-safe."""

    def __init__(self, recorder: Recorder = SILENT) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._receivers: list[HintReceiver] = []
        self._hosts: dict[str, HintReceiver] = {}
        self._turn = 0

    def send(self, hint: Hint) -> None:
        """Deliver a hint at once; it is lost if nobody listens."""
        self._recorder.add(metrics.HINTS_SENT, hint.method)
        for receiver in self._chosen(hint):
            deliver(receiver, hint)

    def _chosen(self, hint: Hint) -> list[HintReceiver]:
        reach = MESSAGES[hint.method].reach
        with self._lock:
            if reach == Reach.ALL:
                return list(self._receivers)
            if reach == Reach.HOST:
                return [self._hosts[hint.host]] if hint.host in self._hosts else []
            self._turn += 1
            return [self._receivers[self._turn % len(self._receivers)]] if self._receivers else []

    def check(self) -> None:
        """Return: this bus is always available."""

    def listen(self, host: str, receiver: HintReceiver) -> "LocalServer":
        """Return a server that is not started yet."""
        return LocalServer(self, host, receiver)

    def close(self) -> None:
        """Return: there is nothing to disconnect."""

    def add(self, host: str, receiver: HintReceiver) -> None:
        """Deliver messages to the receiver from now on."""
        with self._lock:
            self._receivers.append(receiver)
            self._hosts[host] = receiver

    def remove(self, host: str, receiver: HintReceiver) -> None:
        """Deliver no more messages to the receiver."""
        with self._lock:
            self._receivers = [remaining for remaining in self._receivers if remaining is not receiver]
            if self._hosts.get(host) is receiver:
                del self._hosts[host]


class LocalServer:
    """The receiving side of one conductor."""

    def __init__(self, bus: LocalBus, host: str, receiver: HintReceiver) -> None:
        self._bus = bus
        self._host = host
        self._receiver = receiver

    def start(self) -> None:
        """Start to receive."""
        self._bus.add(self._host, self._receiver)

    def stop(self) -> None:
        """Stop receiving."""
        self._bus.remove(self._host, self._receiver)
