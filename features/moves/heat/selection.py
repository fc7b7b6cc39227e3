"""The root stacks that a run moves, as its operator names them; pure.

Users choose the names of stacks, so a name may be that of another project's stack, or look like an id.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

MOST_CANDIDATES = 10
"""Stacks that an error names."""


class WrongSelection(Exception):
    """The selection names what does not exist, or more than one stack; the text names the candidates."""


@dataclass(frozen=True)
class Selection:
    """The root stacks to read.

    :ivar projects: ids of projects; empty: all.
    :ivar stacks: ids of stacks, once they are resolved by `resolved`; empty: all.
    :ivar with_deleted: whether stacks are read that are deleted, and still stored.
    """

    projects: Sequence[str] = ()
    stacks: Sequence[str] = ()
    with_deleted: bool = False


@dataclass(frozen=True)
class RootStack:
    """A root stack among which stacks are chosen."""

    id: str
    name: str
    project_id: str
    is_deleted: bool = False

    def __str__(self) -> str:
        return f"{self.project_id}/{self.name} ({self.id})"


def names_in(selection: Selection) -> set[str]:
    """Return the ids and the names that the stacks of a selection may have."""
    return {name for text in selection.stacks for name in (text, text.partition("/")[2])} - {""}


def resolved(selection: Selection, roots: Collection[RootStack], projects: Iterable[str]) -> Selection:
    """Return a selection in which stacks are named by their ids.

    A stack is named by its id, by its name, or by its project and one of these: ``PROJECT/NAME``.  A deleted
    stack is meant where no other one is; several deleted ones of one name are one choice.

    :param roots: the root stacks of the selection's projects that have one of `names_in`.
    :param projects: those of the selection's projects that exist.
    :raises WrongSelection: something that is named does not exist, or is not only one.
    """
    if missing := sorted(set(selection.projects) - set(projects)):
        raise WrongSelection(f"there is no project {', '.join(missing)} with a stack or a software config")
    ids: list[str] = []
    for text in selection.stacks:
        ids += [root.id for root in _chosen(text, roots, with_deleted=selection.with_deleted)]
    return replace(selection, stacks=tuple(dict.fromkeys(ids)))


def _chosen(text: str, roots: Collection[RootStack], *, with_deleted: bool) -> Sequence[RootStack]:
    """Return the stack of a text, or the stacks of one name of which all but one are deleted.

    :raises WrongSelection: there is none, or several projects have one.
    """
    project, slash, name = text.rpartition("/")
    of_project = [root for root in roots if not slash or root.project_id == project]
    named = [root for root in of_project if name in (root.id, root.name)]
    living = [root for root in named if not root.is_deleted]
    candidates = living if living and not with_deleted else named
    if not candidates:
        raise WrongSelection(f"there is no root stack {text}")
    if len({root.project_id for root in candidates}) > 1:
        names = ", ".join(map(str, candidates[:MOST_CANDIDATES]))
        raise WrongSelection(
            f"{text} is more than one stack: name one as PROJECT/NAME or PROJECT/ID: {names}"
        )
    return [root for root in candidates if root.id == name] or candidates
