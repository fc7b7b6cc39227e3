"""Messages on the bus, as a conductor takes them in: of other versions, or of somebody who may send some."""

import contextlib
import pathlib
import typing
from collections.abc import Mapping, Sequence

from fuzz.installation import Installation, Renewed
from fuzz.mutation import Mutations
from hypothesis import strategies as st
from simulation.world import SimConductor
from stoker.db.ids import TaskId, TraversalId
from stoker.rpc.contract import MESSAGES, Hint, Malformed, deliver

Json = typing.Any
BASES: tuple[Json, ...] = (
    {"method": "run_tasks", "version": "1.0", "arguments": {"tasks": {"x": [1, 2]}}},
    {
        "method": "cancel",
        "version": "1.0",
        "arguments": {"traversal": "x", "spared": [1], "request": "req-1"},
    },
    {"method": "stop_tasks", "version": "1.0", "arguments": {"claims": [[1, 2], [3, 4]]}},
    {"method": "look_now", "version": "1.0", "arguments": {}},
    {"method": "activity", "version": "1.0", "arguments": {}},
)


class Receiver:
    """Implements HintReceiver with a conductor of the simulation."""

    def __init__(self, conductor: SimConductor) -> None:
        self._conductor = conductor

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        self._conductor.loop.enqueue(ready)

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None) -> None:
        self._conductor.loop.cancel(traversal, spared, request)

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        self._conductor.loop.stop(claims)

    def poll_now(self) -> None:
        self._conductor.world.look(self._conductor.host)

    def notice_activity(self) -> None:
        self._conductor.lookout.stir()


class Messages:
    """The subject.

    :param folder: an empty folder.
    """

    name = "messages"
    cost = 1

    def __init__(self, folder: pathlib.Path) -> None:
        self._renewed = Renewed(folder)

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return messages."""
        return Mutations(BASES).inputs()

    def run(self, sent: Json) -> None:
        """Deliver a message, and let the conductor work."""
        installation = self._renewed.get()
        try:
            _deliver(installation, sent)
            installation.quiet()
        except BaseException:
            self._renewed.drop()
            raise


def _deliver(installation: Installation, sent: Json) -> None:
    """Deliver a message as the server of messages does, which refuses unknown methods itself."""
    method = sent.get("method")
    arguments = sent.get("arguments")
    if not isinstance(method, str) or method not in MESSAGES or not isinstance(arguments, dict):
        return
    [conductor] = installation.world.conductors.values()
    with contextlib.suppress(Malformed):
        deliver(Receiver(conductor), Hint(method, installation.filled(arguments)))
