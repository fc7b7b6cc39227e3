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
    :ivar prefix: Heat's words before the path; "": none.
    :ivar path_last: the path follows the message, which is Heat's.
    :ivar others: further errors of the template, where they were searched for.
    """

    code = "StackValidationFailed"
    prefix = ""
    path_last = False
    others: "Sequence[TemplateError]" = ()

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        self.message = _shortened(message, _LONGEST)
        self.path = tuple(path)
        where = dotted(self.path) if self.prefix else ".".join(map(_part, self.path))
        if where and self.path_last:
            super().__init__(f"{self.message} ({where})")
        else:
            super().__init__(": ".join(part for part in (self.prefix, where, self.message) if part))


def _part(part: str | int) -> str:
    return _shortened(str(part), _LONGEST_PART)


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as text, with the indexes of lists as Heat writes them: ``a.b[0].c``."""
    found = ""
    for part in path:
        text = _part(part)
        found += f"[{text}]" if isinstance(part, int) and found else f".{text}" if found else text
    return found


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


class InvalidTemplateVersion(TemplateError):
    """The template names no version, or one that is not known."""

    code = "InvalidTemplateVersion"


class InvalidTemplateSection(TemplateError):
    """The template has a section that its version does not know."""

    code = "InvalidTemplateSection"
    prefix = "The template section is invalid"


class InvalidProperty(TemplateError):
    """The value of a property cannot be used, or cannot be computed."""

    prefix = "Property error"


class FacadeMismatch(TemplateError):
    """A template does not fit the type that it is mapped to."""

    path_last = True


class UnavailableType(TemplateError):
    """A resource has a type of Heat that this installation does not have."""

    code = "ResourceTypeUnavailable"
    path_last = True


class InvalidReference(TemplateError):
    """A resource, parameter or condition is used that the template does not have."""

    code = "InvalidTemplateReference"


class UnknownResource(InvalidReference):
    """A resource is used that the template does not have, or whose condition is false."""

    path_last = True

    @classmethod
    def at(cls, name: str, path: Sequence[str | int], hint: str) -> "UnknownResource":
        """Return the error in Heat's words.

        :param path: of the part that names the resource.
        :param hint: a sentence that says what would be right.
        """
        section, rest = path[0], list(path[1:])
        if section == "resources" and len(rest) > 1:
            rest[1] = "".join(word.capitalize() for word in str(rest[1]).split("_"))
            where = dotted(rest)
        else:
            where = "unknown"
        return cls(f'The specified reference "{name}" (in {where}) is incorrect. {hint}', path)


class Unresolvable(InvalidReference):
    """A value cannot be computed, because a parameter or a file does not exist."""


class CircularDependency(TemplateError):
    """Resources depend on each other in a circle; the message names its members in order."""

    code = "CircularDependencyException"
    prefix = "Circular Dependency Found"


class ParameterMissing(TemplateError):
    """A parameter without a default was given no value."""

    code = "UserParameterMissing"
    path_last = True


SUGGESTION = " The template has no "
"""Words between Heat's text for something that does not exist, and the hint."""


def not_provided(name: str) -> str:
    """Return Heat's text for a parameter without a value."""
    return f"The Parameter ({name}) was not provided."


class ValueUnknown(ParameterMissing):
    """A parameter's value is needed that is not known yet; a check continues without what depends on it."""


class UnknownParameter(TemplateError):
    """A value was given for a parameter that the template does not declare."""

    code = "UnknownUserParameter"
    path_last = True


class ImmutableParameter(TemplateError):
    """An update changes a parameter that the template calls immutable."""

    code = "ImmutableParameterModified"


class LimitExceeded(TemplateError):
    """A limit of the service is exceeded: template size, resources, nesting depth or cost."""

    code = "RequestLimitExceeded"
