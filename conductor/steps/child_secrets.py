"""The secrets of nested stacks: in their goals, and in the values that the resources around them read.

A step reads them of a claim, and an import of the rows that it builds.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...db.rows import Resource
from ...engine.planning.goal import SECRET_TEMPLATE, secret_parameters, template_is_secret
from ...resources.contract.children import ChildGoal
from ...resources.contract.errors import PermanentError
from ...resources.nested.base import output_error
from ...resources.nested.members import output_name
from ...resources.nested.parameterize import parameterize
from ...sealing.secrets import Secrets
from ...sealing.stored import SealedRowLookup, StoredLookup
from ...shapes import Json, JsonMap
from ...template.budget import Budget, new_budget
from ...template.errors import TemplateError
from ...template.residual import ARGS, FN, evaluate, is_node, members, node, nodes, partial


class _Opening:
    """Opens secrets, and remembers as a secret whatever was made of one."""

    def __init__(self, secrets: Secrets, rows: Mapping[str, Resource], budget: Budget) -> None:
        self._secrets = secrets
        self._lookup = SealedRowLookup(rows)
        self._budget = budget

    def evaluate(self, tree: Json) -> Json:
        """Return the value of a tree, and remember the parts that hold secrets."""
        return self._opened(partial(tree, self._lookup, self._budget))

    def _opened(self, tree: Json) -> Json:
        """Return the value of a residual in which only secrets are left."""
        if isinstance(tree, list):
            return [self._opened(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if is_node(tree) and tree[FN] != "literal":
            value = evaluate(tree, StoredLookup(self._secrets.open), self._budget)
            self._secrets.add(value)
            return value
        return {key: self._opened(item) for key, item in members(tree).items()}


def goal_with_secrets(goal: ChildGoal, type_name: str, properties: Json, secrets: Secrets) -> ChildGoal:
    """Return the goal of a nested stack with the names of its secret parameters.

    :param type_name: type of the nested stack's resource, after the environment's mapping.
    :param properties: the properties of that resource, with secrets still sealed.
    :raises PermanentError: its template is made of a secret.
    """
    if goal.generated:
        return parameterize(goal, secrets.holds, secrets.hides)
    if template_is_secret(type_name, properties):
        raise PermanentError(f"the template {SECRET_TEMPLATE}", kind="StackValidationFailed")
    return replace(goal, secret=secret_parameters(goal.parameters, properties, secrets.holds))


def open_outputs(outputs: JsonMap, rows: Mapping[str, Resource], secrets: Secrets) -> dict[str, Json]:
    """Return the values of a nested stack's outputs; None for those that cannot be evaluated.

    :param rows: the stack's resources by name.
    """
    values: dict[str, Json] = {}
    with new_budget() as budget:
        opening = _Opening(secrets, rows, budget)
        for name, output in outputs.items():
            try:
                values[name] = opening.evaluate(output["value"])
            except (TemplateError, LookupError):
                values[name] = None
    return values


def open_inner_values(
    requested: Iterable[Sequence[str | int]], rows: Mapping[str, Resource], secrets: Secrets
) -> dict[str, Json]:
    """Return the values of attributes of a nested stack's resources; None for those that are not there.

    :param requested: paths, which begin with ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``.
    :param rows: the stack's resources by name; others have no values.
    """
    outputs = {}
    for parts in requested:
        _, name, *attribute = str(parts[0]).split(".", 2)
        path = [*attribute, *parts[1:]]
        if name in rows:
            value = node("get_attr", name, *path) if path else node("get_resource", name)
            outputs[output_name(parts)] = {"value": value}
    return open_outputs(outputs, rows, secrets)


def failing_outputs(outputs: JsonMap, rows: Mapping[str, Resource], secrets: Secrets) -> dict[str, str]:
    """Return the errors of those outputs that can never be computed, whatever the resources say.

    Their texts name parts of templates, and hold no values.

    :param rows: the stack's resources by name.
    """
    errors: dict[str, str] = {}
    data_of = functools.cache(lambda resource: secrets.peek(rows[resource].data))
    for name, output in outputs.items():
        for item in nodes(output["value"]):
            args = item[ARGS]
            text = None
            if item[FN] == "error":
                text = args[0]
            elif item[FN] == "get_attr" and args[0] in rows and isinstance(args[1], str):
                text = output_error(args[0], data_of(args[0]), args[1])
            if text is not None:
                errors.setdefault(name, text)
    return errors
