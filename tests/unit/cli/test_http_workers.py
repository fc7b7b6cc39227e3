"""The order in which requests get the API's threads."""

import threading

from harness.waiting import wait_for
from stoker.cli.http.workers import Workers


class Request:
    """A request that notes when a thread has it."""

    def __init__(self, name: str, order: list[str], until: threading.Event) -> None:
        self.name = name
        self._order = order
        self._until = until

    def service(self) -> None:
        self._order.append(self.name)
        self._until.wait(60)

    def cancel(self) -> None:
        """Nothing."""


def test_projects_with_the_same_load_are_served_in_the_order_of_their_requests() -> None:
    order: list[str] = []
    ends = threading.Event()
    goes_on = threading.Event()
    goes_on.set()
    workers = Workers("test", 1, share=1)
    try:
        workers.add(Request("first", order, ends), "busy")
        wait_for(lambda: bool(order), 60)
        # The oldest request of `a` is older than that of `b`, though `b` has waited before.
        for name in ("b1", "a1", "b2", "c1", "a2"):
            workers.add(Request(name, order, goes_on), name[0])
        ends.set()
        wait_for(lambda: len(order) == 6, 60)
        assert order == ["first", "b1", "a1", "b2", "c1", "a2"]
    finally:
        workers.shutdown(timeout=1)
