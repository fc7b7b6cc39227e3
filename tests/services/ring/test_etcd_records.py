"""A conductor's heartbeat on etcd: one request, which changes nothing that is not its own."""

import typing
from collections.abc import Iterator

import pytest
from harness.etcd import Etcd
from stoker.ring import etcd_records
from stoker.ring.group import DroppedOut, Group, MemberReplaced, Record, make_coordinator


class CountedRequests:
    """Makes coordinators, and counts the requests of all of them."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, url: str, member: bytes) -> typing.Any:
        coordinator = make_coordinator(url, member)
        post = coordinator.client.post

        def counted(url: str, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
            self.paths.append(url.rpartition("/v3/")[2].lstrip("/"))
            return post(url, *args, **kwargs)

        coordinator.client.post = counted
        return coordinator


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    with Etcd() as server:
        yield server


def record(host: str, incarnation: str = "i", *, beat: int = 1, started_at: float = 1.0) -> Record:
    return {"host": host, "incarnation": incarnation, "beat": beat, "started_at": started_at}


def joined(etcd: Etcd, name: str, written: Record, make: typing.Any = make_coordinator) -> Group:
    group = Group(etcd.url, name, written["host"], make=make)
    group.open()
    group.write(written)
    return group


def test_a_heartbeat_and_a_read_of_all_members_are_one_request(etcd: Etcd) -> None:
    requests = CountedRequests()
    a = joined(etcd, "one", record("a"), requests)
    b = joined(etcd, "one", record("b"))
    requests.paths.clear()
    for beat in (2, 3):
        exchanged = a.exchange(record("a", beat=beat)) or []
        assert sorted((r["host"], r["beat"]) for r in exchanged) == [("a", beat), ("b", 1)]
    assert requests.paths == ["kv/txn", "kv/txn"]
    assert sorted(r["beat"] for r in b.read()) == [1, 3]


def test_one_that_a_later_process_has_replaced_changes_nothing(etcd: Etcd) -> None:
    old = joined(etcd, "replaced", record("a", "old", beat=9))
    new = joined(etcd, "replaced", record("a", "new", started_at=2.0))
    assert old.exchange(record("a", "old", beat=10)) is None
    assert [r["incarnation"] for r in new.read()] == ["new"]
    with pytest.raises(MemberReplaced):
        old.write(record("a", "old", beat=11), old.read())


def test_one_that_etcd_has_forgotten_does_not_return_by_a_heartbeat(etcd: Etcd) -> None:
    a = joined(etcd, "forgotten", record("a"))
    b = joined(etcd, "forgotten", record("b"))
    a._coordinator.leave_group(b"forgotten").get()
    assert a.exchange(record("a", beat=2)) is None
    assert [r["host"] for r in b.read()] == ["b"]
    with pytest.raises(DroppedOut):
        a.write(record("a", beat=3), a.read())


def test_a_new_incarnation_joins_and_another_driver_has_no_such_request(
    etcd: Etcd, tmp_path: typing.Any
) -> None:
    a = joined(etcd, "joins", record("a"))
    assert a.exchange(record("a", "j")) is None
    file = Group(f"file://{tmp_path}/ring", "joins", "a")
    file.open()
    file.write(record("a"))
    assert file.exchange(record("a", beat=2)) is None
    assert not etcd_records.can_exchange(file._coordinator)
