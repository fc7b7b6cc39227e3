"""Errors in a template, its environment or its parameters, which the user can fix."""

import contextlib
import typing
from collections.abc import Callable, Iterator, Sequence

MOST_ERRORS = 10
"""Errors of a template that are named at once."""
_LONGEST = 4000
"""Characters of a message: users choose the names and the values in it."""
_LONGEST_PART = 255
"""Characters of one part of a path."""


class TemplateError(ValueError):
    """The template, environment or parameters cannot be used.

    :ivar code: stable name shown as ``error.type`` by the API; Heat's name where Heat has one.
    :ivar path: the place in the document, e.g. ``("resources", "web", "properties", "count")``.
    :ivar prefix: Heat's words before the path; "": none.
    :ivar path_last: the path follows the message, which is Heat's.
    :ivar is_whole: the text is the message alone, as clients compare the whole of it.
    :ivar others: further errors of the template, which were found after this one.
    """

    code = "StackValidationFailed"
    prefix = ""
    path_last = False
    is_whole = False
    others: "Sequence[TemplateError]" = ()

    def __init__(self, message: str, path: Sequence[str | int] = ()) -> None:
        self.message = _shortened(message, _LONGEST)
        self.path = tuple(path)
        where = dotted(self.path) if self.prefix else ".".join(map(_part, self.path))
        if self.is_whole:
            super().__init__(self.message)
        elif where and self.path_last:
            super().__init__(f"{self.message} ({where})")
        else:
            super().__init__(": ".join(part for part in (self.prefix, where, self.message) if part))

    def moved(self, place: "Callable[[tuple[str | int, ...]], Sequence[str | int]]") -> "TemplateError":
        """Return the error, and the others with it, at another place.

        :param place: returns the new path for a path.
        """
        moved = type(self)(self.message, place(self.path))
        return moved.with_others([other.moved(place) for other in self.others])

    def with_others(self, others: "Sequence[TemplateError]") -> typing.Self:
        """Return the error, which names these further ones from now on."""
        self.others = others
        return self


def _part(part: str | int) -> str:
    return _shortened(str(part), _LONGEST_PART)


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as text, with the indexes of lists as Heat writes them: ``a.b[0].c``."""
    name = ""
    for part in path:
        text = _part(part)
        name += f"[{text}]" if isinstance(part, int) and name else f".{text}" if name else text
    return name


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


class WordedByHeat(TemplateError):
    """An error whose text begins with Heat's words, which name no path: it follows."""

    path_last = True


class FacadeMismatch(TemplateError):
    """A template does not fit the type that it is mapped to."""

    is_whole = True


class InvalidHookName(WordedByHeat):
    """A breakpoint that an environment sets does not exist."""

    code = "InvalidBreakPointHook"


class InvalidRestriction(WordedByHeat):
    """An environment restricts an action that cannot be restricted."""

    code = "InvalidRestrictedAction"


class InvalidDeclaration(TemplateError):
    """The declaration of a parameter is wrong, its value apart."""

    code = "InvalidSchemaError"


class InvalidGroups(TemplateError):
    """The groups of parameters are wrong."""

    prefix = "Parameter Groups error"


class UnavailableType(TemplateError):
    """A resource has a type of Heat that this installation does not have."""

    code = "ResourceTypeUnavailable"
    path_last = True


class InvalidReference(TemplateError):
    """A resource, parameter or condition is used that the template does not have."""

    code = "InvalidTemplateReference"


class UnknownAttribute(InvalidReference):
    """An attribute is used that a resource does not have."""

    code = "StackValidationFailed"


class UnknownCondition(InvalidReference):
    """A condition is used that the template does not have."""

    code = "StackValidationFailed"


class UndeclaredInput(InvalidReference):
    """A condition needs a parameter or a mapping that the template does not have."""


class UnknownResource(InvalidReference):
    """A resource is used that the template does not have, or whose condition is false."""

    path_last = True

    @classmethod
    def at(cls, name: str, path: Sequence[str | int], hint: str) -> "UnknownResource":
        """Return the error in Heat's words.

        :param path: the path of the part that names the resource.
        :param hint: a sentence that names the remedy.
        """
        section = path[0]
        rest = list(path[1:])
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
    """The value of a parameter is not known yet; a check continues without the parts that depend on it."""


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


class ErrorList:
    """The errors of a template, in the order in which they are found; the search continues after each.

    It keeps MOST_ERRORS of them, each once.
    """

    def __init__(self) -> None:
        self._errors: list[TemplateError] = []

    def __iter__(self) -> Iterator[TemplateError]:
        return iter(self._errors)

    @property
    def is_empty(self) -> bool:
        """Return whether there is no error."""
        return not self._errors

    def add(self, error: TemplateError) -> None:
        """Add an error, and the others that it brings."""
        for new in (error, *error.others):
            is_new = all((new.path, new.message) != (old.path, old.message) for old in self._errors)
            if is_new and len(self._errors) < MOST_ERRORS:
                self._errors.append(new)

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        """Add the error that ends the block; the code after the block runs in any case.

        :raises LimitExceeded: a limit ends the search.
        """
        try:
            yield
        except LimitExceeded:
            raise
        except TemplateError as error:
            self.add(error)

    @contextlib.contextmanager
    def within(self, place: Callable[[tuple[str | int, ...]], Sequence[str | int]]) -> Iterator["ErrorList"]:
        """Yield the list of a part; at the end of the block its errors are added here, however it ends.

        :param place: returns the path in the whole for a path in the part.
        :raises TemplateError: the error that ends the block, with the path in the whole.
        """
        part = ErrorList()
        try:
            yield part
        except TemplateError as error:
            raise error.moved(place) from error
        finally:
            for inside in part:
                self.add(inside.moved(place))

    def below(self, path: Sequence[str | int] = ()) -> contextlib.AbstractContextManager["ErrorList"]:
        """Return `within` for a part whose paths begin at `path`."""
        return self.within(lambda inside: (*path, *inside))

    def add_all(self, errors: "ErrorList") -> None:
        """Add the errors of a part."""
        for error in errors:
            self.add(error)

    def check(self) -> None:
        """Raise the first error, with the others.

        :raises TemplateError: there is an error.
        """
        if self._errors:
            first, *others = self._errors
            raise first.with_others(others)


@contextlib.contextmanager
def named_at_once(*ends: type[Exception]) -> Iterator[ErrorList]:
    """Yield a list of errors, and raise them together at the end of the block.

    :param ends: further errors that end the search, as LimitExceeded does; they are raised only where no
        error was found before them.
    :raises TemplateError: the first error, with the others.
    """
    errors = ErrorList()
    try:
        with errors.collect():
            yield errors
    except LimitExceeded:
        errors.check()
        raise
    except ends:
        errors.check()
        raise
    errors.check()
