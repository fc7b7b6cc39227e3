"""The order in which requests get the API's threads."""

import threading

import pytest
from harness.waiting import wait_for
from stoker.cli.http import workers as module
from stoker.cli.http.workers import BEGINNING, Workers


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


def test_few_requests_begin_at_a_time_and_more_when_those_end_or_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BEGINS_FOR", 3600.0)
    order: list[str] = []
    ends = [threading.Event() for _ in range(BEGINNING + 3)]
    workers = Workers("test", BEGINNING + 3)
    try:
        for number, end in enumerate(ends):
            workers.add(Request(str(number), order, end))
        wait_for(lambda: len(order) == BEGINNING, 60)
        workers.look()
        ends[0].set()
        wait_for(lambda: len(order) == BEGINNING + 1, 60)
        workers.look()
        assert len(workers.queue) == 2
        monkeypatch.setattr(module, "BEGINS_FOR", 0.0)
        for count in (BEGINNING + 2, BEGINNING + 3):
            workers.look()
            wait_for(lambda count=count: len(order) == count, 60)  # type: ignore[misc]
    finally:
        for end in ends:
            end.set()
        workers.shutdown(timeout=1)
