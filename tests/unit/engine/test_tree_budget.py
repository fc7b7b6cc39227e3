"""The budget of what one request reads of a tree: rows with their values, bytes and levels; 0 is no limit."""

import dataclasses

import pytest
from stoker.db.rows import Resource
from stoker.engine.tree_budget import TreeBudget, TreeLimits
from stoker.template.budget import json_size
from stoker.template.errors import LimitExceeded
from unit.engine.planning.test_table import rows_of

EMPTY = json_size([None] * 4)


def row(**values: object) -> Resource:
    return dataclasses.replace(rows_of("a")["a"], properties=None, **values)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_request_reads_so_many_rows_and_no_more(most: int) -> None:
    budget = TreeBudget(TreeLimits(rows=most, bytes=0))
    for _ in range(most):
        budget.take_rows([row()])
    with pytest.raises(LimitExceeded, match=f"more than {most} resources"):
        budget.take_rows([row()])
    TreeBudget(TreeLimits(rows=0)).take_rows([row()] * 200)


@pytest.mark.parametrize("most", [1, 2, 500])
def test_a_request_reads_so_many_bytes_and_no_more(most: int) -> None:
    budget = TreeBudget(TreeLimits(bytes=most))
    budget.take_bytes(most)
    with pytest.raises(LimitExceeded, match=f"more than {most} bytes"):
        budget.take_bytes(1)
    TreeBudget(TreeLimits(bytes=0)).take_bytes(10**12)


@pytest.mark.parametrize("name", ["properties", "metadata", "data", "attributes"])
def test_rows_are_charged_with_their_values(name: str) -> None:
    size = EMPTY - len("null") + json_size({"k": "x" * 100})
    filled = dataclasses.replace(row(), **{name: {"k": "x" * 100}})
    TreeBudget(TreeLimits(bytes=size + EMPTY)).take_rows([filled, row()])
    with pytest.raises(LimitExceeded):
        TreeBudget(TreeLimits(bytes=size + EMPTY - 1)).take_rows([filled, row()])
