"""The group on tooz's file driver, the one that needs no server; tests/services has the others."""

import contextlib
import pathlib
import resource
import typing
from collections.abc import Callable, Iterator

import pytest
from stoker.ring.group import DroppedOut, Group, GroupError, MemberReplaced, Record, make_coordinator
from stoker.ring.local_member import LocalMember
from stoker.ring.membership import Membership
from stoker.ring.timing import MembershipTiming
from tooz import coordination


def record(host: str, incarnation: str, *, beat: int = 1, started_at: float = 1.0) -> Record:
    return {"host": host, "incarnation": incarnation, "beat": beat, "started_at": started_at}


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"file://{tmp_path}/ring"


def opened(url: str, host: str = "a", **options: typing.Any) -> Group:
    group = Group(url, "conductors", host, **options)
    group.open()
    return group


def test_a_record_is_joined_changed_and_read_by_all(url: str) -> None:
    a = opened(url, "a")
    b = opened(url, "b")
    b.write(record("b", "i"))
    for beat in range(1, 6):
        a.write(record("a", "i", beat=beat))
        assert sorted(r["beat"] for r in b.read() if r["host"] == "a")[-1] == beat
    a.leave()
    assert [r["host"] for r in b.read()] == ["b"]


def test_a_member_that_has_been_forgotten_learns_it_and_may_rejoin(url: str, tmp_path: pathlib.Path) -> None:
    a = opened(url)
    a.write(record("a", "i"))
    for path in tmp_path.glob("ring/groups/*/*.raw"):
        path.unlink()
    with pytest.raises(DroppedOut):
        a.write(record("a", "i", beat=2))
    a.write(record("a", "j", beat=3))
    assert [r["incarnation"] for r in a.read()] == ["j"]


def test_a_group_that_is_gone_is_made_again_by_opening(url: str, tmp_path: pathlib.Path) -> None:
    a = opened(url)
    a.write(record("a", "i"))
    (tmp_path / "ring").rename(tmp_path / "lost")
    with pytest.raises(DroppedOut):
        a.write(record("a", "i", beat=2))
    with pytest.raises(DroppedOut):
        a.read()
    a.open()
    a.write(record("a", "j", beat=3))
    assert [r["incarnation"] for r in a.read()] == ["j"]


def test_a_successor_takes_the_place_and_its_predecessor_cannot_take_it_back(url: str) -> None:
    old = opened(url)
    old.write(record("a", "old", beat=9, started_at=1.0))
    new = opened(url)
    new.write(record("a", "new", started_at=2.0))
    for incarnation in ("old", "old-again"):
        with pytest.raises(MemberReplaced):
            old.write(record("a", incarnation, beat=10, started_at=1.0))
    with pytest.raises(MemberReplaced):
        old.leave()
    assert [r["incarnation"] for r in new.read()] == ["new"]


def test_a_clock_that_was_set_back_does_not_keep_a_successor_out(url: str) -> None:
    opened(url).write(record("a", "old", started_at=9.0))
    new = opened(url)
    new.write(record("a", "new", started_at=2.0))
    assert [r["incarnation"] for r in new.read()] == ["new"]


