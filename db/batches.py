"""Lists of ids in statements: how long they may be, and in which order rows are locked."""

import typing
from collections.abc import Iterable

import sqlalchemy as sa

IDS: sa.BindParameter[typing.Any] = sa.bindparam("ids", expanding=True)
"""A parameter for statements that are built once: to build one takes longer than SQLite takes to run it."""
BATCH = 500
"""Ids in one list: far below SQLite's limit of variables, and still one round trip for most commits."""


def chunks(ids: Iterable[int]) -> Iterable[list[int]]:
    """Return the ids in ascending order, in lists of at most BATCH.

    All writers go through rows in this order, so two of them never hold what the other one waits for.
    """
    ordered = sorted(set(ids))
    return (ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH))
