"""Requests: their defaults, and what they neither compare nor show."""

import contextlib
import dataclasses
import typing

import pytest
from stoker.engine.compile import GoalCompiler
from stoker.engine.context import Compiled
from stoker.engine.planning.requests import (
    CREATED,
    MOVED,
    PREVIEWED,
    REVIEWED,
    STORED,
    CreateRequest,
    Goal,
    Nesting,
    Purpose,
    Question,
    TypeUnavailable,
    UpdateRequest,
    Validated,
)
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits

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


def test_a_question_does_not_show_its_value() -> None:
    assert "hush" not in repr(Question("check", "hush"))


def compiled(purpose: Purpose, type_name: str, properties: Json) -> Compiled:
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {"r": {"type": type_name, "properties": properties}},
    }
    compiler = GoalCompiler(ResourceRegistry.installed(), Limits(), has_cloud=False)
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    return compiler.compile(Goal(template, purpose=purpose), Identity("s", "i", "p"), sealer)


@pytest.mark.parametrize(
    ("purpose", "may_need_cloud", "keeps_nested"),
    [
        (STORED, False, False),
        (CREATED, False, False),
        (REVIEWED, False, True),
        (PREVIEWED, False, True),
        (MOVED, True, False),
        (Validated(), True, False),
        (Validated(keeps_nested=True), True, True),
    ],
    ids=["stored", "created", "reviewed", "previewed", "moved", "validated", "validated with all below"],
)
def test_a_purpose_says_what_is_judged_and_what_is_returned(
    purpose: Purpose, *, may_need_cloud: bool, keeps_nested: bool
) -> None:
    group = {"count": 1, "resource_def": {"type": "OS::Heat::None"}}
    assert bool(compiled(purpose, "OS::Heat::ResourceGroup", group).nested) == keeps_nested
    needs_cloud = contextlib.nullcontext() if may_need_cloud else pytest.raises(TypeUnavailable)
    with needs_cloud:
        assert list(compiled(purpose, "OS::Nova::KeyPair", {"name": "k"}).plan.resources) == ["r"]
