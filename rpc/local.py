"""Messages between the parts of one process: the embedded default, where no other process is to be reached.

oslo.messaging on kombu's in-memory transport would do it too, but polls without a pause: a quarter of a core
for each conductor that has nothing to do.
"""

import threading
from collections.abc import Sequence

from ..db.ids import MemberId, TaskId, TraversalId, host_of
from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .server import HintReceiver


class LocalBus:
    """Calls the receivers that listen, in the sender's thread.  Thread-safe.

    The sending side is that of rpc.client.HintSender; `listen` gives what rpc.server.HintServer is.  See
    rpc.bus.Bus.
    """

    def __init__(self, recorder: Recorder = SILENT) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._receivers: list[HintReceiver] = []
        self._hosts: dict[str, HintReceiver] = {}
        self._turn = 0

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Tell one of those who listen, in turn; lost if nobody does."""
        self._recorder.add(metrics.HINTS_SENT, "run_tasks")
        with self._lock:
            self._turn += 1
            chosen = self._receivers[self._turn % len(self._receivers)] if self._receivers else None
        if chosen is not None:
            chosen.enqueue(traversal, task_ids)

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Tell all."""
        self._recorder.add(metrics.HINTS_SENT, "cancel")
        for receiver in self._all():
            receiver.cancel(traversal, spared, request)

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Tell the member's conductor; lost if it does not listen."""
        self._recorder.add(metrics.HINTS_SENT, "stop_tasks")
        with self._lock:
            chosen = self._hosts.get(host_of(member))
        if chosen is not None:
            chosen.stop_tasks(claims)

    def look_now(self) -> None:
        """Tell all."""
        self._recorder.add(metrics.HINTS_SENT, "look_now")
        for receiver in self._all():
            receiver.poll_now()

    def check(self) -> None:
        """It is always there."""

    def listen(self, host: str, receiver: HintReceiver) -> "LocalServer":
        """A server that is not started yet."""
        return LocalServer(self, host, receiver)

    def close(self) -> None:
        """There is nothing to disconnect."""

    def add(self, host: str, receiver: HintReceiver) -> None:
        """From now on it is told."""
        with self._lock:
            self._receivers.append(receiver)
            self._hosts[host] = receiver

    def remove(self, host: str, receiver: HintReceiver) -> None:
        """From now on it is not."""
        with self._lock:
            self._receivers = [other for other in self._receivers if other is not receiver]
            if self._hosts.get(host) is receiver:
                del self._hosts[host]

    def _all(self) -> list[HintReceiver]:
        with self._lock:
            return list(self._receivers)


class LocalServer:
    """The receiving side of one conductor."""

    def __init__(self, bus: LocalBus, host: str, receiver: HintReceiver) -> None:
        self._bus = bus
        self._host = host
        self._receiver = receiver

    def start(self) -> None:
        """Begin to receive."""
        self._bus.add(self._host, self._receiver)

    def stop(self) -> None:
        """Stop receiving."""
        self._bus.remove(self._host, self._receiver)
