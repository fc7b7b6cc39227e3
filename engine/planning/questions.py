"""The values of a tree of templates of which only the cloud can say whether they meet custom constraints.

They are collected while the templates are compiled, and asked all at once, so that the request waits once.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...resources.contract.errors import UnknownType
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import asks_cloud, custom_values
from ...resources.registry import ResourceRegistry
from ...shapes import Json
from ...template import custom_checks
from ...template.errors import ErrorList, InvalidProperty, TemplateError
from ...template.formats import format_at
from ...template.language import CompiledTemplate, Parameter, Path
from .requests import CallersCloud, Question

MOST = 200
"""Different values that one request asks about; the steps find out about further ones."""


@dataclass(frozen=True)
class _Place:
    """The place of a value.

    :ivar path: the path of the property, or of the stack that has the parameter.
    :ivar parameter: name of the parameter; None: the place is a property.
    :ivar description: the author's own words for the constraint.
    :ivar is_below: the place is in a nested stack.
    """

    path: tuple[str | int, ...]
    parameter: str | None = None
    description: str | None = None
    hidden: bool = False
    is_below: bool = False

    def error(self, value: str, problem: str) -> TemplateError:
        """Return the error in Heat's words, without a value that is hidden."""
        text = self.description or (
            "Error validating the value, which is not shown"
            if self.hidden
            else f"Error validating value '{value}': {problem}"
        )
        if self.parameter is None:
            return InvalidProperty(text, self.path)
        return TemplateError(f"Parameter '{self.parameter}' is invalid: {text}", self.path)


class Questions:
    """Collects the values of a tree of templates; for one request."""

    def __init__(self) -> None:
        self._places: dict[Question, _Place] = {}
        self._above: tuple[str | int, ...] = ()

    @contextlib.contextmanager
    def below(self, path: Path) -> Iterator[None]:
        """Collect the values of the nested stack that a resource of the present one is.

        :param path: the path of the resource in the present stack's template.
        """
        above = self._above
        self._above = (*above, *path)
        try:
            yield
        finally:
            self._above = above

    def collect(self, plan: CompiledTemplate, registry: ResourceRegistry) -> None:
        """Collect the values of one template that are known."""
        form = format_at(plan.version)
        for parameter in plan.parameters.values():
            self._collect_parameter(parameter)
        for definition in plan.resources.values():
            if definition.external_id is not None:
                continue
            try:
                plugin = registry.get(definition.type)
            except UnknownType:
                continue
            if not _asks(plugin):
                continue
            for path, constraint, value, sensitive in custom_values(
                plugin.properties_schema, definition.properties
            ):
                origin = _Place(
                    (*self._above, *form.native_path(("resources", definition.name, "properties")), *path),
                    description=constraint.description,
                    hidden=sensitive,
                    is_below=bool(self._above),
                )
                self._add(constraint.check_name, value, origin)

    def ask(self, cloud: CallersCloud, errors: ErrorList) -> list[TemplateError]:
        """Ask the cloud about all values.

        A thing that a value in a nested stack names may be made by the tree itself: the step that uses the
        value decides, as in Heat.

        :param errors: gets an error for each value of the root that does not meet its constraint.
        :returns: the errors of values in nested stacks, which are only warnings.
        """
        warnings: list[TemplateError] = []
        if not self._places:
            return warnings
        problems: Mapping[Question, str] = cloud.problems(list(self._places))
        for question, origin in self._places.items():
            if question in problems:
                error = origin.error(question.value, problems[question])
                if origin.is_below:
                    warnings.append(error)
                else:
                    errors.add(error)
        return warnings

    def _collect_parameter(self, parameter: Parameter) -> None:
        for name, description in parameter.custom:
            origin = _Place(
                self._above, parameter.name, description, parameter.hidden, is_below=bool(self._above)
            )
            self._add(name, parameter.clear, origin)

    def _add(self, check: str, value: Json, origin: _Place) -> None:
        if check not in custom_checks.OF_CLOUD:
            return
        for item in value if isinstance(value, list) else [value]:
            # An empty text names nothing: the value is not given, or not known yet.
            if item not in (None, "") and len(self._places) < MOST:
                self._places.setdefault(Question(check, str(item)), origin)


@functools.cache
def _asks(plugin: ResourceType) -> bool:
    return asks_cloud(plugin.properties_schema)
