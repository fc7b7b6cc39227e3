"""What a stack shall be that goes back to a snapshot."""

import copy
import typing
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..db.resources import Resource
from ..resources.catalogue import Catalogue
from ..resources.errors import UnknownType
from ..template.errors import TemplateError
from ..template.residual import evaluate
from .requests import Goal
from .stored import StoredLookup

Json = typing.Any


def restored_goal(
    goal: Goal, copies: Sequence[Resource], catalogue: Catalogue, unseal: Callable[[str], Json]
) -> Goal:
    """The snapshot's goal, with what the resources' types want to have instead in its template.

    It is the template that is changed, as in Heat: so the next update that keeps the template does not take
    back what was restored.

    :param goal: with the template as a dict.
    :param copies: what the snapshot keeps of the resources.
    :raises TemplateError: a type is not there any more.
    """
    lookup = StoredLookup(unseal)
    template = copy.deepcopy(dict(typing.cast(dict[str, Json], goal.template)))
    resources = template.get("resources") or {}
    for row in (row for row in copies if row.name in resources):
        try:
            plugin = catalogue.get(row.plugin)
        except UnknownType as error:
            raise TemplateError(str(error), ("resources", row.name, "type")) from error
        wanted = plugin.handle_restore(
            evaluate(row.properties or {}, lookup), evaluate(row.data or {}, lookup)
        )
        if wanted:
            body = resources[row.name]
            body["properties"] = {**(body.get("properties") or {}), **wanted}
    return replace(goal, template=template)
