"""The requests that bring the messages of one event sink to its queue, and the pauses between them."""

import logging
import typing
from collections.abc import Callable, Sequence

import pytest
import sqlalchemy as sa
from harness.duties import duty_context
from stoker.conductor.duties.event_delivery import EventDelivery
from stoker.conductor.event_queues import RequestRefused, SendFailed
from stoker.db.engine import Database
from stoker.db.event_sinks import LINGER, SinkRow
from stoker.db.schema import tables

Json = typing.Any
NOW = 1_000_000.0


class Sink:
    """One sink with its messages, and its queue.

    :ivar requests: the bodies of each request.
    :ivar taken_for: the seconds for which the sink is still taken, at each request.
    :ivar seconds: duration of a request.
    :ivar refuses: whether the queue refuses a request of these bodies.
    :ivar error: the queue's answer to the others, after as many requests as it accepts.
    :ivar is_taken: whether another conductor takes the sink before this one does.
    """

    def __init__(self, database: Database) -> None:
        self.now = NOW
        self.requests: list[Sequence[Json]] = []
        self.taken_for: list[float] = []
        self.seconds = 0.0
        self.refuses: Callable[[Sequence[Json]], bool] = lambda bodies: False
        self.error: SendFailed | None = None
        self.accepts = 0
        self.is_ours = True
        self.is_taken = False
        self._database = database
        for table in (tables.event_sink, tables.event_delivery):
            self._execute(sa.delete(table))
        values = {"id": "1", "root_id": "s", "shard": 7, "target": "q", "ttl": 3600, "due_at": NOW}
        self._execute(sa.insert(tables.event_sink).values(values))
        self.duty = EventDelivery(
            duty_context(database, self, post=self._post, clock=lambda: self.now, settings=None)
        )

    def _execute(self, statement: sa.Executable) -> None:
        self._database.write(lambda conn: conn.execute(statement))

    def set(self, **values: Json) -> None:
        """Change columns of the sink."""
        self._execute(sa.update(tables.event_sink).values(values))

    def put(self, bodies: Sequence[Json], at: float = NOW) -> None:
        """Store messages."""
        rows = [{"sink_id": "1", "at": at, "body": body} for body in bodies]
        self._database.write(lambda conn: conn.execute(sa.insert(tables.event_delivery), rows))

    def waiting(self) -> list[Json]:
        """Return the messages that are still to be sent."""
        query = sa.select(tables.event_delivery.c.body).order_by(tables.event_delivery.c.id)
        return list(self._database.read(lambda conn: conn.execute(query).scalars().all()))

    def row(self) -> tuple[float, int]:
        """Return the seconds until the sink is due, and its failures."""
        query = sa.select(tables.event_sink.c.due_at, tables.event_sink.c.failures)
        due_at, failures = self._database.read(lambda conn: conn.execute(query).one())
        return due_at - self.now, failures

    def owns(self, shard: int) -> bool:
        assert shard == 7
        if self.is_taken:
            self.set(due_at=self.now + 20.0)
        return self.is_ours

    def _post(self, _sink: SinkRow, bodies: Sequence[Json]) -> None:
        self.requests.append(bodies)
        self.taken_for.append(self.row()[0])
        self.now += self.seconds
        if self.refuses(bodies):
            raise RequestRefused("too large")
        if self.error is not None and len(self.requests) > self.accepts:
            raise self.error

    def run(self) -> list[int]:
        """Run the duty once; return how many messages each request had."""
        self.requests.clear()
        self.taken_for.clear()
        self.duty.run()
        return [len(request) for request in self.requests]


@pytest.fixture
def sink(database: Database) -> Sink:
    return Sink(database)


