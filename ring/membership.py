"""Membership in the group of conductors, kept by one thread of its own."""

import logging
import threading
import time
import typing
import uuid
from collections.abc import Callable, Iterable, Sequence

from .group import DroppedOut, Group, GroupError, MemberReplaced, Record
from .hashring import ACTIVE, Member, View
from .local_member import PROCESS, AbsenceWarning, DropWarning, LocalMember, RecordWriter
from .member_records import MemberRecords
from .timing import LEFT, MembershipTiming

LOG = logging.getLogger(__name__)
Listener = Callable[[View], None]

LEAST_POLL = 0.1
"""Seconds between two reads, however soon a silent member counts as dead."""
LONGEST_LEAVE = 3.0
"""Seconds for which a member that stops waits for the others to see it."""


class Membership:
    """Joins the group, sends heartbeats, watches the other members, and rejoins after a lapse.

    `view()` and `member()` answer at once from any thread.  The membership's own thread makes all calls to
    the backend, and may hang while the backend is unavailable.  Then ownership stays as it was, and our own
    work stops in time by our own clock.

    :ivar timing: its intervals.
    :ivar me: this conductor, as the next heartbeat describes it; any thread may replace it.
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
        self._process = uuid.uuid4().hex[:PROCESS]
        self._candidate = ""
        self._confirmed = float("-inf")
        self._seen = float("-inf")
        self._records = MemberRecords(self.timing)
        self._stuck: Callable[[], Sequence[str]] = lambda: ()
        self._absence = AbsenceWarning(self.timing.timeout)
        self._drops = DropWarning(self.timing)
        self._rejoined = float("-inf")
        self._open = False
        self._unavailable = False
        self._replaced = False
        self._stop = threading.Event()
        self._soon = threading.Event()
        self._dead = False
        self._thread: threading.Thread | None = None

    # -- from any thread ---------------------------------------------------------------------------

    def view(self) -> View:
        """Return the members as we know them."""
        return self._view

    def member(self) -> str | None:
        """Return our own name (HOST/INCARNATION), None while we may not act.

        That is while we are not in the group, while the others may consider us dead, and while we do not know
        the other members.
        """
        incarnation = self._incarnation
        if incarnation is None or self._stop.is_set() or self._lapsed():
            return None
        return f"{self.me.host}/{incarnation}"

    def _lapsed(self) -> bool:
        now = self._monotonic()
        return now - self._confirmed >= self.timing.self_stop or now - self._seen >= self.timing.timeout

    def on_change(self, listener: Listener) -> None:
        """Call `listener` with each new view, in the membership's thread."""
        self._listeners.append(listener)

    def leave_while(self, stuck: Callable[[], Sequence[str]]) -> None:
        """Stay out of the ring while `stuck` names work without progress, unless no other member is in it.

        The membership's thread calls `stuck`; call this method before `start`.
        """
        self._stuck = stuck

    def set_state(self, state: str) -> None:
        """Announce to the others that we are active, or draining."""
        self._state = state
        self.poll_now()

    def poll_now(self) -> None:
        """Read the group as soon as possible instead of at the next interval."""
        self._soon.set()

    def start(self) -> None:
        """Start the thread; return at once."""
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)
        self._thread.start()

    def stop(self, wait: float = 5.0) -> None:
        """Leave the group, within `wait` seconds even while the backend hangs.

        The record says "left" for a poll interval, so that all others read it.
        """
        self._stop.set()
        self._soon.set()
        if self._thread is not None:
            self._thread.join(wait)
        self._incarnation = None

    def kill(self) -> None:
        """Stop without leaving the group, as a killed process does: for demonstrations and tests."""
        self._dead = True
        self.stop()

    # -- in the membership's thread ----------------------------------------------------------------

    def _run(self) -> None:
        beat_at = poll_at = self._monotonic()
        is_requested = False
        while not self._stop.is_set():
            now = self._monotonic()
            self._drops.ran(now - min(beat_at, poll_at))
            beat = is_requested or now >= beat_at
            poll = is_requested or now >= poll_at
            try:
                self._run_once(beat=beat, poll=poll)
            except Exception:  # top of the thread: without it the thread would end, and we would never rejoin
                LOG.exception("The membership failed unexpectedly; ownership stays as it is")
                self._read_failed()
            beat_at = now + self.timing.heartbeat if beat else beat_at
            if poll:
                poll_at = now + min(self.timing.poll, max(LEAST_POLL, self._records.next_death_in()))
            is_requested = self._soon.wait(max(0.01, min(beat_at, poll_at) - self._monotonic()))
            self._soon.clear()
        self._end()

    def step(self) -> None:
        """Send one heartbeat and read the group once; tests call it in place of the thread."""
        self._run_once(beat=True, poll=True)

    def _run_once(self, *, beat: bool, poll: bool) -> None:
        self._try_once(beat=beat, poll=poll)
        self._absence.warn_if_due(self._monotonic(), is_in=self._incarnation is not None)

    def _try_once(self, *, beat: bool, poll: bool) -> None:
        try:
            if not self._open:
                self._group.open()
                self._open = True
            if stuck := ", ".join(self._stuck()) if _other_members(self._view, self.me.host) else "":
                self._leave_stuck(stuck)
            elif beat and not self._replaced:
                poll = self._send_and_poll(poll=poll)
            if poll or self._incarnation is None:
                self._poll()
            self._unavailable = False
        except MemberReplaced as error:
            self._absence.why = str(error)
            LOG.error("%s; this conductor stops its work", error)
            self._replaced = True
            self._drop_out()
        except DroppedOut as error:
            self._absence.why = str(error)
            LOG.warning("Not in the group: %s; rejoining", error)
            self._drop_out()
            self._open = False
            self._rejoin_soon()
        except GroupError as error:
            LOG.log(
                logging.DEBUG if self._unavailable else logging.WARNING,
                "The coordination backend is unavailable, ownership stays as it is: %s",
                error,
            )
            self._absence.why = f"the coordination backend is unavailable: {error}"
            self._unavailable = True
            self._read_failed()

    def _leave_stuck(self, stuck: str) -> None:
        self._absence.why = f"no progress for {self.timing.progress:g} s: {stuck}"
        if self._incarnation is not None:
            LOG.warning("Leaving the ring, others take over: %s", self._absence.why)
            self._writer.write(self.me, self._incarnation, LEFT)
            self._drop_out()

    def _read_failed(self) -> None:
        self._records.interrupted()
        if self._lapsed():
            self._lapse()

    def _send_and_poll(self, *, poll: bool) -> bool:
        """Send a heartbeat, and read the group if that is due; return whether it is to be read still.

        A member reads first, so that the heartbeat need not read its record again, or does both at once.  One
        that joins has to write first, to find itself in what it reads.
        """
        if not poll or self._incarnation is None:
            self._send_heartbeat(None)
            return poll
        if not self._exchange(self._incarnation):
            self._send_heartbeat(self._poll())
        return False

    def _exchange(self, incarnation: str) -> bool:
        """Send a heartbeat and read the group by one request; return whether that was possible.

        One that has lapsed writes nothing in its old name.
        """
        if self._lapsed():
            return False
        began = self._monotonic()
        read = self._writer.exchange(self.me, incarnation, self._state)
        if read is None:
            return False
        self._sent(began)
        self._see(read, began)
        return True

    def _send_heartbeat(self, read: Sequence[Record] | None) -> None:
        """Write our record; end the incarnation if it lapsed before the write or during it.

        After a lapse the others may have taken over from it.

        :param read: the records of all members, if they were read a moment ago.
        """
        if self._lapsed():
            self._lapse()
        began = self._monotonic()
        if self._incarnation is None:
            self._candidate = self._process + uuid.uuid4().hex[:PROCESS]
        self._writer.write(self.me, self._candidate, self._state, read)
        self._sent(began)

    def _sent(self, began: float) -> None:
        """Note that a heartbeat is in the group, or end the incarnation if it has lapsed meanwhile."""
        self._drops.took(self._monotonic() - began)
        if self._incarnation is not None and self._lapsed():
            self._lapse()
            self._rejoin_soon()
        else:
            self._confirmed = began

    def _poll(self) -> Sequence[Record]:
        began = self._monotonic()
        read = self._group.read()
        self._see(read, began)
        return read

    def _see(self, read: Sequence[Record], began: float) -> None:
        records, members = self._records.see(read, began)
        self._seen = began
        self._find_self(records.get(self.me.host))
        self._publish(members)

    def _find_self(self, record: typing.Any) -> None:
        """Join when our own record is read: before that we do not know the other members."""
        joined = record is not None and record["incarnation"] == self._candidate
        if self._incarnation is None and joined and not self._lapsed():
            LOG.info("Joined the ring as %s/%s", self.me.host, self._candidate)
            self._incarnation = self._candidate

    def _lapse(self) -> None:
        """Leave the ring, for our heartbeats came too late."""
        if self._incarnation is not None:
            self._drops.dropped(self._monotonic())
        self._drop_out()

    def _drop_out(self) -> None:
        """Leave the ring: our claims are no longer ours, and the next heartbeat is a new incarnation's."""
        self._confirmed = float("-inf")
        if self._incarnation is None:
            return
        LOG.warning("Dropped out of the ring as %s/%s", self.me.host, self._incarnation)
        self._incarnation = None
        # The next incarnation owns nothing until it has read the group.
        self._publish(_other_members(self._view, self.me.host))

    def _rejoin_soon(self) -> None:
        """Rejoin now, or at the next interval if that was tried a moment ago."""
        now = self._monotonic()
        if now - self._rejoined > self.timing.timeout:
            self._rejoined = now
            self._soon.set()

    def _publish(self, members: Iterable[Member]) -> None:
        members_seen = [m for m in members if m.host != self.me.host or m.incarnation == self._incarnation]
        view = View.of(members_seen, self._shard_count)
        if view == self._view:
            return
        self._view = view
        LOG.info("The ring has %d members now", len(view.members))
        for listener in self._listeners:
            listener(view)

    def _end(self) -> None:
        if self._dead or self._replaced or self._unavailable or not self._open:
            return
        try:
            if self._incarnation is not None:
                self._writer.write(self.me, self._incarnation, LEFT)
                if len(self._view.members) > 1:
                    time.sleep(min(1.5 * self.timing.poll, LONGEST_LEAVE))
            self._group.leave()
        except GroupError as error:
            LOG.warning("Could not leave the group, the others detect it after the timeout: %s", error)
        self._group.close()


def _other_members(view: View, host: str) -> list[Member]:
    return [member for member in view.members if member.host != host]
