"""Who is alive, as one sees it who does not join."""

import pathlib
import threading
import typing

import pytest
from stoker.ring.group import Group, GroupError, Record
from stoker.ring.observer import GroupStatus, Observer, SharedObserver
from stoker.ring.timing import MembershipTiming

TIMING = MembershipTiming(heartbeat=1.0, timeout=5.0, poll=1.0)


class Life:
    """A group whose members give a sign of life each second while they live, on a clock of its own.

    :param members: host -> until when it lives.
    """

    def __init__(self, **members: float) -> None:
        self.now = 0.0
        self.members = members
        self.more: list[Record] = []
        self.opened = 0

    def open(self, *, create: bool) -> None:
        assert not create
        self.opened += 1

    def close(self) -> None:
        self.opened -= 1

    def read(self) -> list[Record]:
        return [
            {"host": host, "incarnation": "i", "started_at": 1.0, "beat": int(min(self.now, until) + 0.5)}
            for host, until in self.members.items()
        ] + self.more

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def watch(self) -> tuple[GroupStatus, float]:
        began = self.now
        group = typing.cast(Group, self)
        roll = Observer(group, TIMING, monotonic=lambda: self.now, sleep=self.sleep).watch()
        return roll, self.now - began


def hosts(roll: GroupStatus) -> tuple[set[str], set[str]]:
    return {member.host for member in roll.alive}, {member.host for member in roll.silent}


def test_it_is_known_as_soon_as_each_has_given_a_sign() -> None:
    life = Life(one=99, two=99)
    roll, took = life.watch()
    assert hosts(roll) == ({"one", "two"}, set())
    assert took <= TIMING.heartbeat
    assert life.opened == 0


def test_one_that_died_just_now_is_silent_after_three_heartbeats() -> None:
    roll, took = Life(one=99, two=0).watch()
    assert hosts(roll) == ({"one"}, {"two"})
    assert TIMING.silence <= took < TIMING.silence + 0.2


def test_it_is_known_at_once_when_the_silence_is_over() -> None:
    class SlowSleep(Life):
        def sleep(self, seconds: float) -> None:
            self.now += 0.5

    assert SlowSleep(one=99, two=0).watch()[1] == TIMING.silence


def test_a_member_that_has_announced_its_leave_is_not_there() -> None:
    life = Life(one=99)
    life.more = [{"host": "two", "incarnation": "i", "started_at": 1.0, "beat": 7, "state": "left"}]
    assert hosts(life.watch()[0]) == ({"one"}, set())


def test_a_record_that_is_not_understood_is_left_out() -> None:
    life = Life(one=99)
    life.more = [{"host": "two", "incarnation": "i", "started_at": "long ago", "beat": 7}]
    assert hosts(life.watch()[0]) == ({"one"}, set())


def test_time_in_which_the_backend_hangs_is_nobodys_silence() -> None:
    life = Life(one=99)
    records = life.read()
    calls = iter([0.0, 60.0])

    def read() -> list[Record]:
        """The answer of a minute ago, after a minute; then a new one."""
        life.now += next(calls, 0.0)
        return records if life.now < 60.5 else Life.read(life)

    life.read = read  # type: ignore[method-assign]
    assert hosts(life.watch()[0]) == ({"one"}, set())


def test_who_only_looks_makes_no_group_and_joins_none(tmp_path: pathlib.Path) -> None:
    url = f"file://{tmp_path}/ring"
    assert Observer(Group(url, "conductors", "observer"), TIMING).watch() == GroupStatus()
    member = Group(url, "conductors", "one")
    member.open()
    assert Observer(Group(url, "conductors", "observer"), TIMING).watch() == GroupStatus()
    assert member.read() == []


def test_several_who_ask_share_one_look_and_it_is_kept_for_a_while() -> None:
    now = [100.0]
    lives = []

    def fresh() -> Observer:
        life = Life(one=99)
        lives.append(life)
        group = typing.cast(Group, life)
        return Observer(group, TIMING, monotonic=lambda: life.now, sleep=life.sleep)

    lookout = SharedObserver(fresh, longest=3.0, keep=1.0, monotonic=lambda: now[0])
    asking = [threading.Thread(target=lookout.status) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(lives) == 1
    now[0] = 101.0
    roll = lookout.status()
    assert not isinstance(roll, str)
    assert roll.hosts == {"one"}
    assert len(lives) == 2


def test_a_group_out_of_reach_is_shown_with_the_reason() -> None:
    class Away(Life):
        def open(self, *, create: bool) -> None:
            raise GroupError("refused")

    group = typing.cast(Group, Away())
    assert SharedObserver(lambda: Observer(group, TIMING), longest=3.0).status() == "refused"


def test_a_backend_that_hangs_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.ring.observer.PATIENCE", 0.02)
    answers = threading.Event()

    def hang() -> Observer:
        answers.wait(5.0)
        raise GroupError("late")

    observer = SharedObserver(hang, longest=0.01)
    assert observer.status() == "no answer within 0.03 s"
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "observer")
    answers.set()


def test_an_answer_is_waited_for() -> None:
    def slow() -> Observer:
        threading.Event().wait(0.02)
        raise GroupError("refused")

    assert SharedObserver(slow, longest=3.0).status() == "refused"
