"""Held resources that continue: those that a name, a wildcard or a hook chooses."""

import types
import typing

import pytest
from stoker.db.ids import ResourceId, TaskId
from stoker.db.work.breakpoints import HeldTask
from stoker.engine.breakpoints import _chosen, clear_breakpoint, continue_held
from stoker.engine.errors import InvalidHook

STACK: typing.Any = types.SimpleNamespace(name="s")


def held_task(path: str, hook: str) -> HeldTask:
    """Return a task that is held at a breakpoint."""
    name = path.rpartition("/")[2]
    return HeldTask(TaskId(1), ResourceId(1), name, "OS::Heat::None", None, hook, None, path)


HELD = [
    held_task("web", "pre-create"),
    held_task("db", "post-create"),
    held_task("inside/web", "pre-create"),
    held_task("inside/db", "pre-delete"),
]


@pytest.mark.parametrize(
    ("names", "hook", "paths"),
    [
        (None, None, ["web", "db", "inside/web", "inside/db"]),
        (None, "pre-create", ["web", "inside/web"]),
        (["web"], None, ["web"]),
        (["*"], None, ["web", "db"]),
        (["*/web"], None, ["inside/web"]),
        (["inside/*"], None, ["inside/web", "inside/db"]),
        (["inside/*"], "pre-delete", ["inside/db"]),
        (["inside/db", "w*"], None, ["web", "inside/db"]),
    ],
)
def test_those_continue_that_are_chosen(names: list[str] | None, hook: str | None, paths: list[str]) -> None:
    assert [item.path for item in _chosen(HELD, STACK, names, hook)] == paths


@pytest.mark.parametrize(
    ("names", "hook", "error"),
    [
        (None, "pre-update", "Nothing of stack s is held at pre-update"),
        (["web"], "pre-update", "Nothing of stack s is held at pre-update"),
        (["web", "x"], None, 'No resource "x" of stack s is held at a breakpoint; held are: db, inside/db, '),
        (
            ["db"],
            "pre-create",
            'No resource "db" of stack s is held at pre-create; held are: inside/web, web',
        ),
        (["w/*"], None, 'No resource "w/*" of stack s is held at a breakpoint; held are: db, '),
    ],
)
def test_a_choice_of_nothing_is_an_error(names: list[str] | None, hook: str | None, error: str) -> None:
    with pytest.raises(InvalidHook) as refused:
        _chosen(HELD, STACK, names, hook)
    assert str(refused.value).startswith(error)


def test_where_nothing_is_held_nothing_can_continue() -> None:
    with pytest.raises(InvalidHook, match="Nothing of stack s is held at a breakpoint"):
        _chosen([], STACK, None, None)


UNREAD: typing.Any = None
"""In the place of a context of which nothing is read."""


def test_the_name_of_a_hook_is_checked_before_anything_is_read() -> None:
    with pytest.raises(InvalidHook, match="unset_hook must be the name of a hook, not 5"):
        clear_breakpoint(UNREAD, STACK, "web", 5)
    with pytest.raises(InvalidHook, match='"pre-crate" is not one of: pre-create, '):
        continue_held(UNREAD, STACK, hook="pre-crate")
