"""The receiving side."""

import logging
import threading
import time
import typing
from collections.abc import Callable, Sequence

import oslo_messaging
from oslo_messaging.rpc.dispatcher import RPCDispatcher, UnsupportedVersion
from oslo_messaging.rpc.server import RPCServer

from ..db.ids import TaskId, TraversalId
from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .contract import VERSION, WORK_TOPIC

LOG = logging.getLogger(__name__)
WAKE_EVERY = 0.1
TELL_EVERY = 60.0
"""Seconds between two lines about messages of one kind that were refused."""


class HintReceiver(typing.Protocol):
    """What a conductor does with hints.  Called from the message bus's threads; must not block."""

    def enqueue(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """These tasks are ready."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None) -> None:
        """This traversal is not the current one any more, as a user's request wishes, if one does; the spared
        tasks of it go on."""

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        """These tasks (with attempt) are to stop, or have been taken away from us."""

    def poll_now(self) -> None:
        """Poll the ring's members and report."""


class _Endpoint:
    target = oslo_messaging.Target(version=VERSION)

    def __init__(self, receiver: HintReceiver) -> None:
        self._receiver = receiver

    def run_tasks(self, context: typing.Any, traversal: str, tasks: list[int]) -> None:
        self._receiver.enqueue(TraversalId(traversal), [TaskId(task) for task in tasks])

    def cancel(
        self, context: typing.Any, traversal: str, spared: list[int], request: str | None = None
    ) -> None:
        self._receiver.cancel(TraversalId(traversal), [TaskId(task) for task in spared], request)

    def stop_tasks(self, context: typing.Any, claims: list[tuple[int, int]]) -> None:
        self._receiver.stop_tasks([(TaskId(task), attempt) for task, attempt in claims])

    def look_now(self, context: typing.Any) -> None:
        self._receiver.poll_now()


class _Dispatcher(RPCDispatcher):  # type: ignore[misc]
    """Refuses messages of versions that we do not understand, with a line that says what to do.

    :param endpoint: for those that we do.
    """

    def __init__(self, endpoint: _Endpoint, recorder: Recorder, clock: Callable[[], float]) -> None:
        super().__init__([endpoint], None)
        self._recorder = recorder
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}

    def dispatch(self, incoming: typing.Any) -> typing.Any:
        """See RPCDispatcher."""
        try:
            return super().dispatch(incoming)
        except UnsupportedVersion as error:
            self._refuse(str(error.method), str(error.version))
            return None

    def _refuse(self, method: str, version: str) -> None:
        self._recorder.add(metrics.HINTS_REFUSED, method)
        level, now = logging.DEBUG, self._clock()
        if now >= self._told.get((method, version), now):
            self._told[method, version] = now + TELL_EVERY
            level = logging.ERROR
        LOG.log(
            level,
            "A message (%s) of version %s was refused, this conductor understands %s: pin what the others "
            "send by [upgrade_levels] conductor until this one is upgraded. What it was about is found in "
            "the database, later",
            method,
            version,
            VERSION,
        )


class HintServer:
    """Listens on the work topic, shared with all conductors, and on the fan-out.

    oslo.messaging's listener (18.3) sees that it shall stop when a message comes, or after it has waited for
    one for up to 5 s.  So it is sent one, to its own address.

    :param host: stable over restarts, so that no queue is left behind by each incarnation.
    :param recorder: counts what is refused.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        host: str,
        receiver: HintReceiver,
        recorder: Recorder = SILENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        target = oslo_messaging.Target(topic=WORK_TOPIC, server=host, version=VERSION)
        self._server = RPCServer(transport, target, _Dispatcher(_Endpoint(receiver), recorder, clock))
        self._myself = oslo_messaging.get_rpc_client(transport, target)
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to receive; returns at once."""
        self._server.start()

    def stop(self) -> None:
        """Stop receiving and wait for the calls in progress."""
        threading.Thread(target=self._wake, name="wake", daemon=True).start()
        self._server.stop()
        self._server.wait()
        self._ended.set()

    def _wake(self) -> None:
        """In a thread of its own, for a broker that is away may hold it."""
        while not self._ended.wait(WAKE_EVERY):
            try:
                self._myself.cast({}, "look_now")
            except oslo_messaging.MessagingException as error:
                LOG.debug("The listener could not be woken: %s", error)
