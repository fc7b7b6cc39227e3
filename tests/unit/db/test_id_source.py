"""Ids made in a process: their order, their bits, and how often two processes make the same."""

import os
import random
import threading
from collections.abc import Callable, Iterable

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from stoker.db.id_source import EPOCH, POSITION_BITS, TIME_BITS, IdSource
from stoker.db.ids import ResourceId, TaskId, TraversalNumber
from stoker.db.schema import tables

NOW = EPOCH + 86400.0 * 365
POSITIONS = 2**POSITION_BITS


def clock_of(times: Iterable[float]) -> Callable[[], float]:
    """A clock that shows these times, one after the other."""
    moments = iter(times)
    return lambda: next(moments)


def drawn(source: IdSource, count: int) -> list[int]:
    return [source.new(TaskId) for _ in range(count)]


def test_an_id_has_the_milliseconds_and_a_random_position() -> None:
    source = IdSource(lambda: EPOCH + 12.345, randbits=random.Random(1).getrandbits)
    first = source.new(TaskId)
    assert first >> POSITION_BITS == 12345
    assert first % POSITIONS == random.Random(1).getrandbits(POSITION_BITS)
    assert [source.new(ResourceId), source.new(TraversalNumber)] == [first + 1, first + 2]


@given(st.lists(st.floats(0.0, 4e9), min_size=2))
def test_the_ids_of_a_process_grow_whatever_its_clock_shows(times: list[float]) -> None:
    ids = drawn(IdSource(clock_of(times)), len(times))
    assert all(before < after for before, after in zip(ids, ids[1:], strict=False))
    assert all(0 <= number < 2**63 for number in ids)


@pytest.mark.parametrize("seconds", [-EPOCH, -0.001, 2**TIME_BITS / 1000, 1e12])
def test_an_id_has_63_bits_even_where_the_clock_is_far_off(seconds: float) -> None:
    assert 0 <= IdSource(lambda: EPOCH + seconds).new(TaskId) < 2**63


def test_the_ids_last_until_2095() -> None:
    last = IdSource(lambda: EPOCH + (2**TIME_BITS - 1) / 1000, randbits=lambda bits: 2**bits - 1).new(TaskId)
    assert last == 2**63 - 1


def test_used_up_positions_continue_in_the_next_millisecond() -> None:
    times = [NOW, NOW, NOW + 0.001, NOW + 0.002]
    positions = iter([POSITIONS - 1, 7])
    ids = drawn(IdSource(clock_of(times), randbits=lambda bits: next(positions)), 4)
    start = round((NOW - EPOCH) * 1000)
    assert [(number >> POSITION_BITS) - start for number in ids] == [0, 1, 1, 2]
    assert [number % POSITIONS for number in ids] == [POSITIONS - 1, 0, 1, 7]


def test_ids_are_made_once_whichever_thread_asks() -> None:
    source = IdSource(lambda: NOW)
    blocks: list[list[int]] = []
    threads = [threading.Thread(target=lambda: blocks.append(drawn(source, 2000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({number for block in blocks for number in block}) == 8 * 2000


@pytest.mark.parametrize("locked", [False, True], ids=["", "while a thread makes one"])
def test_a_forked_process_makes_other_ids(locked: bool) -> None:
    source = IdSource(lambda: NOW)
    before = source.new(TaskId)
    lock = source._last[os.getpid()].lock
    readable, writable = os.pipe()
    if locked:
        lock.acquire()
    child = os.fork()
    if child == 0:
        os.write(writable, b"\n".join(b"%d" % number for number in drawn(source, 50)))
        os._exit(0)
    if locked:
        lock.release()
    os.close(writable)
    with open(readable, "rb") as answer:
        child_ids = {int(line) for line in answer}
    assert os.waitpid(child, 0)[1] == 0
    assert len(child_ids) == 50
    assert child_ids.isdisjoint({before, *drawn(source, 1000)})
    assert {child_id >> POSITION_BITS for child_id in child_ids} == {before >> POSITION_BITS}


def test_two_processes_collide_as_seldom_as_the_formula_says() -> None:
    count = 4096
    times = 50_000
    ticks = [NOW + number / 1000 for number in range(times)]
    first, second = (
        drawn(IdSource(clock_of(ticks), randbits=random.Random(seed).getrandbits), times) for seed in (1, 2)
    )
    collisions = sum(
        abs(first_id - second_id) < count for first_id, second_id in zip(first, second, strict=True)
    )
    expected = times * 2 * count / POSITIONS
    assert 0.7 * expected < collisions < 1.3 * expected, "five standard deviations"


def test_the_rates_of_collisions_are_those_that_the_documentation_names() -> None:
    def days(requests: int, ids: int) -> float:
        return 1000 * POSITIONS / (requests**2 * ids) / 86400

    assert round(days(10, 100)) == 5
    assert round(days(1, 50) / 365.25, 1) == 2.7


def test_every_column_for_such_an_id_has_64_bits() -> None:
    numeric = {
        f"{table.name}.{column.name}": column.type
        for table in tables.metadata.tables.values()
        for column in table.c
        if isinstance(column.type, sa.Integer)
        and (column.name in ("id", "replaces", "replaced_by") or column.name.endswith("_id"))
    }
    assert {"resource.id", "task.id", "task.spare_id", "traversal.id", "event.id"} <= numeric.keys()
    assert [name for name, kind in numeric.items() if not isinstance(kind, sa.BigInteger)] == []