def test_messages_are_sent_fifty_at_a_time_in_their_order(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink.put(range(120))
    sink.seconds = 3.0
    assert sink.run() == [50, 50, 20]
    assert [body for request in sink.requests for body in request] == list(range(120))
    assert sink.taken_for == [20.0, 20.0, 20.0], "each request has as long as the first one"
    assert (sink.waiting(), sink.row(), caplog.messages) == ([], (0.0, 0), [])


def test_other_sinks_get_their_turn_after_forty_requests(sink: Sink) -> None:
    sink.put(range(2100))
    assert sink.run() == [50] * 40
    assert len(sink.waiting()) == 100


def test_a_request_has_no_more_bytes_than_a_queue_takes(sink: Sink) -> None:
    sink.put(["x" * size for size in (99_998, 99_998, 99_998, 250_000, 10, 199_987, 10)])
    sink.run()
    assert [[len(body) for body in request] for request in sink.requests] == [
        [99_998, 99_998], [99_998], [250_000], [10], [199_987], [10],
    ]  # fmt: skip


def test_nothing_is_sent_for_a_sink_of_others_or_that_another_conductor_has_taken(sink: Sink) -> None:
    sink.put(range(3))
    sink.is_ours = False
    assert (sink.run(), sink.row()) == ([], (0.0, 0))
    sink.is_ours = sink.is_taken = True
    assert (sink.run(), sink.row()) == ([], (20.0, 0))


def test_a_refused_request_is_halved_until_one_message_is_left_out(sink: Sink) -> None:
    sink.put(range(9))
    sink.refuses = lambda bodies: 1 in bodies
    assert sink.run() == [9, 4, 2, 1, 1, 7]
    assert sink.waiting() == [1]
    assert sink.row() == (2.0, 1)


def test_three_messages_that_are_refused_alone_end_the_round(sink: Sink) -> None:
    sink.put(range(9))
    sink.refuses = lambda bodies: True
    assert sink.run() == [9, 4, 2, 1, 8, 4, 2, 1, 7, 3, 1]
    assert sink.row() == (2.0, 1)


@pytest.mark.parametrize(
    ("failures", "ttl", "pause"),
    [(0, 3600, 2.0), (1, 3600, 4.0), (2, 3600, 8.0), (7, 3600, 256.0), (8, 3600, 300.0), (40, 3600, 300.0),
     (5, 60, 15.0)],
)  # fmt: skip
def test_pauses_double_and_end_before_a_message_is_too_old(
    sink: Sink, caplog: pytest.LogCaptureFixture, failures: int, ttl: int, pause: float
) -> None:
    sink.put(range(3))
    sink.set(failures=failures, ttl=ttl)
    sink.error = SendFailed("503")
    assert sink.run() == [3]
    assert (sink.row(), sink.waiting()) == ((pause, failures + 1), [0, 1, 2])
    assert len(caplog.records) == (failures == 0)


def test_one_that_took_a_message_before_it_failed_pauses_as_the_first_time(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink.put(["x" * 250_000, "y"])
    sink.set(failures=5)
    sink.error = SendFailed("503")
    sink.accepts = 1
    assert sink.run() == [1, 1]
    assert sink.row() == (2.0, 1)
    sink.error = None
    sink.now += 2.0
    assert sink.run() == [1]
    assert "Queue q gets the events of stack s again" in caplog.text
    assert sink.row() == (0.0, 0)


def test_a_closed_sink_goes_when_nothing_can_come_for_it_any_more(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink.set(failures=5, closed_at=NOW - LINGER)
    assert (sink.run(), caplog.messages) == ([], [])
    with pytest.raises(sa.exc.NoResultFound):
        sink.row()


def test_messages_that_are_too_old_are_left_out_and_counted(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    sink.set(ttl=60)
    sink.put(range(3))
    sink.now = NOW + 60
    assert sink.run() == [3]
    sink.put(["old"])
    sink.put(["new"], at=NOW + 1)
    sink.now = NOW + 61
    assert sink.run() == [1]
    assert sink.requests == [["new"]]
    assert "1 events of stack s are older than 60 s, and are not sent to queue q" in caplog.text
    assert sink.waiting() == []
