"""The sending side."""

import abc
import logging
import typing
from collections.abc import Sequence

import oslo_messaging

from ..db.ids import MemberId, TaskId, TraversalId, host_of
from ..observe import metrics
from ..observe.logs import current_request
from ..observe.recorder import SILENT, Recorder
from .contract import LOWEST, MESSAGES, WORK_TOPIC, Hint, Reach, wire_form
from .errors import BROKER_ERRORS
from .level import Level

LOG = logging.getLogger(__name__)


class HintSender(abc.ABC):
    """Sends hints to the conductors; implements engine.context.Hints.  May be used from any thread."""

    @abc.abstractmethod
    def send(self, hint: Hint) -> None:
        """Send a hint, or lose it: never an error for a broker that is unavailable."""

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Announce ready tasks to any one conductor."""
        self.send(Hint("run_tasks", {"tasks": {traversal: list(task_ids)}}))

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Announce to all conductors that a traversal is superseded.

        :param spared: tasks of it that continue.
        :param request: id of the user's request that cancels; None: the one that this thread works for.
        """
        arguments = {"traversal": traversal, "spared": list(spared), "request": request or current_request()}
        self.send(Hint("cancel", arguments))

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Ask the member's conductor to stop these tasks (with attempt)."""
        self.send(Hint("stop_tasks", {"claims": [list(claim) for claim in claims]}, host_of(member)))

    def poll_now(self) -> None:
        """Ask all conductors to poll the ring's members now, and to report their shards."""
        self.send(Hint("look_now", {}))

    def announce_activity(self) -> None:
        """Announce to all conductors that this process has committed something that may be due soon."""
        self.send(Hint("activity", {}))


class OsloSender(HintSender):
    """Casts hints by a message broker.

    A broker that is unavailable costs the hint, not the caller: the redelivery duty sends it again.

    :param level: decides which versions may be sent; None: the oldest.
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

    def send(self, hint: Hint) -> None:
        """Cast a hint, or log that it was lost."""
        version, arguments = wire_form(hint, self._allows)
        client = self._client.prepare(**_target(hint), version=version)
        try:
            client.cast({}, hint.method, **arguments)
            self._recorder.add(metrics.HINTS_SENT, hint.method)
        except BROKER_ERRORS as error:
            self._recorder.add(metrics.HINTS_LOST, hint.method)
            LOG.warning("Hint %s was lost, the broker is unavailable: %s", hint.method, error)

    def check(self) -> None:
        """Try the broker, once: the conductors poll the ring, which does no harm.

        :raises BROKER_ERRORS: the broker is unavailable, or refuses.
        """
        self._client.prepare(fanout=True, retry=0).cast({}, "look_now")

    def _allows(self, version: str) -> bool:
        return self._level is not None and self._level.allows(version)


def _target(hint: Hint) -> dict[str, typing.Any]:
    reach = MESSAGES[hint.method].reach
    if reach == Reach.HOST:
        return {"server": hint.host}
    return {"fanout": True} if reach == Reach.ALL else {}