def test_opening_after_a_failure_begins_from_the_start(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ring").touch()
    a = Group(f"file://{tmp_path}/ring", "conductors", "a")
    for _ in range(3):
        with pytest.raises(GroupError):
            a.open()
    (tmp_path / "ring").unlink()
    a.open()
    a.write(record("a", "i"))
    a.write(record("a", "i", beat=2))
    assert [r["beat"] for r in a.read()] == [2]


def test_an_error_of_a_client_library_is_a_group_error(url: str) -> None:
    """etcd3gw's and kazoo's pass through tooz as they are."""

    class Broken(Exception):
        pass

    class Coordinator:
        def start(self, **_: object) -> None:
            raise Broken("no route")

    with pytest.raises(GroupError, match="Broken: no route"):
        opened(url, make=lambda url, member: Coordinator())


def test_a_tooz_that_reads_one_member_at_a_time_is_good_enough(url: str) -> None:
    class Old:
        def __init__(self, inner: typing.Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> typing.Any:
            if name == "get_members_with_capabilities":
                raise AttributeError(name)
            return getattr(self._inner, name)

    a = opened(url, make=lambda url, member: Old(make_coordinator(url, member)))
    a.write(record("a", "i"))
    a.write(record("a", "i", beat=2))
    opened(url, "b").write(record("b", "i"))
    assert sorted((r["host"], r["beat"]) for r in a.read()) == [("a", 2), ("b", 1)]


class CountedCalls:
    """A coordinator that records the names of the calls of it.

    :ivar calls: the calls so far.
    :ivar lifetime: seconds after which the backend forgets a member, as `heartbeat` returns it.
    """

    def __init__(self, inner: typing.Any, lifetime: float = 30.0) -> None:
        self._inner = inner
        self.lifetime = lifetime
        self.calls: list[str] = []

    def heartbeat(self) -> float:
        self.calls.append("heartbeat")
        return self.lifetime

    def __getattr__(self, name: str) -> typing.Any:
        self.calls.append(name)
        return getattr(self._inner, name)


def counting(
    coordinators: list[CountedCalls], lifetime: float = 30.0
) -> Callable[[str, bytes], CountedCalls]:
    """Return a function that makes coordinators, and puts them into the list."""

    def make(url: str, member: bytes) -> CountedCalls:
        coordinators.append(CountedCalls(make_coordinator(url, member), lifetime))
        return coordinators[-1]

    return make


@pytest.mark.parametrize(("lifetime", "renewals"), [(30.0, 2), (12.0, 3), (6.0, 6), (60.0, 2)])
def test_the_lease_is_renewed_three_times_in_its_life(url: str, lifetime: float, renewals: int) -> None:
    now = [0.0]
    coordinators: list[CountedCalls] = []
    a = opened(url, make=counting(coordinators, lifetime), monotonic=lambda: now[0])
    for second in range(11):
        now[0] = float(second)
        a.write(record("a", "i", beat=second))
    assert coordinators[0].calls.count("heartbeat") == renewals


def test_after_a_write_that_failed_the_lease_is_renewed(url: str, tmp_path: pathlib.Path) -> None:
    coordinators: list[CountedCalls] = []
    a = opened(url, make=counting(coordinators), monotonic=lambda: 0.0)
    a.write(record("a", "i"))
    (tmp_path / "ring").rename(tmp_path / "lost")
    for beat in (2, 3):
        with pytest.raises(GroupError):
            a.write(record("a", "i", beat=beat))
    assert coordinators[0].calls.count("heartbeat") == 2


def test_records_that_were_just_read_are_not_read_again(url: str) -> None:
    coordinators: list[CountedCalls] = []
    a = opened(url, make=counting(coordinators))
    a.write(record("a", "i"))
    a.write(record("a", "i", beat=2), a.read())
    assert "get_member_capabilities" not in coordinators[0].calls
    with pytest.raises(DroppedOut):
        a.write(record("a", "i", beat=3), [record("b", "i")])
    own, later = record("a", "i", beat=2), record("a", "j", started_at=2.0)
    for read in ([later], [own, later], [later, own]):
        with pytest.raises(MemberReplaced):
            a.write(record("a", "i", beat=3), read)


def test_a_connection_is_closed_once_by_closing_and_by_the_next_one(url: str) -> None:
    coordinators: list[CountedCalls] = []
    a = opened(url, make=counting(coordinators))
    a.open()
    assert [each.calls.count("stop") for each in coordinators] == [1, 0]
    a.close()
    a.close()
    assert [each.calls.count("stop") for each in coordinators] == [1, 1]


def test_one_that_has_not_joined_leaves_beside_a_record_of_its_name(url: str) -> None:
    opened(url).write(record("a", "other"))
    opened(url).leave()


def test_the_environment_counts_and_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/authorities.pem")
    session = make_coordinator("etcd3+http://etcd:2379", b"a").client.session
    assert session.proxies["http"] == "http://proxy:3128"
    assert session.verify == "/etc/authorities.pem"
    assert not session.trust_env


def test_the_environments_password_is_for_who_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "netrc").write_text("machine etcd login user password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    coordinator = make_coordinator("etcd3+http://etcd:2379", b"a")
    assert coordinator.client.session.auth == ("user", "secret")
    coordinator.client.session.auth = ("another", "password")
    monkeypatch.setattr(coordination, "get_coordinator", lambda *_args, **_options: coordinator)
    make_coordinator("etcd3+http://etcd:2379", b"a")
    assert coordinator.client.session.auth == ("another", "password")


def test_options_in_the_url_go_before_ours(tmp_path: pathlib.Path) -> None:
    assert make_coordinator(f"file://{tmp_path}", b"a")._timeout == 30
    assert make_coordinator(f"file://{tmp_path}?timeout=7", b"a")._timeout == 7
    redis = make_coordinator("redis://localhost:1?membership_timeout=2", b"a")
    assert (redis.timeout, redis.membership_timeout) == (5, 2.0)
    etcd = make_coordinator("etcd3+http://localhost:1", b"a")
    assert etcd.membership_timeout == 30


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Inside, files can be made, and nothing can be written to them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def records(folder: pathlib.Path) -> dict[str, int]:
    """The sizes of the members' files."""
    return {path.name: path.stat().st_size for path in folder.glob("ring/groups/*/*.raw")}


def test_a_heartbeat_changes_the_one_file_of_its_member_in_place(url: str, tmp_path: pathlib.Path) -> None:
    a = opened(url)
    a.write(record("a", "i"))
    [name] = records(tmp_path)
    for beat in (2, 3):
        a.write(record("a", "i", beat=beat))
        assert [*records(tmp_path)] == [name]
        assert [r["beat"] for r in a.read()] == [beat]
    assert list(tmp_path.glob("ring/tmp/*")) == []


def test_a_late_heartbeat_does_not_overwrite_who_has_replaced_the_process(url: str) -> None:
    """The old one has read the group before the new one joined."""
    old = opened(url)
    old.write(record("a", "old"))
    read = old.read()
    new = opened(url)
    new.write(record("a", "new", started_at=2.0))
    with pytest.raises(DroppedOut):
        old.write(record("a", "old", beat=2), read)
    assert [r["incarnation"] for r in new.read()] == ["new"]


def test_a_record_that_has_changed_is_readable_by_whom_it_was(url: str, tmp_path: pathlib.Path) -> None:
    a = opened(url)
    a.write(record("a", "i"))
    [path] = tmp_path.glob("ring/groups/*/*.raw")
    path.chmod(0o664)
    a.write(record("a", "i", beat=2))
    assert path.stat().st_mode & 0o777 == 0o664


def test_while_the_disk_is_full_others_are_read_and_afterwards_all_continues(
    url: str, tmp_path: pathlib.Path
) -> None:
    a = opened(url, "a")
    b = opened(url, "b")
    a.write(record("a", "i"))
    b.write(record("b", "i"))
    for _ in range(3):
        with full_disk(), pytest.raises(GroupError):
            a.write(record("a", "i", beat=2))
        assert 0 not in records(tmp_path).values()
        assert list(tmp_path.glob("ring/tmp/*")) == []
        assert sorted((r["host"], r["beat"]) for r in b.read()) == [("a", 1), ("b", 1)]
        b.write(record("b", "i"))
    a.write(record("a", "i", beat=3))
    assert sorted((r["host"], r["beat"]) for r in b.read()) == [("a", 3), ("b", 1)]
    assert 0 not in records(tmp_path).values()


def test_who_joins_while_the_disk_is_full_joins_when_there_is_room(url: str) -> None:
    a = opened(url, "a")
    for _ in range(3):
        with full_disk(), pytest.raises(GroupError):
            a.write(record("a", "i"))
    a.write(record("a", "i"))
    assert [r["host"] for r in a.read()] == ["a"]


@pytest.mark.parametrize("content", [b"", b"\x83", b"no record at all", b"\x80"])
def test_an_unreadable_record_of_ones_own_is_none(url: str, tmp_path: pathlib.Path, content: bytes) -> None:
    a = opened(url, "a")
    b = opened(url, "b")
    a.write(record("a", "i"))
    b.write(record("b", "i"))
    for path in tmp_path.glob("ring/groups/*/*.raw"):
        path.write_bytes(content)
    assert b.read() == []
    for group, host in ((a, "a"), (b, "b")):
        with pytest.raises(DroppedOut):
            group.write(record(host, "i", beat=2))
        group.open()
        group.write(record(host, "j", beat=3))
    assert sorted(r["incarnation"] for r in b.read()) == ["j", "j"]


def test_who_leaves_leaves_no_unreadable_record_behind(url: str, tmp_path: pathlib.Path) -> None:
    a = opened(url, "a")
    a.write(record("a", "i"))
    for path in tmp_path.glob("ring/groups/*/*.raw"):
        path.write_bytes(b"")
    a.leave()
    assert records(tmp_path) == {}


def test_conductors_rejoin_by_themselves_when_the_disk_has_room_again(
    url: str, tmp_path: pathlib.Path
) -> None:
    now = [100.0]

    def member(host: str) -> Membership:
        return Membership(
            Group(url, "conductors", host),
            LocalMember(host),
            shard_count=64,
            timing=MembershipTiming(heartbeat=1, timeout=5, poll=1),
            monotonic=lambda: now[0],
        )

    members = [member("a"), member("b")]

    def steps(seconds: int) -> None:
        for _ in range(seconds):
            now[0] += 1
            for member in members:
                member.step()

    steps(3)
    assert [len(member.view().members) for member in members] == [2, 2]
    with full_disk():
        steps(20)
        assert [member.member() for member in members] == [None, None]
    for path in tmp_path.glob("ring/groups/*/*.raw"):
        path.write_bytes(b"")
    steps(3)
    assert None not in [member.member() for member in members]
    assert [len(member.view().members) for member in members] == [2, 2]
