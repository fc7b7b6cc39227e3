"""Parsing of the constraints that a template declares."""

import typing
from collections.abc import Mapping, Sequence

from ..shapes import Json, JsonMap
from . import custom_checks
from .constraints import AllowedPattern, AllowedValues, Constraint, Custom, Length, Modulo, Range
from .errors import LimitExceeded, TemplateError
from .language import Path
from .sandbox import evaluator
from .sandbox.errors import EvaluationError, LimitReached
from .scalars import number, written
from .suggestions import all_near

KINDS = ("length", "range", "modulo", "allowed_values", "allowed_pattern", "custom_constraint")


def parse_constraint(
    declared: object, value_type: str, path: Path, kinds: Sequence[str] = KINDS
) -> Constraint:
    """Parse a constraint of a template: a map with one of KINDS, and perhaps a description.

    :param kinds: the kinds that the template's version has.
    :raises TemplateError: it is no constraint, or does not fit the type.
    """
    if not isinstance(declared, Mapping):
        raise TemplateError(f"a constraint must be a map with one of: {', '.join(kinds)}", path)
    keys = [str(key) for key in declared if key != "description"]
    if len(keys) != 1 or keys[0] not in kinds:
        has = ", ".join(keys) or "none"
        raise TemplateError(f"a constraint must have exactly one of: {', '.join(kinds)}; has: {has}", path)
    kind = keys[0]
    description = None if declared.get("description") is None else str(declared["description"])
    constraint = _PARSERS[kind](declared[kind], description, (*path, kind))
    if value_type not in constraint.types:
        raise TemplateError(f"{kind} does not fit a value of type {value_type}", path)
    return constraint


def _keys(body: object, allowed: Sequence[str], path: Path) -> JsonMap:
    if not isinstance(body, Mapping) or not body or set(body) - set(allowed):
        raise TemplateError(f"must be a map with keys of: {', '.join(allowed)}", path)
    return body


def _bound(value: Json, path: Path, *, whole: bool) -> Json:
    if value is None:
        return None
    try:
        bound = number(value)
    except ValueError as error:
        raise TemplateError(f"must be a number, not {written(value)}", path) from error
    if bound == int(bound):
        return int(bound)
    if whole:
        raise TemplateError(f"must be a whole number, not {written(value)}", path)
    return bound


def _min_max(body: Json, path: Path, *, whole: bool) -> tuple[Json, Json]:
    keys = _keys(body, ("min", "max"), path)
    low, high = (_bound(keys.get(key), (*path, key), whole=whole) for key in ("min", "max"))
    if low is None and high is None:
        raise TemplateError("needs a min, a max, or both", path)
    if low is not None and high is not None and low > high:
        raise TemplateError(f"min ({low}) is above max ({high})", path)
    return low, high


def _length(body: object, description: str | None, path: Path) -> Constraint:
    return Length(description, *_min_max(body, path, whole=True))


def _parse_range(body: object, description: str | None, path: Path) -> Constraint:
    return Range(description, *_min_max(body, path, whole=False))


def _modulo(body: object, description: str | None, path: Path) -> Constraint:
    keys = _keys(body, ("step", "offset"), path)
    step, offset = (_bound(keys.get(key), (*path, key), whole=True) for key in ("step", "offset"))
    if step is None or offset is None:
        raise TemplateError("must have a step and an offset", path)
    if abs(offset) >= abs(step):
        raise TemplateError("step must not be 0, and offset must be smaller than step", path)
    if step * offset < 0:
        raise TemplateError("step and offset must both be positive or both negative", path)
    return Modulo(description, step, offset)


def _allowed_values(body: object, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, list) or not body:
        raise TemplateError("must be a list that is not empty", path)
    return AllowedValues(description, tuple(body))


def _allowed_pattern(body: object, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, str):
        raise TemplateError(f"must be a regular expression, not {written(body)}", path)
    try:
        evaluator.current().match(body, None)
    except LimitReached as error:
        raise LimitExceeded(f'the regular expression "{body:.200}" {error}', path) from error
    except EvaluationError as error:
        raise TemplateError(f'"{body:.200}" is not a regular expression: {error}', path) from error
    return AllowedPattern(description, body)


def _custom(body: object, description: str | None, path: Path) -> Constraint:
    if not isinstance(body, str) or not body:
        raise TemplateError(f"must be the name of a constraint, not {written(body)}", path)
    if body not in custom_checks.KNOWN:
        hint = ", ".join(all_near(body, custom_checks.KNOWN, most=3))
        raise TemplateError(f'there is no constraint "{body}"{hint and f"; there are: {hint}"}', path)
    return Custom(description, body)


_Parser = typing.Callable[[object, str | None, Path], Constraint]
_PARSERS: Mapping[str, _Parser] = {
    "length": _length,
    "range": _parse_range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}
