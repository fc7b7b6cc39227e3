"""What a running step is given of its conductor."""

import threading
import urllib.parse
from collections.abc import Callable

from ..db import resources
from ..db.claims import Claim
from ..db.engine import Database
from ..db.errors import NotFound
from ..resources.children import Children
from ..resources.contract import Peer
from ..resources.errors import Cancelled, Final


class StepWork:
    """Implements resources.contract.Work for one step of one claim.

    :param stop: set when the step shall end.
    :param api_url: root under which signals reach the API, without a slash at its end.
    """

    def __init__(
        self,
        claim: Claim,
        *,
        database: Database,
        clock: Callable[[], float],
        stop: threading.Event,
        api_url: str,
        children: Children,
    ) -> None:
        self._claim = claim
        self._database = database
        self._clock = clock
        self._stop = stop
        self._api_url = api_url
        self.children = children

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._clock()

    def checkpoint(self) -> None:
        """:raises Cancelled: the step shall end."""
        if self._stop.is_set():
            raise Cancelled

    def pause(self, seconds: float) -> None:
        """:raises Cancelled: the step shall end."""
        if self._stop.wait(max(0.0, seconds)):
            raise Cancelled

    def peer(self, name: str) -> Peer:
        """:raises Final: the stack has no such resource."""
        stack_id = self._claim.task.stack_id
        try:
            found = self._database.read(lambda conn: resources.by_name(conn, stack_id, name))
        except NotFound as error:
            raise Final(f"The stack has no resource {name}") from error
        return Peer(
            id=found.id,
            name=found.name,
            physical_id=found.physical_id,
            metadata=found.metadata or {},
            generation=found.generation,
        )

    def signal_url(self, resource_name: str) -> str:
        """Where a signal for a resource of this stack can be posted."""
        claim = self._claim
        parts = (
            "v1",
            claim.tenant,
            "stacks",
            claim.stack_name,
            claim.task.stack_id,
            "resources",
            resource_name,
            "signal",
        )
        return "/".join([self._api_url, *(urllib.parse.quote(part, safe="") for part in parts)])
