"""The receiving side of the message bus, as a daemon that wants to end soon needs it."""

import logging
import threading

import oslo_messaging

from ..rpc.contract import VERSION, WORK_TOPIC
from ..rpc.server import HintReceiver, HintServer

LOG = logging.getLogger(__name__)
WAKE_EVERY = 0.1


class PromptServer(HintServer):
    """A HintServer that ends at once.

    oslo.messaging's listener (18.3) sees that it shall stop when a message comes, or after it has waited for
    one for up to 5 s.  So it is sent one, to its own address.
    """

    def __init__(self, transport: oslo_messaging.Transport, host: str, receiver: HintReceiver) -> None:
        super().__init__(transport, host, receiver)
        target = oslo_messaging.Target(topic=WORK_TOPIC, server=host, version=VERSION)
        self._myself = oslo_messaging.get_rpc_client(transport, target)
        self._ended = threading.Event()

    def stop(self) -> None:
        """See HintServer."""
        threading.Thread(target=self._wake, name="wake", daemon=True).start()
        super().stop()
        self._ended.set()

    def _wake(self) -> None:
        """In a thread of its own, for a broker that is away may hold it."""
        while not self._ended.wait(WAKE_EVERY):
            try:
                self._myself.cast({}, "look_now")
            except oslo_messaging.MessagingException as error:
                LOG.debug("The listener could not be woken: %s", error)
