"""Values in a generated template that must not be read as part of it.

A resource type that generates its child's template puts resolved values into it.  Two sorts of them cannot
stand there as they are: a map that looks like a function of the template language, and a secret, which is
never stored in clear.  They become parameters of the child, the secrets hidden ones.
"""

import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...template.functions.table import FIRST, REMOVED
from ...template.residual import is_node
from ..context import ChildGoal

Json = typing.Any
PREFIX = "value_"
_SECTIONS = ("properties", "metadata")
_FUNCTIONS = frozenset(FIRST) | REMOVED


class _Lifter:
    """One template's."""

    def __init__(self, is_secret: Callable[[Json], bool] | None) -> None:
        self._is_secret = is_secret
        self.declared: dict[str, Json] = {}
        self.values: dict[str, Json] = {}
        self._names: dict[str, str] = {}

    def lift(self, value: Json) -> Json:
        """The value as it can stand in the template."""
        if self._is_secret is None and is_node(value):
            return self._parameter("string", "", hidden=True)
        if isinstance(value, Mapping):
            secret = any(self._tells(key) for key in value)
            if secret or (len(value) == 1 and next(iter(value)) in _FUNCTIONS):
                return self._parameter("json", value, hidden=secret or self._tells(value))
            return {key: self.lift(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.lift(item) for item in value]
        if self._tells(value):
            return self._parameter("string" if isinstance(value, str) else "number", value, hidden=True)
        return value

    def _tells(self, value: Json) -> bool:
        return self._is_secret is not None and self._is_secret(value)

    def _parameter(self, kind: str, value: Json, *, hidden: bool) -> Json:
        declared = {"type": kind, "hidden": hidden}
        seen = json.dumps([declared, value], sort_keys=True)
        if seen not in self._names:
            name = f"{PREFIX}{len(self._names)}"
            self._names[seen], self.declared[name], self.values[name] = name, declared, value
        return {"get_param": self._names[seen]}


def parameterize(goal: ChildGoal, is_secret: Callable[[Json], bool] | None) -> ChildGoal:
    """The goal with those values as parameters; one that was not generated stays as it is.

    :param is_secret: whether a secret is told by a value; None: the template is only to be checked, and
        holds residuals: of what is not known before a step only this is known, that it will stand there.
    """
    if not goal.generated:
        return goal
    assert isinstance(goal.template, Mapping), "a generated template is a map"
    lifter = _Lifter(is_secret)
    bodies = {
        name: {key: lifter.lift(part) if key in _SECTIONS else part for key, part in body.items()}
        for name, body in goal.template["resources"].items()
    }
    template = {**goal.template, "resources": bodies}
    if lifter.declared:
        template["parameters"] = lifter.declared
    return replace(goal, template=template, parameters={**goal.parameters, **lifter.values})


def restore_values(
    template: Mapping[str, Json], parameters: Mapping[str, Json]
) -> dict[str, Mapping[str, Json]]:
    """The bodies of a lifted template's resources, with the values in their places again."""

    def lower(value: Json) -> Json:
        if isinstance(value, Mapping):
            if len(value) == 1 and "get_param" in value:
                return parameters.get(value["get_param"])
            return {key: lower(item) for key, item in value.items()}
        return [lower(item) for item in value] if isinstance(value, list | tuple) else value

    return {
        name: {key: lower(part) if key in _SECTIONS else part for key, part in body.items()}
        for name, body in (template.get("resources") or {}).items()
    }
