"""Membership step by step, on a group in memory and a clock that is moved by hand."""

import re
import threading
import typing
from collections.abc import Callable, Sequence

import pytest
from harness.waiting import wait_for
from stoker.ring.group import DroppedOut, Group, GroupError, MemberReplaced, Record
from stoker.ring.hashring import DRAINING, View
from stoker.ring.local_member import LocalMember, process_of
from stoker.ring.membership import Membership
from stoker.ring.timing import MembershipTiming

TIMING = MembershipTiming(heartbeat=1, timeout=5, poll=1)


class Backend:
    """The backend that the members of a group share.

    :ivar away: every call fails.
    :ivar exchanges: members write and read by one request, as on etcd.
    :ivar before: called with the method's name before each call; may move the clock, as a slow server does.
    """

    def __init__(self, *, exchanges: bool = False) -> None:
        self.exchanges = exchanges
        self.now = 100.0
        self.records: dict[str, Record] = {}
        self.away = False
        self.before: Callable[[str], None] = lambda method: None

    def member(self, host: str, timing: MembershipTiming = TIMING) -> Membership:
        group = typing.cast(Group, MemoryGroup(self, host))
        return Membership(
            group,
            LocalMember(host),
            shard_count=64,
            timing=timing,
            monotonic=lambda: self.now,
            clock=lambda: 1e9 + self.now,
        )

    def steps(self, seconds: float, *members: Membership) -> None:
        """Let time pass, and the members take a step each second."""
        end = self.now + seconds
        while self.now < end:
            self.now += 1.0
            for member in members:
                member.step()


class MemoryGroup:
    """Group's contract without a server."""

    def __init__(self, backend: Backend, host: str) -> None:
        self._backend = backend
        self._host = host
        self._record: Record | None = None
        self._is_open = False

    def _contact(self, method: str) -> None:
        assert self._is_open != (method == "open"), "a connection is opened once, before it is used"
        self._backend.before(method)
        if self._backend.away:
            raise GroupError("away")

    def open(self) -> None:
        self._is_open = False
        self._contact("open")
        self._is_open = True

    def close(self) -> None:
        assert self._is_open
        self._is_open = False

    def write(self, record: Record, read: Sequence[Record] | None = None) -> None:
        self._contact("write")
        record_before = self._backend.records.get(self._host)
        if (
            self._record is not None
            and record_before
            and record_before["started_at"] > self._record["started_at"]
        ):
            raise MemberReplaced("replaced")
        if (
            self._record is not None
            and self._record["incarnation"] == record["incarnation"]
            and not record_before
        ):
            raise DroppedOut("forgotten")
        self._record = self._backend.records[self._host] = dict(record)

    def exchange(self, record: Record) -> list[Record] | None:
        if not self._backend.exchanges or self._backend.records.get(self._host) != self._record:
            return None
        self.write(record)
        return self.read()

    def read(self) -> list[Record]:
        self._contact("read")
        return list(self._backend.records.values())

    def leave(self) -> None:
        self._contact("leave")
        self._backend.records.pop(self._host, None)


