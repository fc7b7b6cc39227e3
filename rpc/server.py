"""The receiving side."""

import logging
import threading
import time
import typing
from collections.abc import Callable

import oslo_messaging
from oslo_messaging.rpc.dispatcher import RPCDispatcher, UnsupportedVersion
from oslo_messaging.rpc.server import RPCServer

from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .contract import MESSAGES, VERSION, WORK_TOPIC, Hint, HintReceiver, Malformed, deliver
from .errors import BROKER_ERRORS

LOG = logging.getLogger(__name__)
WAKE_EVERY = 0.1
WARN_EVERY = 60.0
"""Seconds between two lines about messages of one kind that were refused."""


def _endpoint(receiver: HintReceiver) -> object:
    """Return an object with a method for each message, as oslo.messaging expects it."""

    def responder(method: str) -> Callable[..., None]:
        def respond(self: object, context: typing.Any, **arguments: typing.Any) -> None:
            deliver(receiver, Hint(method, arguments))

        return respond

    methods: dict[str, typing.Any] = {method: responder(method) for method in MESSAGES}
    return type("Endpoint", (), {"target": oslo_messaging.Target(version=VERSION), **methods})()


class _Dispatcher(RPCDispatcher):  # type: ignore[misc]
    """Refuses messages of unknown versions or forms, with a line in the log that says the remedy.

    :param endpoint: gets all others.
    """

    def __init__(self, endpoint: object, recorder: Recorder, clock: Callable[[], float]) -> None:
        super().__init__([endpoint], None)
        self._recorder = recorder
        self._clock = clock
        self._warn_at: dict[tuple[str, str], float] = {}

    def dispatch(self, incoming: typing.Any) -> typing.Any:
        """Dispatch a message, as RPCDispatcher does, or refuse its version."""
        try:
            return super().dispatch(incoming)
        except UnsupportedVersion as error:
            self._refuse(str(error.method), str(error.version))
            return None
        except Malformed as error:
            method = str(incoming.message.get("method"))
            self._recorder.add(metrics.HINTS_REFUSED, method)
            if self._is_due((method, "form")):
                LOG.error(
                    "A message (%s) was refused: %s; its sender is not a conductor of Stoker", method, error
                )
            return None

    def _refuse(self, method: str, version: str) -> None:
        self._recorder.add(metrics.HINTS_REFUSED, method)
        LOG.log(
            logging.ERROR if self._is_due((method, version)) else logging.DEBUG,
            "A message (%s) of version %s was refused, this conductor understands %s: pin what the others "
            "send by [upgrade_levels] conductor until this one is upgraded. Its work is found in the "
            "database, later",
            method,
            version,
            VERSION,
        )

    def _is_due(self, key: tuple[str, str]) -> bool:
        """Return whether a line about messages of one kind is due, and note it."""
        now = self._clock()
        if now < self._warn_at.get(key, now):
            return False
        self._warn_at[key] = now + WARN_EVERY
        return True


class HintServer:
    """Listens on the work topic, shared with all conductors, and on the fan-out.

    oslo.messaging's listener (18.3) notices a stop when a message comes; without one it waits for up to 5 s.
    So a stop sends it a message, to its own address.

    :param host: stable over restarts, so that no incarnation leaves a queue behind.
    :param recorder: counts refused messages.
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
        self._server = RPCServer(transport, target, _Dispatcher(_endpoint(receiver), recorder, clock))
        self._myself = oslo_messaging.get_rpc_client(transport, target)
        self._ended = threading.Event()

    def start(self) -> None:
        """Start to receive; returns at once.

        :raises BROKER_ERRORS: the broker refuses; while it is unavailable, it is tried again without end.
        """
        self._server.start()

    def stop(self) -> None:
        """Stop receiving, and wait for the calls in progress."""
        threading.Thread(target=self._wake, name="wake", daemon=True).start()
        self._server.stop()
        self._server.wait()
        self._ended.set()

    def _wake(self) -> None:
        """Wake the listener; in a thread of its own, because an unavailable broker may block it."""
        while not self._ended.wait(WAKE_EVERY):
            try:
                self._myself.cast({}, "look_now")
            except BROKER_ERRORS as error:
                LOG.debug("Waking the listener failed: %s", error)
