"""Requests: their defaults, and what they neither compare nor show."""

import dataclasses
import typing

from stoker.engine.planning.requests import CreateRequest, Goal, Nesting, UpdateRequest

Json = typing.Any


def test_a_request_has_heats_defaults_and_is_limited() -> None:
    goal = Goal("")
    created = CreateRequest("p", "s", goal)
    assert (created.disable_rollback, created.abort_on_breakpoint, created.is_limited) == (True, False, True)
    updated = UpdateRequest(goal)
    assert (updated.existing, updated.converge, updated.is_limited) == (False, False, True)
    parent: Json = None
    assert Nesting(parent, parent, lambda now: now).breakpoints_hold
    assert not goal.generated


def test_neither_budgets_nor_clouds_nor_data_make_a_goal_another_one() -> None:
    """They are not shown either: a cloud holds the caller's token."""
    other: Json = object()
    goal = Goal("t")
    changed = dataclasses.replace(goal, cloud=other, budget=other, stored_data=other)
    assert changed == goal
    assert repr(changed) == repr(goal)
