"""Membership in the group of conductors, kept by one thread of its own."""

import logging
import threading
import time
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from .group import Group, GroupError
from .hashring import ACTIVE, Member, View
from .timing import MembershipTiming, Sign, latest, living, watch

LOG = logging.getLogger(__name__)
Listener = Callable[[View], None]


@dataclass(frozen=True)
class Self:
    """What we tell the others of ourselves."""

    host: str
    weight: float = 1.0
    version: str = "1.0"


class Membership:
    """Joins, gives signs of life, watches the others, and rejoins after a lapse.

    `view()` and `member()` answer at once from any thread.  All calls to the backend are made by the
    membership's own thread, which may hang while the backend is away; then the others' ownership stays as it
    was, and our own work stops in time by our own clock.

    :param group: used by the membership's thread only.
    :param monotonic: seconds that never jump.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        group: Group,
        me: Self,
        *,
        shard_count: int,
        timing: MembershipTiming | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._group = group
        self._me = me
        self._timing = timing or MembershipTiming()
        self._monotonic = monotonic
        self._clock = clock
        self._shard_count = shard_count
        self._view = View(frozenset(), shard_count)
        self._state = ACTIVE
        self._listeners: list[Listener] = []
        self._incarnation: str | None = None
        self._started_at = 0.0
        self._confirmed = float("-inf")
        self._beat = 0
        self._signs: dict[str, Sign] = {}
        self._looked: float | None = None
        self._open = False
        self._replaced = False
        self._stop = threading.Event()
        self._soon = threading.Event()
        self._dead = False
        self._thread: threading.Thread | None = None

    # -- from any thread ---------------------------------------------------------------------------

    def view(self) -> View:
        """Who is there, as we know it."""
        return self._view

    def member(self) -> str | None:
        """Our own name (HOST/INCARNATION); None while we are not in the group, or cannot be sure that the
        others still count us in."""
        incarnation = self._incarnation
        if incarnation is None or self._monotonic() - self._confirmed >= self._timing.self_stop:
            return None
        return f"{self._me.host}/{incarnation}"

    def on_change(self, listener: Listener) -> None:
        """Call `listener` in the membership's thread with each new view."""
        self._listeners.append(listener)

    def set_state(self, state: str) -> None:
        """Tell the others that we are active, or draining."""
        self._state = state
        self.poll_now()

    def poll_now(self) -> None:
        """Look as soon as possible instead of at the next interval."""
        self._soon.set()

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    def stop(self, wait: float = 5.0) -> None:
        """Leave the group.  Returns after `wait` seconds at the most, also while the backend hangs."""
        self._stop.set()
        self._soon.set()
        if self._thread is not None:
            self._thread.join(wait)
        self._incarnation = None

    def kill(self) -> None:
        """End without a word to the others, as a killed process does: for demonstrations and tests."""
        self._dead = True
        self.stop()

    # -- in the membership's thread ----------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            began = self._monotonic()
            self.step()
            pause = min(self._timing.heartbeat, self._timing.poll) - (self._monotonic() - began)
            self._soon.wait(max(0.01, pause))
            self._soon.clear()
        self._end()

    def step(self) -> None:
        """One sign of life and one look around; called by the thread, or by a test in its place."""
        try:
            if not self._open:
                self._group.open()
                self._open = True
            self._give_sign()
            self._look()
        except GroupError as error:
            self._looked = None
            LOG.warning("The coordination backend is away, ownership stays as it is: %s", error)
            if self.member() is None:
                self._drop_out()

    def _end(self) -> None:
        if self._dead or not self._open:
            return
        try:
            self._group.leave()
            self._group.close()
        except GroupError as error:
            LOG.warning("We could not leave the group, the others will notice in time: %s", error)

    def _give_sign(self) -> None:
        if self._replaced:
            return
        began = self._monotonic()
        if self._incarnation is not None and began - self._confirmed >= self._timing.timeout:
            # We were silent for too long (paused, or cut off): the others have buried us.
            self._drop_out()
        incarnation = self._incarnation
        if incarnation is None:
            incarnation, self._started_at = uuid.uuid4().hex[:12], self._clock()
        self._beat += 1
        self._group.write(self._record(incarnation))
        self._confirmed = began
        if self._incarnation is None:
            LOG.info("Joined the ring as %s/%s", self._me.host, incarnation)
        self._incarnation = incarnation

    def _record(self, incarnation: str) -> dict[str, typing.Any]:
        return {
            "host": self._me.host,
            "incarnation": incarnation,
            "weight": self._me.weight,
            "version": self._me.version,
            "state": self._state,
            "started_at": self._started_at,
            "beat": self._beat,
        }

    def _look(self) -> None:
        records = latest(self._group.read())
        now = self._monotonic()
        elapsed = 0.0 if self._looked is None else now - self._looked
        self._looked = now
        beats = {host: (str(r["incarnation"]), int(str(r["beat"]))) for host, r in records.items()}
        self._signs = watch(self._signs, beats, elapsed)
        alive = living(self._signs, self._timing.timeout)
        self._check_self(records.get(self._me.host))
        members = [_member(records[host]) for host in alive]
        self._publish(View.of(members, self._shard_count))

    def _check_self(self, own: typing.Any) -> None:
        if self._incarnation is None:
            return
        if own is None:
            LOG.warning("We are not in the group any more; we rejoin")
            self._drop_out()
        elif own["incarnation"] != self._incarnation:
            if float(own["started_at"]) >= self._started_at:
                self._replaced = True
                LOG.error("Another conductor calls itself %s; this one stops its work", self._me.host)
            self._drop_out()

    def _drop_out(self) -> None:
        """We are out: whatever we held is no longer ours; the next sign of life is a new incarnation's."""
        if self._incarnation is not None:
            LOG.warning("Dropped out of the ring as %s/%s", self._me.host, self._incarnation)
        self._incarnation = None
        self._confirmed = float("-inf")

    def _publish(self, view: View) -> None:
        if view == self._view:
            return
        self._view = view
        LOG.info("The ring has %d members now", len(view.members))
        for listener in self._listeners:
            listener(view)


def _member(record: typing.Any) -> Member:
    return Member(
        host=str(record["host"]),
        incarnation=str(record["incarnation"]),
        weight=float(record["weight"]),
        state=str(record["state"]),
        started_at=float(record["started_at"]),
    )
