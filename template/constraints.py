"""Constraints on the values of parameters and of properties."""

import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import TemplateError

Json = typing.Any

NUMBERS = frozenset({"number", "integer"})
SIZED = frozenset({"string", "comma_delimited_list", "list", "json", "map"})


class ConstraintError(ValueError):
    """A value does not satisfy a constraint; the text says the constraint, and the value only if asked to."""


@dataclass(frozen=True)
class Constraint:
    """Base: a check, the types it fits, and how the API shows it.

    :ivar description: the author's own words, shown in place of ours where given.
    """

    description: str | None = None

    types: typing.ClassVar[frozenset[str]] = frozenset()
    name: typing.ClassVar[str] = ""

    def problem(self, value: Json) -> str | None:
        """What is wrong with the value, or None."""
        raise NotImplementedError

    def check(self, value: Json) -> None:
        """:raises ConstraintError: the value does not satisfy the constraint."""
        found = self.problem(value)
        if found is not None:
            raise ConstraintError(self.description or found)

    def shown(self) -> dict[str, Json]:
        """Keys of Heat's ``template validate``."""
        raise NotImplementedError

    def definition(self) -> dict[str, Json]:
        """As in a template and in Heat's resource type schema."""
        raise NotImplementedError


def _bounds(minimum: Json, maximum: Json) -> dict[str, Json]:
    return {key: value for key, value in (("min", minimum), ("max", maximum)) if value is not None}


def _outside(value: float, minimum: float | None, maximum: float | None) -> bool:
    return (minimum is not None and value < minimum) or (maximum is not None and value > maximum)


@dataclass(frozen=True)
class Length(Constraint):
    """Of a string, list or map; None: no bound on that side."""

    minimum: int | None = None
    maximum: int | None = None
    types = SIZED
    name = "length"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        if not _outside(len(value), self.minimum, self.maximum):
            return None
        return f"length ({len(value)}) is out of range ({_range(self.minimum, self.maximum)})"

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {f"{key.title()}Length": value for key, value in _bounds(self.minimum, self.maximum).items()}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"length": _bounds(self.minimum, self.maximum)}


def _range(minimum: Json, maximum: Json) -> str:
    return f"min: {minimum}, max: {maximum}"


@dataclass(frozen=True)
class Range(Constraint):
    """Of a number; None: no bound on that side."""

    minimum: float | None = None
    maximum: float | None = None
    types = NUMBERS
    name = "range"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        if not _outside(float(value), self.minimum, self.maximum):
            return None
        return f"{value} is out of range ({_range(self.minimum, self.maximum)})"

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {f"{key.title()}Value": value for key, value in _bounds(self.minimum, self.maximum).items()}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"range": _bounds(self.minimum, self.maximum)}


@dataclass(frozen=True)
class Modulo(Constraint):
    """value = offset + n × step."""

    step: int = 1
    offset: int = 0
    types = NUMBERS
    name = "modulo"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        if int(value) == value and (int(value) - self.offset) % self.step == 0:
            return None
        return f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {"Modulo": {"Step": self.step, "Offset": self.offset}}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"modulo": {"step": self.step, "offset": self.offset}}


@dataclass(frozen=True)
class AllowedValues(Constraint):
    """One of a list; for a list value, each of its items."""

    values: tuple[Json, ...] = ()
    types = frozenset({"string", "number", "integer", "boolean", "comma_delimited_list", "list"})
    name = "allowed_values"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        items = value if isinstance(value, list) else [value]
        texts = {str(allowed) for allowed in self.values}
        wrong = [item for item in items if item not in self.values and str(item) not in texts]
        if not wrong:
            return None
        return f"{wrong[0]!r} is not an allowed value ({', '.join(str(allowed) for allowed in self.values)})"

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {"AllowedValues": list(self.values)}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"allowed_values": list(self.values)}


@dataclass(frozen=True)
class AllowedPattern(Constraint):
    """A regular expression that the whole string must match."""

    pattern: str = ""
    types = frozenset({"string"})
    name = "allowed_pattern"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        if re.fullmatch(self.pattern, str(value)):
            return None
        return f'"{value}" does not match the pattern "{self.pattern}"'

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {"AllowedPattern": self.pattern}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"allowed_pattern": self.pattern}


