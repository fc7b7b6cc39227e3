"""A tooz group in which each member keeps a record with a counter that grows."""

import logging
import time
import typing
import urllib.parse
from collections.abc import Callable, Mapping, Sequence

import requests
from tooz import coordination

from . import etcd_records, file_records
from .file_records import Unreadable, pass_over_unreadable

LOG = logging.getLogger(__name__)
Record = Mapping[str, typing.Any]
MakeCoordinator = Callable[[str, bytes], typing.Any]

CALL_TIMEOUT = 5
"""Seconds after which a call to the backend times out."""
EXPIRY = 30
"""Seconds after which a backend forgets a member that sends no heartbeat.  Such a member is not dead: see
timing.py."""
RENEWALS = 3
"""Renewals in the time after which the backend forgets us: two may be lost."""
SUFFIX = "|0"
"""The end of each member's id: conductors that run side by side during an upgrade use the same one."""
NEEDED = ("host", "incarnation", "started_at", "beat")


class GroupError(Exception):
    """The backend refused a call or did not answer; retry later."""


class DroppedOut(GroupError):
    """The group has lost our record: close, open, and rejoin as a new incarnation."""


class MemberReplaced(GroupError):
    """Another process, started later under the same host name, has replaced us."""


def make_coordinator(url: str, member_id: bytes) -> typing.Any:
    """Return a coordinator of tooz for a backend URL; options in the URL win over ours.

    Its calls run in the calling thread.  With tooz's default, a worker thread, Python would wait at its exit
    for a call that hangs.
    """
    parts = urllib.parse.urlsplit(url)
    defaults: dict[str, typing.Any] = {"executor": "synchronous"}
    if parts.scheme == "file":
        defaults["timeout"] = EXPIRY  # Here it is the age above which a record is ignored.
    elif parts.scheme not in (
        "kazoo",
        "zookeeper",
    ):  # There the session has the timeout, and kazoo's default is good.
        defaults |= {"timeout": CALL_TIMEOUT, "membership_timeout": EXPIRY, "lock_timeout": EXPIRY}
    query = urllib.parse.parse_qs(parts.query)
    options = {name: value for name, value in defaults.items() if name not in query}
    coordinator = coordination.get_coordinator(url, member_id, **options)
    if parts.scheme == "file":
        pass_over_unreadable(coordinator)
    _read_environment_once(coordinator)
    return coordinator


def _read_environment_once(coordinator: typing.Any) -> None:
    """Apply the environment's proxy, certificates and password to a driver that uses `requests` (etcd3gw).

    Otherwise `requests` reads them for each call, which takes as long as the call itself.
    """
    client: typing.Any = getattr(coordinator, "client", None)
    session = getattr(client, "session", None)
    if not isinstance(session, requests.Session):
        return
    settings = session.merge_environment_settings(client.base_url, {}, None, None, None)
    session.proxies = settings["proxies"]
    session.verify = settings["verify"]
    session.auth = session.auth or requests.utils.get_netrc_auth(client.base_url)
    session.trust_env = False


