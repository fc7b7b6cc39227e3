"""Who is in the group, as one sees it who is not a member: the operator's commands and the API."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .group import DroppedOut, Group, GroupError, Record
from .hashring import Member
from .member_records import is_valid_record, member_of
from .timing import LEFT, MembershipTiming, latest

LOOK_EVERY = 0.1
"""Seconds between two looks at the group."""
PATIENCE = 10.0
"""Seconds that the backend is given beyond those for which we watch."""


@dataclass(frozen=True)
class GroupStatus:
    """What was seen of the members.

    :ivar alive: those that gave a sign of life while we watched.
    :ivar silent: those that have a record and gave none: dead, frozen or cut off.  The others count them in
        until the membership timeout is over.
    """

    alive: frozenset[Member] = frozenset()
    silent: frozenset[Member] = frozenset()

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts of those that are alive."""
        return frozenset(member.host for member in self.alive)


class Observer:
    """Watches the group without joining it.  For one thread.

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
        """Return once each member has given a sign of life, at the latest when `timing.silence` is over.

        :raises GroupError: the backend cannot be reached.
        """
        self._group.open(create=False)
        try:
            return self._watch()
        finally:
            self._group.close()

    def _watch(self) -> GroupStatus:
        before, moved = self._read(), set[str]()
        now, watched, last = before, 0.0, self._monotonic()
        while now.keys() - moved and watched < self._timing.silence:
            self._sleep(LOOK_EVERY)
            began = self._monotonic()
            now = self._read()
            watched += self._timing.watched(began - last)
            last = began
            moved |= {host for host in now if _sign(now[host]) != _sign(before.get(host))}
        members = {host: member_of(record) for host, record in now.items()}
        alive = frozenset(member for host, member in members.items() if host in moved)
        return GroupStatus(alive, frozenset(members.values()) - alive)

    def _read(self) -> Mapping[str, Record]:
        """The records of those that have not said farewell, by host."""
        try:
            records = latest(filter(is_valid_record, self._group.read()))
        except DroppedOut:
            return {}  # There is no group yet.
        return {host: record for host, record in records.items() if record.get("state") != LEFT}


def _sign(record: Record | None) -> tuple[object, object] | None:
    return None if record is None else (record["incarnation"], record["beat"])


class SharedObserver:
    """The roll for several threads at a time, and for those who ask often.

    :param make: a new observer; a call to the backend may hang, so each one has a thread of its own.
    :param longest: seconds for which an observer watches at the most.
    :param keep: seconds for which a roll is given again.
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
        """Who is there; or why that cannot be known."""
        with self._lock:
            if self._last is None or self._monotonic() - self._last[0] >= self._keep:
                found = self._ask()
                self._last = self._monotonic(), found
            return self._last[1]

    def _ask(self) -> GroupStatus | str:
        found: list[GroupStatus | str] = []

        def ask() -> None:
            try:
                found.append(self._make().watch())
            except GroupError as error:
                found.append(str(error))

        thread = threading.Thread(target=ask, name="observer", daemon=True)
        thread.start()
        within = self._longest + PATIENCE
        thread.join(within)
        return found[0] if found else f"no answer within {within:g} s"
