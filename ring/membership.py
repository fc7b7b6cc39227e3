"""Membership in the group of conductors, kept by one thread of its own."""

import logging
import threading
import time
import typing
import uuid
from collections.abc import Callable, Iterable, Sequence

from .group import DroppedOut, Group, GroupError, MemberReplaced
from .hashring import ACTIVE, Member, View
from .local_member import AbsenceWarning, LocalMember, RecordWriter
from .member_records import MemberRecords
from .timing import LEFT, MembershipTiming

LOG = logging.getLogger(__name__)
Listener = Callable[[View], None]

LONGEST_FAREWELL = 3.0
"""Seconds for which a member that stops waits for the others to see it."""


class Membership:
    """Joins, gives signs of life, watches the others, and rejoins after a lapse.

    `view()` and `member()` answer at once from any thread.  All calls to the backend are made by the
    membership's own thread, which may hang while the backend is away; then the others' ownership stays as it
    was, and our own work stops in time by our own clock.

    :ivar timing: its intervals.
    :ivar me: what we tell the others with the next sign of life; any thread may replace it.
    :param group: used by the membership's thread only.
    :param monotonic: seconds that never jump.
    :param clock: seconds since the epoch.
    """

    def __init__(
        self,
        group: Group,
        me: LocalMember,
        *,
        shard_count: int,
        timing: MembershipTiming | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._group = group
        self.me = me
        self.timing = timing or MembershipTiming()
        self._monotonic = monotonic
        self._writer = RecordWriter(group, clock)
        self._shard_count = shard_count
        self._view = View(frozenset(), shard_count)
        self._state = ACTIVE
        self._listeners: list[Listener] = []
        self._incarnation: str | None = None
        self._candidate = ""
        self._confirmed = float("-inf")
        self._seen = float("-inf")
        self._records = MemberRecords(self.timing)
        self._stuck: Callable[[], Sequence[str]] = lambda: ()
        self._absence = AbsenceWarning(self.timing.timeout)
        self._rejoined = float("-inf")
        self._open = False
        self._away = False
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
        others still count us in, or of who the others are."""
        incarnation = self._incarnation
        if incarnation is None or self._stop.is_set() or self._lapsed():
            return None
        return f"{self.me.host}/{incarnation}"

    def _lapsed(self) -> bool:
        now = self._monotonic()
        return now - self._confirmed >= self.timing.self_stop or now - self._seen >= self.timing.timeout

    def on_change(self, listener: Listener) -> None:
        """Call `listener` in the membership's thread with each new view."""
        self._listeners.append(listener)

    def leave_while(self, stuck: Callable[[], Sequence[str]]) -> None:
        """Stay out of the ring while `stuck` names what makes no progress here, unless nobody else is in it.

        It is asked in the membership's thread; call this before the start.
        """
        self._stuck = stuck

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
        """Leave the group.  Returns after `wait` seconds at the most, also while the backend hangs.

        Our farewell stands for a poll interval, so that all others read it.
        """
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
        beat_at = look_at = self._monotonic()
        asked = False
        while not self._stop.is_set():
            now = self._monotonic()
            beat, look = asked or now >= beat_at, asked or now >= look_at
            try:
                self._round(beat=beat, look=look)
            except Exception:  # top of the thread: without it nobody would notice, and nothing would rejoin
                LOG.exception("The membership broke; ownership stays as it is")
                self._cannot_look()
            beat_at = now + self.timing.heartbeat if beat else beat_at
            look_at = now + self.timing.poll if look else look_at
            asked = self._soon.wait(max(0.01, min(beat_at, look_at) - self._monotonic()))
            self._soon.clear()
        self._end()

    def step(self) -> None:
        """One sign of life and one look around; called by a test in the thread's place."""
        self._round(beat=True, look=True)

    def _round(self, *, beat: bool, look: bool) -> None:
        self._try_round(beat=beat, look=look)
        self._absence.warn_if_due(self._monotonic(), is_in=self._incarnation is not None)

    def _try_round(self, *, beat: bool, look: bool) -> None:
        try:
            if not self._open:
                self._group.open()
                self._open = True
            if stuck := ", ".join(self._stuck()) if _others(self._view, self.me.host) else "":
                self._step_aside(stuck)
            elif beat and not self._replaced:
                self._give_sign()
            if look or self._incarnation is None:
                self._look()
            self._away = False
        except MemberReplaced as error:
            self._absence.why = str(error)
            LOG.error("%s; this one stops its work", error)
            self._replaced = True
            self._drop_out()
        except DroppedOut as error:
            self._absence.why = str(error)
            LOG.warning("Not in the group: %s; we rejoin", error)
            self._drop_out()
            self._open = False
            self._rejoin_soon()
        except GroupError as error:
            LOG.log(
                logging.DEBUG if self._away else logging.WARNING,
                "The coordination backend is away, ownership stays as it is: %s",
                error,
            )
            self._absence.why = f"the coordination backend is unavailable: {error}"
            self._away = True
            self._cannot_look()

    def _step_aside(self, stuck: str) -> None:
        self._absence.why = f"no progress for {self.timing.progress:g} s: {stuck}"
        if self._incarnation is not None:
            LOG.warning("Leaving the ring, others take over: %s", self._absence.why)
            self._writer.write(self.me, self._incarnation, LEFT)
            self._drop_out()

    def _cannot_look(self) -> None:
        self._records.interrupted()
        if self._lapsed():
            self._drop_out()

    def _give_sign(self) -> None:
        """A lapse ends an incarnation, whether it came before the sign of life or while that was on its way:
        the others may have buried it."""
        if self._incarnation is not None and self._lapsed():
            self._drop_out()
        began = self._monotonic()
        if self._incarnation is None:
            self._candidate = uuid.uuid4().hex[:12]
        self._writer.write(self.me, self._incarnation or self._candidate, self._state)
        if self._incarnation is not None and self._lapsed():
            self._drop_out()
            self._rejoin_soon()
        else:
            self._confirmed = began

    def _look(self) -> None:
        began = self._monotonic()
        records, there = self._records.see(self._group.read(), began)
        self._seen = began
        self._find_self(records.get(self.me.host))
        self._publish(there)

    def _find_self(self, own: typing.Any) -> None:
        """We have joined when we have seen ourselves: before that we do not know who else is there."""
        joined = own is not None and own["incarnation"] == self._candidate
        if self._incarnation is None and joined and not self._lapsed():
            LOG.info("Joined the ring as %s/%s", self.me.host, self._candidate)
            self._incarnation = self._candidate

    def _drop_out(self) -> None:
        """We are out: whatever we held is no longer ours; the next sign of life is a new incarnation's."""
        self._confirmed = float("-inf")
        if self._incarnation is None:
            return
        LOG.warning("Dropped out of the ring as %s/%s", self.me.host, self._incarnation)
        self._incarnation = None
        # What we believed to own must not come back with the next incarnation before we have looked.
        self._publish(_others(self._view, self.me.host))

    def _rejoin_soon(self) -> None:
        """Now; at the next interval if that was tried a moment ago."""
        now = self._monotonic()
        if now - self._rejoined > self.timing.timeout:
            self._rejoined = now
            self._soon.set()

    def _publish(self, members: Iterable[Member]) -> None:
        seen = [m for m in members if m.host != self.me.host or m.incarnation == self._incarnation]
        view = View.of(seen, self._shard_count)
        if view == self._view:
            return
        self._view = view
        LOG.info("The ring has %d members now", len(view.members))
        for listener in self._listeners:
            listener(view)

    def _end(self) -> None:
        if self._dead or self._replaced or self._away or not self._open:
            return
        try:
            if self._incarnation is not None:
                self._writer.write(self.me, self._incarnation, LEFT)
                if len(self._view.members) > 1:
                    time.sleep(min(1.5 * self.timing.poll, LONGEST_FAREWELL))
            self._group.leave()
        except GroupError as error:
            LOG.warning("We could not leave the group, the others will notice in time: %s", error)
        self._group.close()


def _others(view: View, host: str) -> list[Member]:
    return [member for member in view.members if member.host != host]