class Group:
    """Writes our record and reads all records.

    Used by one thread.  Any call may block while the backend is unavailable.

    The member id in the group is the host's name, which is stable over restarts: a new incarnation replaces
    the record of the earlier one.
    """

    def __init__(
        self,
        url: str,
        name: str,
        host: str,
        *,
        make: MakeCoordinator = make_coordinator,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._host = host
        self._monotonic = monotonic
        self._renew_at = float("-inf")
        self._group = name.encode()
        self._id = f"{host}{SUFFIX}".encode()
        self._make = make
        self._coordinator: typing.Any = None
        self._record: Record | None = None

    def open(self, *, create: bool = True) -> None:
        """Connect, or reconnect.

        :param create: create the group if there is none; an observer does not.
        :raises GroupError: the backend failed.
        """
        self.close()
        self._renew_at = float("-inf")
        with _translated():
            coordinator = self._make(self._url, self._id)
            coordinator.start(start_heart=False)
            self._coordinator = coordinator
            if not create:
                return
            try:
                _get(coordinator.create_group(self._group))
            except coordination.GroupAlreadyExist:
                LOG.debug("The group is there already")

    def close(self) -> None:
        """Disconnect; a record that remains expires."""
        coordinator = self._coordinator
        self._coordinator = None
        if coordinator is None:
            return
        try:
            with _translated():
                coordinator.stop()
        except GroupError as error:
            LOG.debug("Could not disconnect cleanly: %s", error)

    def write(self, record: Record, read: Sequence[Record] | None = None) -> None:
        """Join with this record if its incarnation is new, otherwise change ours to it.

        :param read: the records of all members, if they were read a moment ago; None: ours is read now.
        :raises MemberReplaced: a later process replaced us; never raised by the first write.
        :raises DroppedOut: the group has lost our record.
        :raises GroupError: the backend failed.
        """
        with _translated():
            renew_at = self._renew()
            newest = self._newest_record(read) if self._record is not None else None
            self._check_replaced(newest)
            if self._record is None or self._record["incarnation"] != record["incarnation"]:
                self._join(record)
            elif newest is None:
                raise DroppedOut("the record of this conductor is no longer in the group")
            else:
                self._change(record)
            self._record = record
            self._renew_at = renew_at

    def exchange(self, record: Record) -> list[Record] | None:
        """Change our record to this one, and read the records of all members, by one request.

        :returns: None: the backend has no such request, or our record is not in the group as we left it; then
            `read` and `write` find out why.
        :raises GroupError: the backend failed.
        """
        written = self._record
        if written is None or written["incarnation"] != record["incarnation"]:
            return None
        if not etcd_records.can_exchange(self._coordinator):
            return None
        with _translated():
            renew_at = self._renew()
            records = etcd_records.exchange(self._coordinator, self._group, self._id, record)
        if records is None:
            return None
        self._record = record
        self._renew_at = renew_at
        return [record for record in records if _is_record(record)]

    def _renew(self) -> float:
        """Renew our lease, or what the backend has in its place, if that is due.

        After a write that fails the next one renews it again: it may have been lost.

        :returns: when it is due next, by the monotonic clock.
        """
        now = self._monotonic()
        if now < (renew_at := self._renew_at):
            self._renew_at = float("-inf")
            return renew_at
        lifetime: float = self._coordinator.heartbeat()
        return now + min(EXPIRY, lifetime) / RENEWALS

    def read(self) -> list[Record]:
        """Return the records of all members; a host may have several.

        :raises DroppedOut: the group itself is gone.
        :raises GroupError: the backend failed.
        """
        with _translated():
            return [record for record in self._all() if _is_record(record)]

    def _all(self) -> list[typing.Any]:
        coordinator = self._coordinator
        if hasattr(coordinator, "get_members_with_capabilities"):
            return list(_get(coordinator.get_members_with_capabilities(self._group)).values())
        # tooz before 9.1: one call for each member.
        return [self._read(member) for member in _get(coordinator.get_members(self._group))]

    def _read(self, member: bytes) -> typing.Any:
        """Return the record, None if there is no such member or its record is unreadable."""
        try:
            return _get(self._coordinator.get_member_capabilities(self._group, member))
        except coordination.MemberNotJoined:
            return None
        except coordination.ToozError as error:
            if isinstance(error.__cause__, Unreadable):
                return None
            raise

    def leave(self) -> None:
        """Remove our record, but not that of a process that replaced us.

        :raises GroupError: the backend failed.
        """
        with _translated():
            newest = self._newest_record()
            self._check_replaced(newest)
            self._leave()
            self._record = None

    def _newest_record(self, read: Sequence[Record] | None = None) -> Record | None:
        """Return the newest record of our host, None if it has none.

        :param read: the records of all members, as for `write`.
        """
        if read is None:
            records = [self._read(self._id)]
        else:
            records = [record for record in read if record["host"] == self._host]
        return max(
            filter(_is_record, records),
            key=lambda record: (record["started_at"], record["beat"]),
            default=None,
        )

    def _check_replaced(self, newest: Record | None) -> None:
        if newest is None or self._record is None or newest["started_at"] <= self._record["started_at"]:
            return
        raise MemberReplaced(f"another process has the host name {newest['host']}")

    def _join(self, record: Record) -> None:
        self._leave()
        _get(self._coordinator.join_group(self._group, dict(record)))

    def _leave(self) -> None:
        try:
            _get(self._coordinator.leave_group(self._group))
        except coordination.MemberNotJoined:
            LOG.debug("There is no record to remove")

    def _change(self, record: Record) -> None:
        try:
            _get(self._coordinator.update_capabilities(self._group, dict(record)))
        except NotImplementedError:
            file_records.change(self._coordinator, self._group, record)


def _is_record(record: object) -> bool:
    return isinstance(record, Mapping) and all(name in record for name in NEEDED)


def _get(result: typing.Any) -> typing.Any:
    return result.get(timeout=CALL_TIMEOUT)


class _translated:  # noqa: N801 - reads as a statement
    """Turns every error of tooz's drivers into GroupError.

    They have no common base: etcd3gw's heartbeat, and kazoo's calls on a closed connection, raise errors of
    their client libraries.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, GroupError) or not isinstance(error, Exception):
            return
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, coordination.GroupNotCreated | coordination.MemberNotJoined):
            raise DroppedOut(text) from error
        raise GroupError(text) from error
