"""Constraints on the values of parameters and of properties."""

import contextlib
import functools
import typing
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass

from ..shapes import Json
from . import custom_checks
from .errors import LimitExceeded
from .sandbox import evaluator
from .sandbox.errors import EvaluationError
from .scalars import as_text, boolean, equality_key, number

NUMBERS = frozenset({"number", "integer"})
SIZED = frozenset({"string", "comma_delimited_list", "list", "json", "map"})


class ConstraintError(ValueError):
    """A value does not satisfy a constraint; the text names the constraint."""


@dataclass(frozen=True)
class Constraint:
    """Base of the constraints: a check, the types that it applies to, and its form in the API.

    :ivar description: the author's own words, shown in place of ours where given.
    """

    description: str | None = None

    types: typing.ClassVar[frozenset[str]] = frozenset()
    name: typing.ClassVar[str] = ""

    def problem(self, value: Json) -> str | None:
        """Return the reason why the value does not satisfy the constraint; None: it satisfies it."""
        raise NotImplementedError

    def check(self, value: Json) -> None:
        """Check a value.

        :raises ConstraintError: the value does not satisfy the constraint.
        :raises LimitExceeded: the check takes more than the service allows.
        """
        problem = self.problem(value)
        if problem is not None:
            raise ConstraintError(self.description or problem)

    def view(self) -> dict[str, Json]:
        """Return the constraint in the form of Heat's ``template validate``."""
        raise NotImplementedError

    def definition(self) -> dict[str, Json]:
        """Return the constraint as a template and Heat's resource type schema have it."""
        raise NotImplementedError


def _bounds(minimum: float | None, maximum: float | None) -> dict[str, float]:
    return {key: value for key, value in (("min", minimum), ("max", maximum)) if value is not None}


def _outside(value: float, minimum: float | None, maximum: float | None) -> bool:
    return (minimum is not None and value < minimum) or (maximum is not None and value > maximum)


@dataclass(frozen=True)
class Length(Constraint):
    """Bounds for the length of a string, list or map; None: no bound on that side."""

    minimum: int | None = None
    maximum: int | None = None
    types = SIZED
    name = "length"

    def problem(self, value: Json) -> str | None:
        if not isinstance(value, Sized):  # A scalar of a json parameter.
            return f"{value} has no length"
        if not _outside(len(value), self.minimum, self.maximum):
            return None
        return f"length ({len(value)}) is out of range ({_range(self.minimum, self.maximum)})"

    def view(self) -> dict[str, Json]:
        return {f"{key.title()}Length": value for key, value in _bounds(self.minimum, self.maximum).items()}

    def definition(self) -> dict[str, Json]:
        return {"length": _bounds(self.minimum, self.maximum)}


def _range(minimum: float | None, maximum: float | None) -> str:
    return ", ".join(f"{key}: {value}" for key, value in _bounds(minimum, maximum).items())


@dataclass(frozen=True)
class Range(Constraint):
    """Bounds for a number; None: no bound on that side."""

    minimum: float | None = None
    maximum: float | None = None
    types = NUMBERS
    name = "range"

    def problem(self, value: Json) -> str | None:
        if not _outside(value, self.minimum, self.maximum):
            return None
        return f"{value} is out of range ({_range(self.minimum, self.maximum)})"

    def view(self) -> dict[str, Json]:
        return {f"{key.title()}Value": value for key, value in _bounds(self.minimum, self.maximum).items()}

    def definition(self) -> dict[str, Json]:
        return {"range": _bounds(self.minimum, self.maximum)}


@dataclass(frozen=True)
class Modulo(Constraint):
    """value = offset + n × step."""

    step: int = 1
    offset: int = 0
    types = NUMBERS
    name = "modulo"

    def problem(self, value: Json) -> str | None:
        if (value - self.offset) % self.step == 0:
            return None
        return f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

    def view(self) -> dict[str, Json]:
        return {"Step": self.step, "Offset": self.offset}

    def definition(self) -> dict[str, Json]:
        return {"modulo": {"step": self.step, "offset": self.offset}}


@dataclass(frozen=True)
class AllowedValues(Constraint):
    """A list of allowed values; of a list value each item must be allowed.

    They are compared as values of the type of the checked value: 2 is 2.0 and "2", "yes" is true.
    """

    values: tuple[Json, ...] = ()
    types = frozenset({"string", "number", "integer", "boolean", "comma_delimited_list", "list"})
    name = "allowed_values"

    def problem(self, value: Json) -> str | None:
        items = value if isinstance(value, list) else [value]
        wrong = next((item for item in items if not self._allows(item)), _NONE)
        if wrong is _NONE:
            return None
        allowed = ", ".join(map(as_text, self.values))
        return f'"{as_text(wrong)}" is not an allowed value [{allowed}]'

    def _allows(self, value: object) -> bool:
        if isinstance(value, bool):
            return value in self._truths
        if isinstance(value, int | float):
            return equality_key(value) in self._numbers
        return equality_key(value) in self._forms

    @functools.cached_property
    def _truths(self) -> set[bool]:
        return set(_read(boolean, self.values))

    @functools.cached_property
    def _numbers(self) -> set[str]:
        return set(map(equality_key, _read(number, self.values)))

    @functools.cached_property
    def _forms(self) -> set[str]:
        """The values themselves, and as texts."""
        return {equality_key(form) for allowed in self.values for form in (allowed, str(allowed))}

    def view(self) -> dict[str, Json]:
        return {"AllowedValues": list(self.values)}

    def definition(self) -> dict[str, Json]:
        return {"allowed_values": list(self.values)}


_NONE = object()


def _read(kind: Callable[[Json], Json], values: Iterable[Json]) -> Iterator[Json]:
    """Read the values that are of a kind."""
    for value in values:
        with contextlib.suppress(ValueError):
            yield kind(value)


@dataclass(frozen=True)
class AllowedPattern(Constraint):
    """A regular expression of Python's that the whole string must match; it is run in a helper process."""

    pattern: str = ""
    types = frozenset({"string"})
    name = "allowed_pattern"

    def problem(self, value: Json) -> str | None:
        """Return the problem of the value, or None.

        :raises LimitExceeded: the expression takes too long on this value.
        """
        try:
            if evaluator.current().match(self.pattern, str(value)):
                return None
        except EvaluationError as error:
            # Its text says nothing of the value, which may be hidden.
            text = f'the regular expression "{self.pattern:.200}" cannot be tried on the value: it {error}'
            raise LimitExceeded(text) from error
        return f'"{value}" does not match the pattern "{self.pattern}"'

    def view(self) -> dict[str, Json]:
        return {"AllowedPattern": self.pattern}

    def definition(self) -> dict[str, Json]:
        return {"allowed_pattern": self.pattern}


@dataclass(frozen=True)
class Custom(Constraint):
    """A check by name; custom_checks.py has the names, and which of them are checked here."""

    check_name: str = ""
    types = AllowedValues.types
    name = "custom_constraint"

    def problem(self, value: Json) -> str | None:
        """Return the problem of the value, of a list that of its first wrong item, or None."""
        items = value if isinstance(value, list) else [value]
        problems = (custom_checks.problem(self.check_name, item) for item in items)
        return next((text for text in problems if text is not None), None)

    def view(self) -> dict[str, Json]:
        return {"CustomConstraint": self.check_name}

    def definition(self) -> dict[str, Json]:
        return {"custom_constraint": self.check_name}
