"""The record of this conductor, and the moments of the warnings while it is not in the ring."""

import typing

import pytest
from stoker.ring.group import Group, Record
from stoker.ring.local_member import AbsenceWarning, DropWarning, LocalMember, RecordWriter
from stoker.ring.timing import MembershipTiming


class WrittenRecords:
    """A group that only keeps what is written."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, record: Record, _read: object = None) -> None:
        self.records.append(record)

    def exchange(self, record: Record) -> list[Record]:
        self.records.append(record)
        return self.records


def test_each_heartbeat_has_a_higher_counter_and_the_same_start() -> None:
    group = WrittenRecords()
    clock = iter([100.0, 200.0])
    writer = RecordWriter(typing.cast(Group, group), lambda: next(clock))
    me = LocalMember("a")
    for _ in range(2):
        writer.write(me, "i", "active")
        assert writer.exchange(me, "i", "active") is group.records
    beats = [record["beat"] for record in group.records]
    assert beats == list(range(beats[0], beats[0] + 4))
    assert {record["started_at"] for record in group.records} == {100.0}


def test_one_that_is_out_warns_after_a_while_and_then_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warning = AbsenceWarning(5.0)
    warned = []
    for now in range(100, 300):
        caplog.clear()
        warning.warn_if_due(float(now), is_in=now == 170)
        if caplog.records:
            warned.append(now)
    assert warned == [105, 165, 175, 235, 295]


def test_drops_count_for_a_minute_and_lateness_until_the_warning(caplog: pytest.LogCaptureFixture) -> None:
    warning = DropWarning(MembershipTiming())
    for late, taken in ((0.3, 0.1), (0.5, 0.2), (0.4, 0.1)):
        warning.ran(late)
        warning.took(taken)
    for now in (0.0, 30.0, 60.0):
        warning.dropped(now)
    assert caplog.text == "", "the first one is a minute old"
    warning.dropped(61.0)
    assert "ran up to 0.5 s late, and the coordination backend took up to 0.2 s" in caplog.text
    caplog.clear()
    warning.ran(0.1)
    warning.took(0.3)
    for now in (62.0, 63.0, 64.0):
        assert caplog.text == "", "it counts from the start"
        warning.dropped(now)
    assert "ran up to 0.1 s late, and the coordination backend took up to 0.3 s" in caplog.text
