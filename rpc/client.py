"""The sending side."""

import logging
import typing
from collections.abc import Sequence

import oslo_messaging

from ..db.ids import MemberId, TaskId, TraversalId, host_of
from ..observe import metrics
from ..observe.recorder import SILENT, Recorder
from .contract import LOWEST, WORK_TOPIC
from .level import Level

LOG = logging.getLogger(__name__)


class HintSender:
    """Casts hints to the conductors; may be used from any thread.

    A broker that is away costs the hint, not the caller: the redelivery duty sends it again.

    :param level: which versions may be sent; None: the oldest.
    """

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        recorder: Recorder = SILENT,
        level: Level | None = None,
    ) -> None:
        self._recorder = recorder
        self._level = level
        target = oslo_messaging.Target(topic=WORK_TOPIC, version=LOWEST)
        self._client = oslo_messaging.get_rpc_client(transport, target)
        self._everybody = self._client.prepare(fanout=True)

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Tell any one conductor that these tasks are ready."""
        self._cast(self._client, "run_tasks", traversal=traversal, tasks=list(task_ids))

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Tell all conductors that this traversal is not the current one any more.

        :param request: the id of the user's request that wishes it; told to those who understand it.
        """
        target, more = self._everybody, {}
        if request is not None and self._level is not None and self._level.allows("1.1"):
            target, more = self._client.prepare(fanout=True, version="1.1"), {"request": request}
        self._cast(target, "cancel", traversal=traversal, spared=list(spared), **more)

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Tell the member's conductor to stop these tasks (with attempt)."""
        one = self._client.prepare(server=host_of(member))
        self._cast(one, "stop_tasks", claims=[list(claim) for claim in claims])

    def look_now(self) -> None:
        """Tell all conductors to look at the ring's members now, and to report what they own."""
        self._cast(self._everybody, "look_now")

    def check(self) -> None:
        """Try the broker, once: the conductors look at the ring, which does no harm.

        :raises oslo_messaging.MessagingException: it does not answer.
        """
        self._client.prepare(fanout=True, retry=0).cast({}, "look_now")

    def _cast(self, client: typing.Any, method: str, **arguments: typing.Any) -> None:
        try:
            client.cast({}, method, **arguments)
            self._recorder.add(metrics.HINTS_SENT, method)
        except oslo_messaging.MessagingException as error:
            self._recorder.add(metrics.HINTS_LOST, method)
            LOG.warning("Hint %s was lost, the broker did not take it: %s", method, error)
