"""A tooz group in which each member keeps a record with a counter that grows."""

import logging
import typing
from collections.abc import Callable, Mapping

from tooz import ToozError, coordination

LOG = logging.getLogger(__name__)
Record = Mapping[str, typing.Any]
MakeCoordinator = Callable[[str, bytes], typing.Any]

CALL_TIMEOUT = 10.0
SEPARATOR = "|"
READ_TRIES = 20


class GroupError(Exception):
    """The backend did not do what was asked, or did not answer; try again later."""


def make_coordinator(url: str, member_id: bytes) -> typing.Any:
    """tooz's coordinator for a backend URL."""
    return coordination.get_coordinator(url, member_id)


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
        self._host = host
        self._make = make
        self._slots: list[typing.Any] = []
        self._current: int | None = None
        self._updates = True

    def open(self) -> None:
        """Connect.

        :raises GroupError: see there.
        """
        with _translated():
            for slot in (0, 1):
                coordinator = self._make(self._url, f"{self._host}{SEPARATOR}{slot}".encode())
                coordinator.start(start_heart=False)
                self._slots.append(coordinator)
            try:
                _get(self._slots[0].create_group(self._group))
            except coordination.GroupAlreadyExist:
                LOG.debug("The group is there already")

    def close(self) -> None:
        """Disconnect; what is left of us expires."""
        slots, self._slots, self._current = self._slots, [], None
        for coordinator in slots:
            with _translated():
                coordinator.stop()

    def write(self, record: Record) -> None:
        """Join with this record, or change ours to it.

        :raises GroupError: see there; we may have dropped out of the group, then the next call joins again.
        """
        with _translated():
            if self._current is None:
                self._leave(0)
                self._leave(1)
                self._join(0, record)
            elif self._updates:
                self._update(record)
            else:
                self._succeed(record)
            for coordinator in self._slots:
                coordinator.heartbeat()

    def read(self) -> list[Record]:
        """The records of all members; several of one host are possible.

        :raises GroupError: see there.
        """
        with _translated():
            for _ in range(READ_TRIES):
                records = self._read_once()
                if records is not None:
                    return records
        raise GroupError("the group changes faster than it can be read")

    def _read_once(self) -> list[Record] | None:
        """None if a member that was listed had gone when its record was read: it may stand there under its
        other id by now, so only a reading without such a gap tells who is there."""
        records: list[Record] = []
        for member in _get(self._slots[0].get_members(self._group)):
            try:
                record = _get(self._slots[0].get_member_capabilities(self._group, member))
            except coordination.MemberNotJoined:
                return None
            if isinstance(record, Mapping) and "beat" in record:
                records.append(record)
        return records

    def leave(self) -> None:
        """Take our record away.

        :raises GroupError: see there.
        """
        self._current = None
        with _translated():
            self._leave(0)
            self._leave(1)

    def _join(self, slot: int, record: Record) -> None:
        _get(self._slots[slot].join_group(self._group, dict(record)))
        self._current = slot

    def _leave(self, slot: int) -> None:
        try:
            _get(self._slots[slot].leave_group(self._group))
        except coordination.MemberNotJoined:
            LOG.debug("Nothing was left in slot %d", slot)

    def _update(self, record: Record) -> None:
        assert self._current is not None
        try:
            _get(self._slots[self._current].update_capabilities(self._group, dict(record)))
        except NotImplementedError:
            self._updates = False
            self._succeed(record)
        except (coordination.MemberNotJoined, coordination.GroupNotCreated) as error:
            self._current = None
            raise GroupError("we dropped out of the group") from error

    def _succeed(self, record: Record) -> None:
        assert self._current is not None
        old = self._current
        self._leave(1 - old)
        self._join(1 - old, record)
        self._leave(old)


def _get(result: typing.Any) -> typing.Any:
    return result.get(timeout=CALL_TIMEOUT)


class _translated:  # noqa: N801 - reads as a statement
    """Turns the many errors of tooz's drivers into GroupError."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ToozError | NotImplementedError | OSError | coordination.OperationTimedOut):
            raise GroupError(f"{type(error).__name__}: {error}") from error
