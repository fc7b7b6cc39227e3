"""The group as a process sees it that is not a member: an operator's command or the API."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .group import DroppedOut, Group, GroupError, Record
from .hashring import Member
from .member_records import is_valid_record, member_of
from .timing import LEFT, MembershipTiming, latest

READ_EVERY = 0.1
"""Seconds between two reads of the group."""
PATIENCE = 10.0
"""Seconds for the backend beyond the time of watching."""


@dataclass(frozen=True)
class GroupStatus:
    """The members, as an observer saw them.

    :ivar alive: those that sent a heartbeat while we watched.
    :ivar silent: those that have a record and sent none: dead, frozen or cut off.  The others count them as
        members until the membership timeout.
    """

    alive: frozenset[Member] = frozenset()
    silent: frozenset[Member] = frozenset()

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts of the members that are alive."""
        return frozenset(member.host for member in self.alive)


class Observer:
    """Watches the group without joining it.  Used by one thread.

    :param group: never written to.
    :param monotonic, sleep: in seconds.
    """

    def __init__(
        self,
        group: Group,
        timing: MembershipTiming,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._group = group
        self._timing = timing
        self._monotonic = monotonic
        self._sleep = sleep

    def watch(self) -> GroupStatus:
        """Return when each member has sent a heartbeat, after `timing.silence` at the latest.

        :raises GroupError: the backend cannot be reached.
        """
        self._group.open(create=False)
        try:
            return self._watch()
        finally:
            self._group.close()

    def _watch(self) -> GroupStatus:
        before = self._read()
        moved = set[str]()
        now = before
        watched = 0.0
        last = self._monotonic()
        while now.keys() - moved and watched < self._timing.silence:
            self._sleep(READ_EVERY)
            began = self._monotonic()
            now = self._read()
            watched += self._timing.watched(began - last)
            last = began
            moved |= {host for host in now if _heartbeat(now[host]) != _heartbeat(before.get(host))}
        members = {host: member_of(record) for host, record in now.items()}
        alive = frozenset(member for host, member in members.items() if host in moved)
        return GroupStatus(alive, frozenset(members.values()) - alive)

    def _read(self) -> Mapping[str, Record]:
        """Return the records of the members that have not left, by host."""
        try:
            records = latest(filter(is_valid_record, self._group.read()))
        except DroppedOut:
            return {}  # There is no group yet.
        return {host: record for host, record in records.items() if record.get("state") != LEFT}


def _heartbeat(record: Record | None) -> tuple[object, object] | None:
    return None if record is None else (record["incarnation"], record["beat"])


class SharedObserver:
    """Lets several threads share one observer, and keeps its answer for a while.

    :param make: makes an observer; a call to the backend may hang, so each observer has its own thread.
    :param longest: seconds for which an observer watches at most.
    :param keep: seconds for which an answer is returned again.
    """

    def __init__(
        self,
        make: Callable[[], Observer],
        *,
        longest: float,
        keep: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._longest = longest
        self._keep = keep
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last: tuple[float, GroupStatus | str] | None = None

    def status(self) -> GroupStatus | str:
        """Return the members, or the reason why they are unknown."""
        with self._lock:
            if self._last is None or self._monotonic() - self._last[0] >= self._keep:
                status = self._ask()
                self._last = self._monotonic(), status
            return self._last[1]

    def _ask(self) -> GroupStatus | str:
        answers: list[GroupStatus | str] = []

        def ask() -> None:
            try:
                answers.append(self._make().watch())
            except GroupError as error:
                answers.append(str(error))

        thread = threading.Thread(target=ask, name="observer", daemon=True)
        thread.start()
        within = self._longest + PATIENCE
        thread.join(within)
        return answers[0] if answers else f"no answer within {within:g} s"
