"""Errors in a template, its environment or its parameters, which the user can fix."""

from collections.abc import Sequence

_LONGEST = 4000
"""Characters of a message: users choose the names and the values in it."""
_LONGEST_PART = 255
"""Characters of one part of a path."""


class TemplateError(ValueError):
    """The template, environment or parameters cannot be used.

    :ivar code: stable name shown as ``error.type`` by the API; Heat's name where Heat has one.
    :ivar path: where in the document, e.g. ``("resources", "web", "properties", "count")``.
    """

    code = "StackValidationFailed"

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        self.message = _shortened(message, _LONGEST)
        self.path = tuple(path)
        where = ".".join(_shortened(str(part), _LONGEST_PART) for part in self.path)
        super().__init__(f"{where}: {self.message}" if where else self.message)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class InvalidTemplateVersion(TemplateError):
    """The template names no version, or one that is not known."""

    code = "InvalidTemplateVersion"


class InvalidReference(TemplateError):
    """A resource, parameter or condition is used that the template does not have."""

    code = "InvalidTemplateReference"


class CircularDependency(TemplateError):
    """Resources depend on each other in a circle; the message names its members in order."""

    code = "CircularDependencyException"


class ParameterMissing(TemplateError):
    """A parameter without a default was given no value."""

    code = "UserParameterMissing"


def not_provided(name: str) -> str:
    """Return Heat's text for a parameter without a value."""
    return f"The Parameter ({name}) was not provided."


class ValueUnknown(ParameterMissing):
    """A parameter's value is needed that is not known yet; a check continues without what depends on it."""


class UnknownParameter(TemplateError):
    """A value was given for a parameter that the template does not declare."""

    code = "UnknownUserParameter"


class ImmutableParameter(TemplateError):
    """An update changes a parameter that the template calls immutable."""

    code = "ImmutableParameterModified"


class LimitExceeded(TemplateError):
    """A limit of the service is exceeded: template size, resources, nesting depth or cost."""

    code = "RequestLimitExceeded"
