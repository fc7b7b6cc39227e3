"""The group on tooz's etcd driver, with an etcd in memory; tests/services has a real one."""

import base64
import typing

import pytest
from etcd3gw.exceptions import Etcd3Exception
from stoker.ring.group import DroppedOut, Group, GroupError, Record, make_coordinator
from tooz import utils


class Lease(typing.NamedTuple):
    """A lease that never expires."""

    id: int

    def refresh(self) -> int:
        return 30


class Etcd:
    """An etcd, as the client library shows it to a driver: keys in order, each with a value and a lease.

    :ivar transactions: how many there were.
    :ivar is_available: whether it answers a read of one key.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, tuple[bytes, int]] = {}
        self.transactions = 0
        self.is_available = True
        self._leases = 0

    def lease(self, _ttl: int) -> Lease:
        self._leases += 1
        return Lease(self._leases)

    def get(self, key: str) -> list[bytes]:
        if not self.is_available:
            raise Etcd3Exception("no leader")
        return [value for name, (value, _) in self.values.items() if name == key.encode()]

    def get_prefix(self, prefix: str) -> list[tuple[bytes, dict[str, typing.Any]]]:
        return [
            (value, {"key": key, "version": 1})
            for key, (value, _) in self.values.items()
            if key.startswith(prefix.encode())
        ]

    def put(self, key: str, value: bytes, lease: Lease) -> None:
        self.values[key.encode()] = value, lease.id

    def delete(self, key: str) -> None:
        del self.values[key.encode()]

    def transaction(self, request: dict[str, typing.Any]) -> dict[str, typing.Any]:
        self.transactions += 1
        if not all(map(self._is_so, request["compare"])):
            return {}
        return {"succeeded": True, "responses": [self._do(each) for each in request["success"]]}

    def _is_so(self, comparison: dict[str, typing.Any]) -> bool:
        stored = self.values.get(base64.b64decode(comparison["key"]))
        if comparison["target"] == "LEASE":
            return stored is not None and stored[1] == comparison["lease"]
        return bool(comparison["version"]) == (stored is not None)

    def _do(self, operation: dict[str, typing.Any]) -> dict[str, typing.Any]:
        if put := operation.get("request_put"):
            value = base64.b64decode(put["value"]), put.get("lease", 0)
            self.values[base64.b64decode(put["key"])] = value
            return {"response_put": {}}
        asked = operation["request_range"]
        first, end = base64.b64decode(asked["key"]), base64.b64decode(asked["range_end"])
        found = {key: value for key, (value, _) in sorted(self.values.items()) if first <= key < end}
        encoded = {_base64(key): _base64(value) for key, value in found.items()}
        pairs = [{"key": key, "value": value} if value else {"key": key} for key, value in encoded.items()]
        return {"response_range": {"kvs": pairs}}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def record(host: str, incarnation: str = "i", *, beat: int = 1) -> Record:
    return {"host": host, "incarnation": incarnation, "beat": beat, "started_at": 1.0}


def opened(etcd: Etcd, host: str, name: str = "one") -> Group:
    def make(url: str, member: bytes) -> typing.Any:
        coordinator = make_coordinator(url, member)
        coordinator.client = etcd
        return coordinator

    group = Group("etcd3+http://localhost:1", name, host, make=make)
    group.open()
    return group


def joined(etcd: Etcd, host: str, name: str = "one") -> Group:
    group = opened(etcd, host, name)
    group.write(record(host))
    return group


def beats(records: list[Record] | None) -> list[tuple[str, int]]:
    return sorted((each["host"], each["beat"]) for each in records or [])


def test_a_heartbeat_returns_the_members_of_its_group_by_one_request() -> None:
    etcd = Etcd()
    a = joined(etcd, "a")
    b = joined(etcd, "b")
    for neighbour in ("on", "one0", "one.", "onf"):
        joined(etcd, "other", neighbour)
    etcd.transactions = 0
    assert beats(a.exchange(record("a", beat=2))) == [("a", 2), ("b", 1)]
    assert etcd.transactions == 1
    assert beats(b.exchange(record("b", beat=2))) == [("a", 2), ("b", 2)]


def test_a_heartbeat_changes_no_record_of_another_lease_and_none_that_is_gone() -> None:
    etcd = Etcd()
    old = joined(etcd, "a")
    joined(etcd, "a").write(record("a", "new", beat=7))
    assert old.exchange(record("a", beat=2)) is None
    assert beats(old.read()) == [("a", 7)]
    etcd.delete("tooz/groups/one/a|0")
    assert old.exchange(record("a", beat=3)) is None
    assert old.read() == []


def test_a_heartbeat_into_a_group_that_is_gone_returns_no_members() -> None:
    etcd = Etcd()
    a = joined(etcd, "a")
    etcd.delete("tooz/groups/one/")
    assert a.exchange(record("a", beat=2)) is None
    with pytest.raises(DroppedOut):
        a.write(record("a", beat=3), a.read())


def test_one_that_has_not_joined_yet_exchanges_nothing() -> None:
    etcd = Etcd()
    joined(etcd, "b")
    a = opened(etcd, "a")
    assert a.exchange(record("a")) is None
    a.write(record("a"))
    assert a.exchange(record("a", "j")) is None
    assert beats(a.exchange(record("a", beat=2))) == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        ["host", "incarnation", "started_at", "beat"],
        {"host": "c"},
        {"host": "c", "incarnation": "i", "started_at": 1.0},
    ],
)
def test_a_record_without_what_it_needs_is_left_out(odd: object) -> None:
    etcd = Etcd()
    a = joined(etcd, "a")
    etcd.values[b"tooz/groups/one/c|0"] = utils.dumps(odd), 9
    etcd.values[b"tooz/groups/one/d|0"] = b"", 9
    assert beats(a.read()) == [("a", 1)]
    assert beats(a.exchange(record("a", beat=2))) == [("a", 2)]


def test_etcd_that_does_not_answer_has_not_forgotten_the_member() -> None:
    etcd = Etcd()
    a = joined(etcd, "a")
    etcd.is_available = False
    with pytest.raises(GroupError) as raised:
        a.write(record("a", beat=2))
    assert raised.type is GroupError


def test_nothing_but_the_membership_renews_the_lease() -> None:
    """A thread of tooz would keep the record of a conductor that hangs."""
    coordinator = opened(Etcd(), "a")._coordinator
    assert coordinator.requires_beating
    assert not coordinator.heart.is_alive()
