"""The members that a group has, and the batches in which an update changes them."""

import itertools
from collections.abc import Mapping, Sequence

from ...db import content, resources
from ...db.rows import Stack
from ...db.states import Status
from ...engine.context import EngineContext
from ...resources.contract.children import ChildGoal, GroupMember, in_order
from ...resources.contract.errors import PropertyError, StepError
from ...resources.nested.members import member_bodies
from ...resources.nested.parameterize import restore_values
from ...sealing.sealer import SealError
from ...sealing.secrets import Secrets
from ...sealing.stored import StoredLookup
from ...shapes import JsonMap
from ...template.errors import TemplateError
from ...template.residual import evaluate
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
    parameters = evaluate(child.parameters, StoredLookup(secrets.open))
    bodies = restore_values(template, parameters)
    return in_order(
        GroupMember(
            row.name,
            bodies.get(row.name),
            secrets.open_value(row.reference_id),
            row.status == Status.FAILED,
            row.created_at,
            row.physical_id,
            _only_steps_know if row.template else _has_no_template,
        )
        for row in rows
        if row.replaced_by is None
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
