"""The members that a group has, and the batches in which an update changes them."""

import itertools
from collections.abc import Mapping, Sequence

from ...db import content, resources
from ...db.rows import Stack
from ...engine.children import definitions_inside, members_of
from ...engine.context import EngineContext
from ...resources.contract.children import ChildGoal, GroupMember
from ...resources.contract.errors import PropertyError, StepError
from ...resources.nested.members import member_bodies
from ...sealing.sealer import SealError
from ...sealing.secrets import Secrets
from ...shapes import JsonMap
from ...template.errors import TemplateError
from .plan import Turn


class OnlyStepsKnow(Exception):
    """A goal depends on what only a step finds out."""


UNKNOWABLE = (TemplateError, PropertyError, StepError, SealError, OnlyStepsKnow)
"""The errors of a group of whose members nothing can be known before its step runs."""


def present_members(context: EngineContext, child: Stack, secrets: Secrets) -> Sequence[GroupMember]:
    """Return the members that a group has, as its steps would find them.

    :raises OnlyStepsKnow: later, where somebody compares the file that a member was made of with another one.
    """
    rows, template = context.database.read(
        lambda conn: (resources.of_stack(conn, child.id), content.get(conn, child.template_id))
    )
    return members_of(
        [row for row in rows if row.replaced_by is None],
        definitions_inside(child, template, secrets.open),
        secrets,
        lambda row: _only_steps_know if row.template else _has_no_template,
    )


def _has_no_template(type_name: str) -> bool:
    return False


def _only_steps_know(type_name: str) -> bool:
    """Refuse to compare the file that a member was made of with one of another name.

    :raises OnlyStepsKnow: always.
    """
    raise OnlyStepsKnow


def batches_of(
    before: Mapping[str, JsonMap | None], goals: Sequence[ChildGoal]
) -> tuple[dict[str, Turn], dict[str, JsonMap]]:
    """Return the batches in which members change, by name, and those members that exist only meanwhile.

    :param before: the definitions of the members that there are.
    :param goals: the goals of all steps.
    :returns: nothing, where all change at once.
    """
    turns: dict[str, Turn] = {}
    passing: dict[str, JsonMap] = {}
    if len(goals) == 1:
        return turns, passing
    states = [before, *map(member_bodies, goals)]
    for number, (old, new) in enumerate(itertools.pairwise(states)):
        for name in {**old, **new}:
            if old.get(name) == new.get(name):
                continue
            turns[name] = Turn(turns[name].taking if name in turns else number, number)
            if name in new and name not in before and name not in states[-1]:
                passing[name] = new[name] or {}
    return turns, passing
