"""The watch of locks: which statements lock rows in no order."""

import typing

import pytest
import sqlalchemy as sa
from harness.lock_order import LockWatch, is_ordered, is_selective, locks_taken
from stoker.db.bulk import OneOf
from stoker.db.schema import tables

T = tables.task.c
ONE = sa.select(T.id).where(T.id == 1)
SEVERAL = sa.select(T.id).where(T.id.in_([1, 2]))
TREE = SEVERAL.cte("tree")
INSIDE = sa.select(TREE.c.id).where(TREE.c.id == 1)


@pytest.mark.parametrize(
    ("query", "is_right"),
    [
        (SEVERAL, True),
        (SEVERAL.with_for_update(), False),
        (SEVERAL.order_by(T.id).with_for_update(), True),
        (SEVERAL.with_for_update(skip_locked=True), True),
        (ONE.with_for_update(), True),
        (sa.select(T.id).where(T.traversal == "t").with_for_update(), False),
        (sa.select(T.id).with_for_update(), False),
        (sa.select(T.id).where(T.id.in_(INSIDE)).with_for_update(), False),
    ],
)
def test_rows_are_locked_in_an_order(query: sa.Select[typing.Any], is_right: bool) -> None:
    assert is_ordered(query) is is_right


@pytest.mark.parametrize(
    ("query", "is_right"),
    [
        (SEVERAL.with_for_update(), True),
        (sa.select(T.id).where(OneOf(T.id)).with_for_update(), True),
        (sa.select(T.id).where(T.state == "ready"), True),
        (sa.select(T.id).where(T.state == "ready").with_for_update(), False),
        (sa.select(T.id).where(sa.true()).with_for_update(skip_locked=True), False),
        (sa.select(T.id).with_for_update(), False),
    ],
)
def test_nobody_locks_all_rows_of_a_state(query: sa.Select[typing.Any], is_right: bool) -> None:
    assert is_selective(query) is is_right


def test_a_lock_inside_of_another_statement_is_seen() -> None:
    engine = sa.create_engine("sqlite://")
    tables.metadata.create_all(engine, [tables.task])
    inside = SEVERAL.with_for_update().subquery()
    with LockWatch() as watch, locks_taken() as taken, engine.begin() as conn:
        conn.execute(sa.update(tables.task).where(T.id == inside.c.id).values(shard=1))
    assert len(watch.offences) == 1
    assert taken == ["task"]