@pytest.fixture(params=[False, True], ids=["one by one", "at once"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return Backend(exchanges=request.param)


def hosts(view: View) -> list[str]:
    return sorted(member.host for member in view.members)


def test_a_member_is_in_when_it_has_seen_itself(backend: Backend) -> None:
    a = backend.member("a")
    assert a.member() is None
    a.step()
    assert a.member() in {member.name for member in a.view().members}


def test_a_member_that_wrote_but_could_not_look_does_not_act_yet(backend: Backend) -> None:
    a = backend.member("a")

    def fail(method: str) -> None:
        if method == "read":
            raise GroupError("away")

    for _ in range(2):
        backend.before = fail
        a.step()
        assert a.member() is None
        backend.before = lambda method: None
        a.step()
        assert a.member() is not None
        backend.records.clear()
        a.step()


def test_who_cannot_read_the_group_for_the_timeout_does_not_act_though_it_writes(backend: Backend) -> None:
    a = backend.member("a")
    a.step()
    read_at = backend.now
    acts = []
    for _ in range(6):
        backend.now += 1.0
        acts.append((backend.now - read_at, a.member() is not None))
        a._run_once(beat=True, poll=False)
    assert acts == [(1, True), (2, True), (3, True), (4, True), (5, False), (6, True)]


def test_a_silent_member_is_dead_after_the_timeout_and_not_before(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)
    backend.steps(4, a)
    assert hosts(a.view()) == ["a", "b"]
    backend.steps(2, a)
    assert hosts(a.view()) == ["a"]


def test_a_member_stops_its_work_a_heartbeat_before_it_is_dead_for_others(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, b, a)
    alive = []
    for _ in range(8):
        backend.steps(1, a)
        alive.append((b.member() is not None, "b" in hosts(a.view())))
    assert alive == [(True, True)] * 3 + [(False, True)] + [(False, False)] * 4


def test_while_the_backend_is_unavailable_the_others_stay_and_we_stop(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)
    backend.away = True
    backend.steps(1, a, b)
    assert a.member() is not None
    assert hosts(a.view()) == ["a", "b"]
    backend.steps(60, a, b)
    assert a.member() is None
    assert hosts(a.view()) == ["b"]
    backend.away = False
    a.step()
    assert hosts(a.view()) == ["a", "b"]
    b.step()
    backend.steps(1, a, b)
    assert hosts(b.view()) == ["a", "b"]


def test_who_leaves_while_the_backend_is_unavailable_does_not_wait_for_it(backend: Backend) -> None:
    a = backend.member("a", MembershipTiming(heartbeat=10, timeout=30, poll=10))
    a.start()
    wait_for(lambda: a.member() is not None)
    calls: list[str] = []
    backend.before = calls.append
    backend.away = True
    a.poll_now()
    wait_for(lambda: calls != [])
    a.stop()
    assert calls in (["write"], ["read"])


def test_a_backend_that_answers_late_kills_nobody(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)

    def hang(method: str) -> None:
        if method == "read":
            backend.now += 4.5

    backend.before = hang
    a.step()
    backend.before = lambda method: None
    a.step()
    assert hosts(a.view()) == ["a", "b"]


def test_a_lapse_ends_an_incarnation(backend: Backend) -> None:
    a = backend.member("a")
    backend.steps(1, a)
    first = a.member()
    backend.now += TIMING.self_stop
    assert a.member() is None
    a.step()
    assert a.member() not in (None, first)


def test_a_lapse_while_the_sign_of_life_is_on_its_way_ends_the_incarnation_too(backend: Backend) -> None:
    a = backend.member("a")
    backend.steps(1, a)
    first = a.member()

    def hang(method: str) -> None:
        if method == "write":
            backend.now += TIMING.self_stop

    backend.before = hang
    a.step()
    assert a.member() is None
    assert hosts(a.view()) == []
    assert a._soon.is_set(), "it rejoins at once"
    backend.before = lambda method: None
    a.step()
    assert a.member() not in (None, first)


def test_what_was_ours_is_not_ours_between_a_lapse_and_the_next_look(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    views: list[View] = []
    backend.steps(2, a, b)
    a.on_change(views.append)
    backend.now += 5
    a.step()
    assert [hosts(view) for view in views] == [["b"], ["a", "b"]]


def test_what_the_backend_forgets_is_no_death_but_the_forgotten_one_rejoins(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)
    first = a.member()
    backend.records.clear()
    backend.steps(2, a)
    assert a.member() not in (None, first)
    assert hosts(a.view()) == ["a", "b"]


def test_a_restarted_member_takes_the_place_of_its_predecessor_at_once(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    old = backend.member("a")
    b = backend.member("b")
    backend.steps(2, old, b)
    backend.now += 0.5
    new = backend.member("a")
    new.step()
    b.step()
    assert {member.name for member in b.view().members} == {new.member(), b.member()}
    backend.steps(2, old, new, b)
    assert old.member() is None
    assert new.member() is not None
    backend.steps(9, old, new, b)
    assert old.member() is None
    assert hosts(old.view()) == ["b"]
    assert caplog.text.count("this conductor stops its work") == 1


def test_a_draining_member_says_so(backend: Backend) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)
    a.set_state(DRAINING)
    backend.steps(1, a, b)
    assert [owner.host for owner in b.view().owners] == ["b"]
    assert a.member() is not None


@pytest.mark.parametrize(
    "change", [{"weight": "heavy"}, {"weight": 0}, {"beat": None}, {"started_at": "yesterday"}]
)
def test_a_record_that_is_not_understood_breaks_nobody(backend: Backend, change: dict[str, object]) -> None:
    a = backend.member("a")
    b = backend.member("b")
    backend.steps(2, a, b)
    backend.records["odd"] = {**backend.records["b"], "host": "odd", **change}
    backend.steps(2, a, b)
    assert hosts(a.view()) == hosts(b.view()) == ["a", "b"]


def test_a_record_of_another_release_may_lack_what_has_a_default(backend: Backend) -> None:
    a = backend.member("a")
    backend.records["c"] = {"host": "c", "incarnation": "i", "started_at": 1.0, "beat": 1}
    a.step()
    assert hosts(a.view()) == ["a", "c"]


def test_stop_announces_that_it_leaves(backend: Backend) -> None:
    a = backend.member("a", MembershipTiming(heartbeat=1, timeout=5, poll=0.02))
    b = backend.member("b")
    b.step()
    farewells: list[object] = []

    def note(method: str) -> None:
        if method == "leave":
            farewells.append(backend.records["a"]["state"])
            assert a.member() is None
            b.step()

    a.start()
    wait_for(lambda: a.member() is not None)
    backend.before = note
    a.stop()
    assert farewells == ["left"]
    assert list(backend.records) == ["b"]
    assert hosts(b.view()) == ["b"]
    assert a.member() is None


class MovedClock:
    """An event on which the membership's thread waits; the backend's clock moves meanwhile.

    :ivar until: the moment at which the member is told to stop.
    :ivar late: seconds by which the next wait takes longer than it should.
    """

    def __init__(self, backend: Backend, member: Membership, until: float) -> None:
        self._backend = backend
        self._member = member
        self._is_set = False
        self._waits = 0
        self.until = until
        self.late = 0.0

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, seconds: float) -> bool:
        self._waits += 1
        assert self._waits < 100, "it runs without a pause"
        if not self._is_set:
            self._backend.now += seconds + self.late
            self.late = 0.0
        if self._backend.now >= self.until:
            self._member._stop.set()
        return self._is_set


@pytest.fixture
def naps(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds for which members have slept; the clock moves by them."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        backend.now += seconds

    monkeypatch.setattr("stoker.ring.membership.time.sleep", sleep)
    return slept


def run(member: Membership, backend: Backend, seconds: float) -> list[tuple[float, str]]:
    """Run a member as its thread does, until it has left; return its calls of the backend, with moments."""
    began = backend.now
    calls: list[tuple[float, str]] = []
    before = backend.before

    def note(method: str) -> None:
        calls.append((round(backend.now - began, 3), method))
        before(method)

    backend.before = note
    member._soon = typing.cast(threading.Event, MovedClock(backend, member, began + seconds))
    member._run()
    return calls


def test_heartbeats_and_reads_have_their_intervals_and_a_death_is_read_on_time(naps: list[float]) -> None:
    backend = Backend()
    timing = MembershipTiming(heartbeat=1.5, timeout=5.0, poll=2.0)
    backend.member("b").step()
    a = backend.member("a", timing)
    assert run(a, backend, 6.9) == [
        (0.0, "open"), (0.0, "write"), (0.0, "read"), (1.5, "write"), (2.0, "read"), (3.0, "write"),
        (4.0, "read"), (4.5, "write"), (5.0, "read"), (6.0, "write"), (7.0, "write"), (7.0, "leave"),
    ]  # fmt: skip
    assert naps == []
    assert list(backend.records) == ["b"]


def test_a_member_that_leaves_waits_for_the_others_to_read_it(backend: Backend, naps: list[float]) -> None:
    for poll, nap in ((1.0, 1.5), (2.5, 3.0)):
        backend.member("b").step()
        a = backend.member("a", MembershipTiming(1.0, 5.0, poll))
        assert run(a, backend, 1.0)[-2:] == [(1.0, "write"), (1.0 + nap, "leave")]
        assert naps.pop() == nap


def test_a_request_is_granted_once_and_at_once(backend: Backend) -> None:
    a = backend.member("a", MembershipTiming(10.0, 30.0, 10.0))
    backend.before = lambda method: a.set_state(DRAINING) if method == "open" else None
    moments = [moment for moment, method in run(a, backend, 20.0) if method == "read"]
    assert moments == [0.0, 0.0, 10.0]


def test_one_that_was_forgotten_reconnects_and_rejoins_at_once_but_not_in_a_loop() -> None:
    backend = Backend()
    a = backend.member("a", MembershipTiming(10.0, 30.0, 10.0))

    moments = [110.0, 120.0, 140.0, 160.0]

    def forget(method: str) -> None:
        if method == "read" and backend.now in moments:
            moments.remove(backend.now)
            backend.records.clear()

    backend.before = forget
    opened = [moment for moment, method in run(a, backend, 65.0) if method == "open"]
    assert opened == [0.0, 10.0, 30.0, 50.0, 60.0]


def test_one_that_reads_the_record_of_another_process_does_not_act(backend: Backend) -> None:
    a = backend.member("a")

    def replace(method: str) -> None:
        if method == "read":
            backend.records["a"] = {**backend.records["a"], "incarnation": "other"}

    backend.before = replace
    a.step()
    assert a.member() is None


def test_one_joins_once(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    backend.steps(3, backend.member("a"))
    assert caplog.text.count("Joined the ring as a/") == 1


def test_only_one_that_is_connected_and_was_not_replaced_leaves(backend: Backend) -> None:
    replaced, away, forgotten, well = (backend.member(host) for host in "abcd")
    backend.steps(2, replaced, away, forgotten, well)
    later = {**backend.records["a"], "incarnation": "j", "started_at": 2e9}
    backend.records["a"] = later
    assert [method for _, method in run(replaced, backend, 1.0) if method == "leave"] == []
    backend.away = True
    assert [method for _, method in run(away, backend, 1.0) if method == "leave"] == []
    backend.away = False
    del backend.records["c"]
    forgotten._rejoined = backend.now
    assert [method for _, method in run(forgotten, backend, 0.5) if method == "leave"] == []
    assert [method for _, method in run(well, backend, 0.5) if method == "leave"] == ["leave"]
    assert not typing.cast(MemoryGroup, well._group)._is_open
    assert backend.records["a"] == later


def test_a_slow_backend_is_called_again_almost_at_once(backend: Backend) -> None:
    a = backend.member("a")

    def slow(method: str) -> None:
        if method == "read":
            backend.now += 1.5

    backend.before = slow
    reads = [moment for moment, method in run(a, backend, 4.0) if method == "read"]
    assert reads == [0.0, 1.51, 3.02]


def test_a_thread_that_runs_late_says_so_when_it_drops_out(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    a = backend.member("a", MembershipTiming(heartbeat=1, timeout=5, poll=2))
    drops = []

    def stall(method: str) -> None:
        if method == "read" and a.member() is not None and len(drops) < 3:
            drops.append(method)
            typing.cast(MovedClock, a._soon).late = 7.0

    backend.before = stall
    run(a, backend, 40.0)
    assert "the thread that sends heartbeats ran up to 7.0 s late" in caplog.text


@pytest.mark.parametrize("error", [GroupError("away"), RuntimeError("no such thing")])
def test_while_nothing_can_be_read_nobody_is_silent(backend: Backend, error: Exception) -> None:
    a = backend.member("a")
    backend.member("b").step()
    went = backend.now
    seen: list[tuple[float, list[str]]] = []
    a.on_change(lambda view: seen.append((backend.now - went, hosts(view))))

    def fail(method: str) -> None:
        if went + 1 < backend.now < went + 3.5:
            raise error

    backend.before = fail
    run(a, backend, 12.0)
    assert seen[-1] == (8.0, ["a"])


def test_a_thread_that_waits_long_obeys_at_once() -> None:
    seldom = MembershipTiming(heartbeat=10, timeout=30, poll=10)
    for is_killed in (False, True):
        backend = Backend()
        a = backend.member("a", seldom)
        a.start()
        wait_for(lambda a=a: a.member() is not None)  # type: ignore[misc]
        [thread] = [thread for thread in threading.enumerate() if thread.name == "membership"]
        assert thread.daemon, "a process ends though its backend hangs"
        a.set_state(DRAINING)
        wait_for(lambda backend=backend: backend.records["a"]["state"] == DRAINING)  # type: ignore[misc]
        if is_killed:
            a.kill()
        else:
            a.stop()
        assert a.member() is None
        assert not thread.is_alive()
        assert [*backend.records] == (["a"] if is_killed else [])


def test_an_error_nobody_thought_of_does_not_end_the_thread(backend: Backend) -> None:
    a = backend.member("a")
    broken: list[str] = []

    def fail(method: str) -> None:
        if len(broken) < 2:
            broken.append(method)
            raise RuntimeError("no such thing")

    backend.before = fail
    a.start()
    wait_for(lambda: a.poll_now() or a.member() is not None)
    assert len(broken) == 2
    a.stop()


def test_who_makes_no_progress_leaves_at_once_and_rejoins_under_a_new_name(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    a = backend.member("a")
    b = backend.member("b")
    stuck: list[str] = []
    a.leave_while(lambda: stuck)
    backend.steps(3, a, b)
    name = a.member()
    assert hosts(b.view()) == ["a", "b"]
    stuck.append("the work loop")
    backend.steps(1, a, b)
    assert a.member() is None
    assert hosts(b.view()) == ["b"]
    assert "Leaving the ring, others take over: no progress for 5 s: the work loop" in caplog.text
    backend.steps(70, a, b)
    assert "Not in the ring, so it does no work: no progress for 5 s: the work loop" in caplog.text
    stuck.clear()
    backend.steps(3, a, b)
    assert a.member() not in (None, name)
    assert hosts(b.view()) == ["a", "b"]


def test_who_is_alone_stays_though_it_makes_no_progress(backend: Backend) -> None:
    a = backend.member("a")
    a.leave_while(lambda: ["the work loop"])
    backend.steps(10, a)
    assert a.member() is not None


def test_who_is_out_warns_once_a_minute_and_says_why(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    a = backend.member("a")
    backend.away = True
    backend.steps(200, a)
    losses = [record.levelname for record in caplog.records if "ownership stays" in record.message]
    assert losses == ["WARNING"] + ["DEBUG"] * 199
    warnings = [record for record in caplog.records if "Not in the ring" in record.message]
    assert {record.levelname for record in warnings} == {"WARNING"}
    assert len(warnings) == 4
    assert "the coordination backend is unavailable: away" in warnings[0].message
    backend.away = False
    backend.steps(100, a)
    assert len([record for record in caplog.records if "Not in the ring" in record.message]) == 4


@pytest.mark.parametrize(
    ("slow", "words"), [(False, "more to do than it can"), (True, r"7\.0 s for one. The backend is slow")]
)
def test_the_third_drop_within_a_minute_says_why(
    caplog: pytest.LogCaptureFixture, *, slow: bool, words: str
) -> None:
    backend = Backend()
    member = backend.member("one")
    backend.steps(2, member)

    def stall(method: str) -> None:
        if method == "write":
            backend.before = lambda _: None
            backend.now += 7.0

    for _ in range(3):
        assert "times within a minute" not in caplog.text
        if slow:
            backend.before = stall
        else:
            backend.now += 7.0
        backend.steps(11, member)
    text = rf"Dropped out of the ring 3 times within a minute: .*{words}.* timeout \(now 5 s\)"
    assert re.search(text, caplog.text)
    caplog.clear()
    for _ in range(3):
        backend.now += 30.0
        backend.steps(3, member)
    assert "times within a minute" not in caplog.text


def test_a_process_is_recognized_by_all_its_incarnations() -> None:
    backend = Backend()
    first = backend.member("one")
    backend.steps(2, first)
    before = str(first.member())
    backend.now += 7.0
    backend.steps(3, first)
    restarted = backend.member("one")
    backend.steps(2, restarted)
    assert before != first.member()
    assert process_of(before) == process_of(str(first.member()))
    assert process_of(before) != process_of(str(restarted.member()))
