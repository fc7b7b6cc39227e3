"""Parameters for values in a generated template that must not be read as part of it.

A resource type that generates its child's template puts resolved values into it.  Two sorts of values become
parameters of the child: a map that looks like a function of the template language, and a secret, which is
never stored in clear.  The parameters of secrets are hidden.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...shapes import Json, JsonMap
from ...template.functions.table import FIRST, REMOVED
from ...template.residual import is_node
from ..contract import ChildGoal

PREFIX = "value_"
_SECTIONS = ("properties", "metadata")
_FUNCTIONS = frozenset(FIRST) | REMOVED


class _Parameters:
    """The parameters of one template."""

    def __init__(self, is_secret: Callable[[Json], bool] | None, is_hidden: Callable[[Json], bool]) -> None:
        self._is_secret = is_secret
        self._is_hidden = is_hidden
        self.declared: dict[str, Json] = {}
        self.values: dict[str, Json] = {}
        self._names: dict[str, str] = {}

    def replaced(self, value: Json) -> Json:
        """Return the value with parameters in the place of those values."""
        if self._is_secret is None and is_node(value):
            return self._unknown()
        if isinstance(value, Mapping):
            secret = self._is_hidden(value) or any(self._contains_secret(key) for key in value)
            if secret or (len(value) == 1 and next(iter(value)) in _FUNCTIONS):
                return self._parameter("json", value, hidden=secret or self._contains_secret(value))
            return {key: self.replaced(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            if self._is_hidden(value):
                return self._parameter("json", value, hidden=True)
            return [self.replaced(item) for item in value]
        if self._contains_secret(value) or self._is_hidden(value):
            return self._parameter(_type_of(value), value, hidden=True)
        return value

    def _unknown(self) -> Json:
        name = f"{PREFIX}unknown"
        self.declared[name] = {"type": "json", "hidden": True}
        return {"get_param": name}

    def _contains_secret(self, value: Json) -> bool:
        return self._is_secret is not None and self._is_secret(value)

    def _parameter(self, kind: str, value: Json, *, hidden: bool) -> Json:
        declared = {"type": kind, "hidden": hidden}
        key = json.dumps([declared, value], sort_keys=True)
        if key not in self._names:
            name = f"{PREFIX}{len(self._names)}"
            self._names[key] = name
            self.declared[name] = declared
            self.values[name] = value
        return {"get_param": self._names[key]}


def _type_of(scalar: Json) -> str:
    if isinstance(scalar, bool):
        return "boolean"
    return "string" if isinstance(scalar, str) else "number"


def no_map(value: Json) -> bool:
    """Return False: where no value is known, none is a secret."""
    return False


def parameterize(
    goal: ChildGoal, is_secret: Callable[[Json], bool] | None, is_hidden: Callable[[Json], bool] = no_map
) -> ChildGoal:
    """Return the goal with those values as parameters; a goal that was not generated is unchanged.

    :param is_secret: returns whether a value contains a secret.  None: the template is only checked, and
        contains residuals, whose values are unknown before a step: one parameter without a value is in the
        place of all of them.
    :param is_hidden: returns whether a value is a secret as a whole: a map with its keys, a list with its
        size, a boolean, an empty text.
    """
    if not goal.generated:
        return goal
    assert isinstance(goal.template, Mapping), "a generated template is a map"
    generated = _Parameters(is_secret, is_hidden)
    bodies = {
        name: {key: generated.replaced(part) if key in _SECTIONS else part for key, part in body.items()}
        for name, body in goal.template["resources"].items()
    }
    template = {**goal.template, "resources": bodies}
    if generated.declared:
        template["parameters"] = generated.declared
    return replace(goal, template=template, parameters={**goal.parameters, **generated.values})


def restore_values(template: JsonMap, parameters: JsonMap) -> dict[str, JsonMap]:
    """Return the resources' bodies of a parameterized template, with the values in their places."""

    def restored(value: Json) -> Json:
        if isinstance(value, Mapping):
            if len(value) == 1 and "get_param" in value:
                return parameters.get(value["get_param"])
            return {key: restored(item) for key, item in value.items()}
        return [restored(item) for item in value] if isinstance(value, list | tuple) else value

    return {
        name: {key: restored(part) if key in _SECTIONS else part for key, part in body.items()}
        for name, body in (template.get("resources") or {}).items()
    }
