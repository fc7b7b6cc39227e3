"""A tooz group in which each member keeps a record with a counter that grows."""

import logging
import typing
import urllib.parse
from collections.abc import Callable, Mapping

from tooz import coordination

from .file_records import Unreadable, pass_over_unreadable

LOG = logging.getLogger(__name__)
Record = Mapping[str, typing.Any]
MakeCoordinator = Callable[[str, bytes], typing.Any]

CALL_TIMEOUT = 5
"""Seconds after which a call to a backend that does not answer is given up."""
EXPIRY = 30
"""Seconds after which a backend forgets who gives no sign of life.  Nobody is dead for that: see timing."""
SEPARATOR = "|"
NEEDED = ("host", "incarnation", "started_at", "beat")


class GroupError(Exception):
    """The backend did not do what was asked, or did not answer; try again later."""


class DroppedOut(GroupError):
    """Our record is not in the group any more: close, open, and join as a new incarnation."""


class MemberReplaced(GroupError):
    """Another process, started later under the same host name, has taken our place."""


def make_coordinator(url: str, member_id: bytes) -> typing.Any:
    """tooz's coordinator for a backend URL; options in the URL go before ours.

    Its calls run in the calling thread.  tooz's default, a worker thread, makes Python wait at its end for
    a call that hangs.
    """
    parts = urllib.parse.urlsplit(url)
    wanted: dict[str, typing.Any] = {"executor": "synchronous"}
    if parts.scheme == "file":
        wanted["timeout"] = EXPIRY  # Here it is the age from which a record is not read.
    elif parts.scheme not in (
        "kazoo",
        "zookeeper",
    ):  # There it is the session's, and kazoo's default is good.
        wanted |= {"timeout": CALL_TIMEOUT, "membership_timeout": EXPIRY}
    given = urllib.parse.parse_qs(parts.query)
    options = {name: value for name, value in wanted.items() if name not in given}
    made = coordination.get_coordinator(url, member_id, **options)
    if parts.scheme == "file":
        pass_over_unreadable(made)
    return made


class Group:
    """Writes our record and reads all of them.  Used by one thread; any call may block while the backend is
    away.

    The member id in the group is the host's name, stable over restarts: who joins replaces what an earlier
    incarnation has left.  A driver that cannot change the record of a member (tooz's file driver) is used
    with two ids in turn: the new record is there before the old one goes.
    """

    def __init__(self, url: str, name: str, host: str, *, make: MakeCoordinator = make_coordinator) -> None:
        self._url = url
        self._group = name.encode()
        self._ids = [f"{host}{SEPARATOR}{slot}".encode() for slot in (0, 1)]
        self._make = make
        self._slots: list[typing.Any] = []
        self._current = 0
        self._record: Record | None = None

    def open(self, *, create: bool = True) -> None:
        """Connect, afresh if we are connected.

        :param create: make the group if there is none; who only reads need not.
        :raises GroupError: see there.
        """
        self.close()
        with _translated():
            self._open_slot()
            if not create:
                return
            try:
                _get(self._slots[0].create_group(self._group))
            except coordination.GroupAlreadyExist:
                LOG.debug("The group is there already")

    def _open_slot(self) -> None:
        coordinator = self._make(self._url, self._ids[len(self._slots)])
        coordinator.start(start_heart=False)
        self._slots.append(coordinator)

    def close(self) -> None:
        """Disconnect; what is left of us expires."""
        slots, self._slots = self._slots, []
        for coordinator in slots:
            try:
                with _translated():
                    coordinator.stop()
            except GroupError as error:
                LOG.debug("Could not disconnect in good order: %s", error)

    def write(self, record: Record) -> None:
        """Join with this record if its incarnation is new, otherwise change ours to it.

        :raises Replaced: see there.  Never at the first time: who starts later is right.
        :raises DroppedOut: see there.
        :raises GroupError: see there.
        """
        with _translated():
            for coordinator in self._slots:
                coordinator.heartbeat()
            own = self._own() if self._record is not None else None
            self._check_replaced(own)
            if self._record is None or self._record["incarnation"] != record["incarnation"]:
                self._join(record)
            elif own is None:
                raise DroppedOut("our record is not in the group any more")
            else:
                self._change(record)
            self._record = record

    def read(self) -> list[Record]:
        """The records of all members; several of one host are possible.

        :raises DroppedOut: the group itself is gone.
        :raises GroupError: see there.
        """
        with _translated():
            return [record for record in self._all() if _is_record(record)]

    def _all(self) -> list[typing.Any]:
        coordinator = self._slots[0]
        if hasattr(coordinator, "get_members_with_capabilities"):
            return list(_get(coordinator.get_members_with_capabilities(self._group)).values())
        # tooz before 9.1: one call for each member.
        return [self._read(member) for member in _get(coordinator.get_members(self._group))]

    def _read(self, member: bytes) -> typing.Any:
        """None if there is no such member, or its record cannot be read."""
        try:
            return _get(self._slots[0].get_member_capabilities(self._group, member))
        except coordination.MemberNotJoined:
            return None
        except coordination.ToozError as error:
            if isinstance(error.__cause__, Unreadable):
                return None
            raise

    def leave(self) -> None:
        """Take our record away, but not that of who has replaced us.

        :raises GroupError: see there.
        """
        with _translated():
            own = self._own()
            self._check_replaced(own)
            for coordinator in self._slots:
                self._leave(coordinator)
            self._record = None

    def _own(self) -> Record | None:
        """The newest record of our host."""
        found = [self._read(member) for member in self._ids[: len(self._slots)]]
        return max(
            filter(_is_record, found), key=lambda record: (record["started_at"], record["beat"]), default=None
        )

    def _check_replaced(self, own: Record | None) -> None:
        if own is None or self._record is None or own["started_at"] <= self._record["started_at"]:
            return
        raise MemberReplaced(f"another process calls itself {own['host']}")

    def _join(self, record: Record) -> None:
        for coordinator in self._slots:
            self._leave(coordinator)
        self._current = 0
        _get(self._slots[0].join_group(self._group, dict(record)))

    def _leave(self, coordinator: typing.Any) -> None:
        try:
            _get(coordinator.leave_group(self._group))
        except coordination.MemberNotJoined:
            LOG.debug("Nothing was left to take away")

    def _change(self, record: Record) -> None:
        if len(self._slots) == 1:
            try:
                _get(self._slots[0].update_capabilities(self._group, dict(record)))
                return
            except NotImplementedError:
                self._open_slot()
        old, new = self._slots[self._current], self._slots[1 - self._current]
        self._leave(new)
        _get(new.join_group(self._group, dict(record)))
        self._current = 1 - self._current
        self._leave(old)


def _is_record(found: object) -> bool:
    return isinstance(found, Mapping) and all(name in found for name in NEEDED)


def _get(result: typing.Any) -> typing.Any:
    return result.get(timeout=CALL_TIMEOUT)


class _translated:  # noqa: N801 - reads as a statement
    """Turns every error of tooz's drivers into GroupError.

    They have no common base: etcd3gw's heartbeat and kazoo's calls on a closed connection let through what
    their client libraries raise.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, GroupError) or not isinstance(error, Exception):
            return
        told = f"{type(error).__name__}: {error}"
        if isinstance(error, coordination.GroupNotCreated | coordination.MemberNotJoined):
            raise DroppedOut(told) from error
        raise GroupError(told) from error
