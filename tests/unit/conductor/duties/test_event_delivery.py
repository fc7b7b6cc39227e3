"""The requests that bring the messages of one event sink to its queue, and the pauses between them."""

import dataclasses
import logging
import types
import typing
from collections.abc import Callable, Collection, Sequence

import pytest
from harness.duties import duty_context
from stoker.conductor.duties.event_delivery import EventDelivery
from stoker.conductor.event_queues import RequestRefused, SendFailed
from stoker.db.engine import Database
from stoker.db.event_sinks import Delivery, SinkRow
from stoker.db.ids import StackId

Json = typing.Any
NOW = 1_000_000.0


class Sink:
    """One sink with its messages, and its queue.

    :ivar messages: those that wait.
    :ivar requests: the bodies of each request.
    :ivar refuses: whether the queue refuses a request of these bodies.
    :ivar error: the queue's answer to the others, after as many requests as it accepts.
    :ivar until: how long the sink is taken, or postponed, and for how many failures.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bodies: Sequence[Json], *, ttl: int = 3600) -> None:
        self.now = NOW
        self.row = SinkRow("1", StackId("s"), 7, "q", ttl, NOW, 0, None)
        self.messages = [Delivery(number, NOW, body) for number, body in enumerate(bodies)]
        self.requests: list[Sequence[Json]] = []
        self.refuses: Callable[[Sequence[Json]], bool] = lambda bodies: False
        self.error: SendFailed | None = None
        self.accepts = 0
        self.is_free = self.is_ours = True
        self.until: list[tuple[str, float, int]] = []
        rows = types.SimpleNamespace(
            with_work=lambda _conn, after, now, limit: [self.row.id] if after < "1" else [],
            due=lambda _conn, ids, now: [self.row],
            take=self._take, oldest=self._oldest, done=self._done,
            release=self._release, postpone=self._postpone,
        )  # fmt: skip
        monkeypatch.setattr("stoker.conductor.duties.event_delivery.event_sinks", rows)
        context = duty_context(
            typing.cast(Database, self), self, post=self._post, clock=lambda: self.now, settings=None
        )
        self.duty = EventDelivery(context)

    def clock(self) -> float:
        return self.now

    def owns(self, shard: int) -> bool:
        assert shard == 7
        return self.is_ours

    def read(self, query: Callable[[object], Json]) -> Json:
        return query(None)

    def write(self, transaction: Callable[[object], Json], *, brief: bool = False) -> Json:
        return transaction(None)

    def _take(self, _conn: object, _id: str, now: float, until: float) -> bool:
        self.until.append(("taken", until - now, 0))
        return self.is_free

    def _oldest(self, _conn: object, sink_id: str, limit: int) -> Sequence[Delivery]:
        return self.messages[:limit]

    def _done(self, _conn: object, _sink: SinkRow, done: Collection[Delivery], until: float) -> None:
        self.until.append(("done", until - self.now, len(done)))
        ids = {each.id for each in done}
        self.messages = [each for each in self.messages if each.id not in ids]

    def _release(self, _conn: object, _sink: SinkRow, now: float) -> None:
        self.until.append(("released", now - self.now, 0))

    def _postpone(self, _conn: object, sink: SinkRow, failures: int, until: float) -> None:
        self.until.append(("postponed", until - self.now, failures))

    def _post(self, _sink: SinkRow, bodies: Sequence[Json]) -> None:
        self.requests.append(bodies)
        if self.refuses(bodies):
            raise RequestRefused("too large")
        if self.error is not None and len(self.requests) > self.accepts:
            raise self.error

    def run(self) -> list[int]:
        """Run the duty once; return how many messages each request had."""
        self.requests.clear()
        self.until.clear()
        self.duty.run()
        return [len(request) for request in self.requests]


def test_messages_are_sent_fifty_at_a_time_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch, range(120))
    assert sink.run() == [50, 50, 20]
    assert [body for request in sink.requests for body in request] == list(range(120))
    parts = [("done", 20.0, count) for count in (50, 50, 20)]
    assert sink.until == [("taken", 20.0, 0), *parts, ("released", 0.0, 0)]


def test_other_sinks_get_their_turn_after_forty_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch, range(2100))
    assert sink.run() == [50] * 40
    assert len(sink.messages) == 100


def test_a_request_has_no_more_bytes_than_a_queue_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (99_998, 99_998, 99_998, 250_000, 10, 199_990, 10)
    bodies = ["x" * size for size in sizes]
    sink = Sink(monkeypatch, bodies)
    sink.run()
    assert [[len(body) for body in request] for request in sink.requests] == [
        [99_998, 99_998], [99_998], [250_000], [10], [199_990], [10],
    ]  # fmt: skip


def test_nothing_is_sent_for_a_sink_of_others_or_that_another_conductor_has_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = Sink(monkeypatch, range(3))
    sink.is_ours = False
    assert (sink.run(), sink.until) == ([], [])
    sink.is_ours, sink.is_free = True, False
    assert (sink.run(), sink.until) == ([], [("taken", 20.0, 0)])


def test_a_refused_request_is_halved_until_one_message_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch, range(9))
    sink.refuses = lambda bodies: 1 in bodies
    assert sink.run() == [9, 4, 2, 1, 1, 7]
    assert [each.body for each in sink.messages] == [1]
    assert sink.until[-1] == ("postponed", 2.0, 1)


def test_three_messages_that_are_refused_alone_end_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch, range(9))
    sink.refuses = lambda bodies: True
    assert sink.run() == [9, 4, 2, 1, 8, 4, 2, 1, 7, 3, 1]
    assert sink.until[-1] == ("postponed", 2.0, 1)


@pytest.mark.parametrize(
    ("failures", "ttl", "pause"),
    [(0, 3600, 2.0), (1, 3600, 4.0), (2, 3600, 8.0), (7, 3600, 256.0), (8, 3600, 300.0), (40, 3600, 300.0),
     (5, 60, 15.0)],
)  # fmt: skip
def test_pauses_double_and_end_before_a_message_is_too_old(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failures: int, ttl: int, pause: float
) -> None:
    sink = Sink(monkeypatch, range(3), ttl=ttl)
    sink.row = dataclasses.replace(sink.row, failures=failures)
    sink.error = SendFailed("503")
    assert sink.run() == [3]
    assert sink.until[-1] == ("postponed", pause, failures + 1)
    assert len(caplog.records) == (failures == 0)


def test_one_that_took_some_messages_before_it_failed_pauses_as_the_first_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink = Sink(monkeypatch, range(52))
    sink.row = dataclasses.replace(sink.row, failures=5)
    sink.error, sink.accepts = SendFailed("503"), 1
    assert sink.run() == [50, 2]
    assert sink.until[-1] == ("postponed", 2.0, 1)
    sink.error = None
    assert sink.run() == [2]
    assert "Queue q gets the events of stack s again" in caplog.text
    caplog.clear()
    sink.run()
    assert caplog.text == "", "nothing was sent"


def test_messages_that_are_too_old_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Sink(monkeypatch, range(3), ttl=60)
    sink.now = NOW + 60
    assert sink.run() == [3]
    sink.messages = [Delivery(1, NOW, "old"), Delivery(2, NOW + 1, "new")]
    sink.now = NOW + 61
    assert sink.run() == [1]
    assert sink.requests == [["new"]]
    assert "1 events of stack s are older than 60 s, and are not sent to queue q" in caplog.text
    assert sink.messages == []
