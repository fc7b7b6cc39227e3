"""Sends the events of stacks to their event sinks."""

import functools
import json
import logging
from collections.abc import Collection, Sequence

from ...db import event_sinks
from ...db.event_sinks import Delivery, SinkRow
from ...observe.logs import about
from ..event_queues import RequestRefused, SendFailed
from .context import DutyContext
from .slice_scan import PAGE, SliceScan

LOG = logging.getLogger(__name__)
TAKEN_FOR = 20.0
"""Seconds that a sink stays taken for one request: after a conductor's death another one waits no longer."""
REQUESTS = 40
"""Requests to one sink before others get their turn."""
TOGETHER = 50
"""Messages of one request."""
MOST_BYTES = 200_000
"""Bytes of one request's bodies: Zaqar takes 256 KiB, if the operator or the queue allows no less."""
FIRST_PAUSE = 2.0
LONGEST_PAUSE = 300.0
"""Seconds until a failed sink is retried: doubled each time, up to the longest."""
MOST_REFUSED = 3
"""Single messages that a sink refuses before the others wait, too."""


class EventDelivery:
    """Sends events in the order in which they were recorded, at least once.

    A message is deleted when its sink has it.  A sink that fails is retried with growing pauses, and delays
    no other one: Zaqar may hang, so the background pool calls it.  Events that are older than a message may
    become in the queue are not sent any more.
    """

    interval = 1.0

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._scan = SliceScan(context, "Event sink")
        self._background = context.background("The delivery of events")

    def run(self) -> None:
        """Submit the sinks of the slice that have messages, and closed ones, to the pool."""
        now = self._context.clock()
        database = self._context.database
        read = functools.partial(event_sinks.with_work, now=now, limit=PAGE)
        for ids in self._scan.pages(read, start="", position=str):
            if not ids:
                return
            for sink in database.read(lambda conn, ids=ids: event_sinks.due(conn, ids, now)):  # type: ignore[misc]
                if self._context.ring.owns(sink.shard):
                    self._background.submit(sink.id, functools.partial(self._serve, sink))

    def _serve(self, sink: SinkRow) -> None:
        now = self._context.clock()
        # Only one conductor sends: taking postpones the sink for all others.
        if not self._context.database.write(
            lambda conn: event_sinks.take(conn, sink.id, now, now + TAKEN_FOR)
        ):
            return
        with about(stack=sink.root_id):
            sent, failure = self._send_all(sink)
            if failure is not None:
                self._postpone(sink, failure, progressed=sent > 0)
                return
            if sink.failures and sent:
                LOG.info("Queue %s gets the events of stack %s again", sink.target, sink.root_id)
        now = self._context.clock()
        self._context.database.write(lambda conn: event_sinks.release(conn, sink, now), brief=True)

    def _send_all(self, sink: SinkRow) -> tuple[int, SendFailed | None]:
        """Send the messages that wait for a sink, in a few requests at the most.

        A request that is refused is divided; a message that is refused by itself lets the others pass.

        :returns: how many messages the sink has taken, and the failure for which it is to be retried later.
        """
        sent = 0
        size = TOGETHER
        refused = dict[int, SendFailed]()
        for _ in range(REQUESTS):
            batch = self._next_batch(sink, size, refused)
            if not batch or len(refused) >= MOST_REFUSED:
                break
            try:
                self._context.post(sink, [delivery.body for delivery in batch])
            except RequestRefused as error:
                size = max(1, len(batch) // 2)
                if len(batch) == 1:
                    refused[batch[0].id] = error
                    size = TOGETHER
            except SendFailed as error:
                return sent, error
            else:
                self._done(sink, batch)
                sent += len(batch)
        return sent, next(iter(refused.values()), None)

    def _next_batch(self, sink: SinkRow, size: int, refused: Collection[int]) -> Sequence[Delivery]:
        """Return the oldest messages, as many as one request may have, without refused ones."""
        read = functools.partial(event_sinks.oldest, sink_id=sink.id, limit=size + len(refused))
        waiting = self._fresh(sink, self._context.database.read(read))
        return _fitting([delivery for delivery in waiting if delivery.id not in refused])

    def _fresh(self, sink: SinkRow, waiting: Sequence[Delivery]) -> Sequence[Delivery]:
        """Return the messages that are not too old, and delete the others."""
        oldest = self._context.clock() - sink.ttl
        fresh = [delivery for delivery in waiting if delivery.at >= oldest]
        if len(fresh) < len(waiting):
            old = [delivery for delivery in waiting if delivery.at < oldest]
            LOG.warning(
                "%d events of stack %s are older than %d s, and are not sent to queue %s",
                len(old),
                sink.root_id,
                sink.ttl,
                sink.target,
            )
            self._done(sink, old)
        return fresh

    def _done(self, sink: SinkRow, batch: Sequence[Delivery]) -> None:
        until = self._context.clock() + TAKEN_FOR
        self._context.database.write(lambda conn: event_sinks.done(conn, sink, batch, until), brief=True)

    def _postpone(self, sink: SinkRow, error: SendFailed, *, progressed: bool) -> None:
        if sink.failures == 0:
            text = "Sending events of stack %s to queue %s failed, retrying: %s"
            LOG.warning(text, sink.root_id, sink.target, error)
        failures = 1 if progressed else sink.failures + 1
        # Not longer than a short-lived message would survive.
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE, sink.ttl / 4)
        until = self._context.clock() + pause
        self._context.database.write(
            lambda conn: event_sinks.postpone(conn, sink, failures, until), brief=True
        )


def _fitting(waiting: Sequence[Delivery]) -> list[Delivery]:
    """Return the first messages that one request may have; at least one, if there is one."""
    batch = list[Delivery]()
    size = 0
    for delivery in waiting:
        size += len(json.dumps(delivery.body))
        if batch and size > MOST_BYTES:
            break
        batch.append(delivery)
    return batch
