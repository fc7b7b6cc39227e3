"""A stack is chosen by its id or its name: a name that users have chosen gives no other project's stack."""

from collections.abc import Sequence

import pytest
from stoker.features.moves.heat.selection import RootStack, Selection, WrongSelection, resolved

ID = "8f3e6fb4-c1a2-4d57-a1b2-c3d4e5f60718"
ROOTS = [
    RootStack(ID, "shop", "one"),
    RootStack("id-2", "shop", "two"),
    RootStack("id-3", ID, "two"),
    RootStack("id-4", "web", "one"),
    RootStack("id-5", "web", "two", is_deleted=True),
    RootStack("id-6", "old", "one", is_deleted=True),
    RootStack("id-7", "old", "one", is_deleted=True),
    RootStack("id-8", "id-4", "one"),
]


def chosen(*stacks: str, projects: Sequence[str] = (), with_deleted: bool = False) -> list[str]:
    roots = [root for root in ROOTS if not projects or root.project_id in projects]
    selection = Selection(projects, stacks, with_deleted=with_deleted)
    return list(resolved(selection, roots, ["one", "two"]).stacks)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("one/shop", [ID]),
        ("two/shop", ["id-2"]),
        (f"one/{ID}", [ID]),
        (f"two/{ID}", ["id-3"]),
        ("id-2", ["id-2"]),
        ("web", ["id-4"]),
        ("two/web", ["id-5"]),
        ("old", ["id-6", "id-7"]),
        ("id-4", ["id-4"]),
    ],
)
def test_a_stack_is_named_by_its_id_or_its_name_and_its_project(text: str, ids: list[str]) -> None:
    assert chosen(text) == ids


@pytest.mark.parametrize("text", ["shop", ID])
def test_what_stacks_of_several_projects_are_called_is_refused_with_the_candidates(text: str) -> None:
    with pytest.raises(WrongSelection, match=rf"more than one stack.*one/shop \({ID}\)"):
        chosen(text)
    assert chosen(text, projects=["one"]) == [ID]


def test_deleted_stacks_of_several_projects_are_ambiguous_where_they_are_requested() -> None:
    with pytest.raises(WrongSelection, match="more than one stack"):
        chosen("web", with_deleted=True)


@pytest.mark.parametrize("text", ["none", "one/none", "three/shop", "", "/"])
def test_a_stack_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(WrongSelection, match="there is no root stack"):
        chosen(text)


def test_a_project_that_does_not_exist_is_refused() -> None:
    with pytest.raises(WrongSelection, match="there is no project three"):
        resolved(Selection(["one", "three"]), ROOTS, ["one"])