@dataclass(frozen=True)
class Custom(Constraint):
    """A check against the cloud, by name; done where a resource is made, not here."""

    check_name: str = ""
    types = frozenset(
        {"string", "number", "integer", "boolean", "comma_delimited_list", "list", "json", "map"}
    )
    name = "custom_constraint"

    def problem(self, value: Json) -> str | None:
        """See Constraint."""
        return None

    def shown(self) -> dict[str, Json]:
        """See Constraint."""
        return {"CustomConstraint": self.check_name}

    def definition(self) -> dict[str, Json]:
        """See Constraint."""
        return {"custom_constraint": self.check_name}


Path = tuple[str | int, ...]
KINDS = ("length", "range", "modulo", "allowed_values", "allowed_pattern", "custom_constraint")


def parse_constraint(declared: Json, value_type: str, path: Path) -> Constraint:
    """A constraint as a template declares it: a map with one of KINDS, and perhaps a description.

    :raises TemplateError: it is not one, or does not fit the type.
    """
    if not isinstance(declared, Mapping):
        raise TemplateError(f"a constraint must be a map with one of: {', '.join(KINDS)}", path)
    kinds = [key for key in declared if key != "description"]
    if len(kinds) != 1 or kinds[0] not in KINDS:
        raise TemplateError(f"a constraint must have exactly one of: {', '.join(KINDS)}; has {kinds}", path)
    kind, description = kinds[0], declared.get("description")
    made = _PARSERS[kind](declared[kind], description, (*path, kind))
    if value_type not in made.types:
        raise TemplateError(f"{kind} does not fit a value of type {value_type}", path)
    return made


def _keys(body: Json, allowed: Sequence[str], path: Path) -> Mapping[str, Json]:
    if not isinstance(body, Mapping) or not body or set(body) - set(allowed):
        raise TemplateError(f"must be a map with keys of: {', '.join(allowed)}", path)
    return body


def _number(value: Json, path: Path, *, whole: bool) -> Json:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"must be a number, not {value!r}", path) from error
    if number == int(number):
        return int(number)
    if whole:
        raise TemplateError(f"must be a whole number, not {value!r}", path)
    return number


def _length(body: Json, description: str | None, path: Path) -> Constraint:
    keys = _keys(body, ("min", "max"), path)
    low, high = (_number(keys.get(key), (*path, key), whole=True) for key in ("min", "max"))
    return Length(description, _ordered(low, high, path)[0], high)


def _ordered(low: Json, high: Json, path: Path) -> tuple[Json, Json]:
    if low is not None and high is not None and low > high:
        raise TemplateError(f"min ({low}) is above max ({high})", path)
    return low, high


def _parse_range(body: Json, description: str | None, path: Path) -> Constraint:
    keys = _keys(body, ("min", "max"), path)
    low, high = (_number(keys.get(key), (*path, key), whole=False) for key in ("min", "max"))
    return Range(description, _ordered(low, high, path)[0], high)


def _modulo(body: Json, description: str | None, path: Path) -> Constraint:
    keys = _keys(body, ("step", "offset"), path)
    if "step" not in keys:
        raise TemplateError("needs a step", path)
    step = _number(keys["step"], (*path, "step"), whole=True)
    offset = _number(keys.get("offset", 0), (*path, "offset"), whole=True)
    if step == 0 or abs(offset) >= abs(step):
        raise TemplateError("step must not be 0, and offset must be smaller than step", path)
    return Modulo(description, step, offset)


def _allowed_values(body: Json, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, list) or not body:
        raise TemplateError("must be a list that is not empty", path)
    return AllowedValues(description, tuple(body))


def _allowed_pattern(body: Json, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, str):
        raise TemplateError(f"must be a regular expression, not {body!r}", path)
    try:
        re.compile(body)
    except re.error as error:
        raise TemplateError(f'"{body}" is not a regular expression: {error}', path) from error
    return AllowedPattern(description, body)


def _custom(body: Json, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, str) or not body:
        raise TemplateError(f"must be the name of a constraint, not {body!r}", path)
    return Custom(description, body)


_Parser = typing.Callable[[Json, str | None, Path], Constraint]
_PARSERS: Mapping[str, _Parser] = {
    "length": _length,
    "range": _parse_range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}
