"""Conditions of a template: truth values that parameters decide."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..shapes import Json, JsonMap
from .budget import Budget
from .errors import (
    LimitExceeded,
    TemplateError,
    UndeclaredInput,
    UnknownCondition,
    ValueUnknown,
    not_provided,
)
from .formats import refuse_other
from .functions.table import APPLY, CONDITION_FIRST, wrong_form
from .language import Parameter, Path, Size, Version, measure
from .residual import select
from .scalars import written
from .suggestions import closest

_PARAMETER = ("get_param", "Ref")
_LOGIC: Mapping[str, Callable[[list[bool]], bool]] = {
    "and": all,
    "or": any,
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Not": lambda truths: not truths[0],
}
_AT_LEAST_TWO = "a list of at least two conditions"
_COMPUTED = 20
"""Names of conditions that are the values of functions, in each other: they are found by recursion."""
_EVALUATED = 15
"""Steps of work that one condition takes."""
_COMPARED = 256
"""Bytes of a value that one step of work compares."""


@dataclass
class Conditions:
    """The conditions of one template, each evaluated once.

    Secrets are in clear here, for a condition may depend on a hidden parameter; only truth values leave.
    """

    definitions: JsonMap
    version: Version
    parameters: Mapping[str, Parameter]
    pseudo: Mapping[str, str]
    budget: Budget
    mappings: JsonMap = field(default_factory=dict)
    _sizes: dict[str, Size] = field(default_factory=dict)
    _values: dict[str, bool | None] = field(default_factory=dict)
    _unresolvable: dict[str, UndeclaredInput] = field(default_factory=dict)
    _open: dict[str, Iterator[str]] = field(default_factory=dict)
    _inside: int = 0

    def evaluate(self, condition: Json, path: Path) -> bool:
        """Return the truth value of a condition: a bool, the name of a condition, or a condition function.

        :raises TemplateError: the condition is none of these.
        :raises ValueUnknown: the condition depends on a parameter whose value is not known yet.
        """
        if isinstance(condition, str):
            return self._named(condition, path)
        value = self._value(condition, path)
        if isinstance(value, str) and value in self.definitions:
            return self._named(value, path)
        if isinstance(value, bool):
            return value
        display = "the value of a hidden parameter" if self._uses_hidden(condition) else written(value)
        raise TemplateError(f"a condition must be true or false, not {display}", path)

    def check(self, name: str) -> None:
        """Evaluate a condition that perhaps nobody uses.

        As in Heat, only who uses a condition gets the error that it names a parameter or a mapping which the
        template does not have.

        :raises TemplateError: the condition is wrong in another way.
        """
        with contextlib.suppress(UndeclaredInput, ValueUnknown):
            self.evaluate(name, ("conditions",))

    def _named(self, name: str, path: Path) -> bool:
        if name not in self.definitions:
            hint = closest(name, self.definitions)
            raise UnknownCondition(
                f'Invalid condition "{name}". The template has no such condition{hint}', path
            )
        if name not in self._values:
            if self._inside >= _COMPUTED:
                raise LimitExceeded(f"more than {_COMPUTED} computed names lead from one to the next", path)
            self._inside += 1
            try:
                self._resolve(name)
            finally:
                self._inside -= 1
        if (error := self._unresolvable.get(name)) is not None:
            raise error
        if (value := self._values[name]) is None:
            raise ValueUnknown(f'the value of the condition "{name}" is not known', path)
        return value

    def _resolve(self, name: str) -> None:
        """Evaluate a condition after all that it names; without recursion, for chains can be long.

        :raises TemplateError: one of them is wrong; then no condition that leads to it has a value.
        """
        below = len(self._open)
        try:
            self._begin(name)
            while len(self._open) > below:
                name, uses = next(reversed(self._open.items()))
                unresolved = next((used for used in uses if used not in self._values), None)
                if unresolved is not None:
                    self._begin(unresolved)
                else:
                    self._values[name] = self._truth(name)
                    del self._open[name]
        except TemplateError as error:
            for opened in list(self._open)[below:]:
                self._values[opened] = None
                if isinstance(error, UndeclaredInput):
                    self._unresolvable[opened] = error
                del self._open[opened]
            raise

    def _truth(self, name: str) -> bool | None:
        """Return the value of a condition; None: it is not known yet."""
        try:
            return self.evaluate(self.definitions[name], ("conditions", name))
        except ValueUnknown:
            return None

    def _begin(self, name: str) -> None:
        """Begin to resolve a condition.

        :raises TemplateError: the condition depends on itself.
        """
        if name in self._open:
            names = list(self._open)
            circle = " -> ".join([*names[names.index(name) :], name])
            raise TemplateError(
                f"conditions depend on each other in a circle: {circle}", ("conditions", name)
            )
        self.budget.step(_EVALUATED)
        self._open[name] = self._uses(self.definitions[name])

    def _uses(self, tree: Json) -> Iterator[str]:
        """Yield the conditions that a condition names, but for names that functions compute."""
        trees = [tree]
        while trees:
            tree = trees.pop()
            if isinstance(tree, Mapping) and len(tree) == 1:
                ((function, argument),) = tree.items()
                if function == "not":
                    trees.append(argument)
                elif function in _LOGIC and isinstance(argument, list):
                    trees.extend(reversed(argument))
                elif function in _PARAMETER and isinstance(argument, str) and argument in self.parameters:
                    tree = self.parameters[argument].clear
            if isinstance(tree, str) and tree in self.definitions:
                yield tree

    def _value(self, tree: Json, path: Path) -> Json:
        """Return the value of a tree that may hold condition functions only."""
        if isinstance(tree, str):  # Most are; the checks below take longer than this function.
            return tree
        if isinstance(tree, list):
            self.budget.step(1 + len(tree))
            return [self._value(item, (*path, index)) for index, item in enumerate(tree)]
        if isinstance(tree, Mapping) and len(tree) == 1:
            ((name, argument),) = tree.items()
            if name in self.version.condition_functions:
                return self._function(name, argument, (*path, name))
            refuse_other(name, argument, self.version, path, CONDITION_FIRST)
            if name in self.version.functions:
                allowed = ", ".join(sorted(self.version.condition_functions))
                raise TemplateError(
                    f'the function "{name}" cannot be used in a condition; these can: {allowed}', path
                )
        if isinstance(tree, Mapping):
            self.budget.step(1 + len(tree))
            return {key: self._value(item, (*path, str(key))) for key, item in tree.items()}
        return tree

    def _function(self, name: str, argument: Json, path: Path) -> Json:
        try:
            return self._apply(name, argument, path)
        except TemplateError as error:
            problem = error
            where = error.path or path
        if self._uses_hidden(argument):
            # Neither the message nor the cause of the error may show the value.
            raise type(problem)("cannot be evaluated with the value of a hidden parameter", where)
        raise type(problem)(problem.message, where) from problem

    def _uses_hidden(self, tree: object) -> bool:
        if isinstance(tree, Mapping):
            return any(
                key in _PARAMETER and self._is_hidden(item) or self._uses_hidden(item)
                for key, item in tree.items()
            )
        return isinstance(tree, list) and any(self._uses_hidden(item) for item in tree)

    def _is_hidden(self, argument: object) -> bool:
        name = argument[0] if isinstance(argument, list) and argument else argument
        return isinstance(name, str) and name in self.parameters and self.parameters[name].hidden

    def _apply(self, name: str, argument: Json, path: Path) -> Json:
        if name in _PARAMETER:
            return self._parameter(argument, path)
        if name == "not":
            return not self.evaluate(argument, path)
        if name in _LOGIC:
            return self._combined(name, argument, path)
        if name == "Fn::FindInMap":
            value = self._find_in_map(argument, path)
        else:
            value = APPLY[name](self._value(argument, path), self.version, self.budget)
        if isinstance(value, list | Mapping):  # Texts are charged where they are made.
            self.budget.take_value(value, len(path))
        return value

    def _combined(self, name: str, argument: Json, path: Path) -> bool:
        least, form = (1, "a list of one condition") if name == "Fn::Not" else (2, _AT_LEAST_TWO)
        if not isinstance(argument, list) or len(argument) < least or (least == 1 and len(argument) > 1):
            raise TemplateError(f"must be {form}", path)
        truths = [self.evaluate(item, (*path, index)) for index, item in enumerate(argument)]
        return _LOGIC[name](truths)

    def _find_in_map(self, argument: Json, path: Path) -> Json:
        if (wrong := wrong_form("Fn::FindInMap", argument)) is not None:
            raise TemplateError(wrong, path)
        name, *keys = self._value(argument, path)
        if not isinstance(name, str) or name not in self.mappings:
            hint = closest(str(name), self.mappings)
            raise UndeclaredInput(f'the template has no mapping "{name}"{hint}', path)
        return APPLY["Fn::FindInMap"]([self.mappings[name], *keys], self.version, self.budget)

    def _parameter(self, argument: Json, path: Path) -> Json:
        args = self._value(argument, path)
        name, *steps = args if isinstance(args, list) and args else [args]
        if not isinstance(name, str) or (steps and path[-1] == "Ref"):
            raise TemplateError(f"the parameter's name must be a string, not {written(args)}", path)
        if name in self.pseudo:
            return select(self.pseudo[name], steps, "")
        if name not in self.parameters:
            hint = closest(name, [*self.parameters, *self.pseudo])
            raise UndeclaredInput(f'the template has no parameter "{name}"{hint}', path)
        return select(self._used(name), steps, "")

    def _used(self, name: str) -> Json:
        """Return a parameter's value, charged for the comparisons with it."""
        if not self.parameters[name].is_known:
            raise ValueUnknown(not_provided(name))
        value = self.parameters[name].clear
        if isinstance(value, Mapping | list):
            size = self._sizes.get(name) or self._sizes.setdefault(name, measure(value))
            self.budget.step(size.bytes // _COMPARED)
        return value
