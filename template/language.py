"""The template language as values: what a version allows, what a function is, and what it may charge.

A leaf: the modules that implement functions import it, and the table of all functions imports those.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Json = typing.Any


@dataclass(frozen=True)
class Version:
    """One version of HOT.

    :ivar date: its name; `alias` is the name of the release that brought it.
    """

    date: str
    alias: str | None
    functions: frozenset[str]
    condition_functions: frozenset[str]

    @property
    def has_conditions(self) -> bool:
        """It has the keys of 2016-10-14: conditions, external_id, lower-case deletion policies."""
        return self.date >= "2016-10-14"

    @property
    def attr_path_inside(self) -> bool:
        """get_attr of the resource alone gives all attributes."""
        return self.date >= "2015-10-15"

    @property
    def json_in_text(self) -> bool:
        """str_replace and list_join put maps and lists in as JSON; list_join takes several lists."""
        return self.date >= "2015-10-15"

    @property
    def repeat_maps(self) -> bool:
        """The function repeat iterates over the keys of maps, too."""
        return self.date >= "2016-10-14"

    @property
    def repeat_permutations(self) -> bool:
        """The function repeat can iterate over several lists in parallel."""
        return self.date >= "2017-09-01"

    @property
    def nullable_if(self) -> bool:
        """The function if without a third argument leaves the item out."""
        return self.date >= "2021-04-16"

    @property
    def parameter_modulo(self) -> bool:
        """Parameters can have the constraint modulo."""
        return self.date >= "2017-02-24"

    @property
    def parameter_tags(self) -> bool:
        """Parameters have tags."""
        return self.date >= "2018-03-02"


class CostMeter(typing.Protocol):
    """The budget of a request, as a function charges it; see `Budget`.

    :raises LimitExceeded: by each method that charges, when the budget is spent.
    """

    def step(self, count: int = 1) -> None:
        """Charge work, before it is done."""

    def take(self, size: int) -> None:
        """Charge bytes, before they are allocated."""

    def take_text(self, characters: int, *, is_ascii: bool = True) -> None:
        """Charge a text, before it is made."""

    def take_list(self, length: int, each: int = 0) -> None:
        """Charge a list of items of `each` bytes, before it is made."""

    def take_value(self, value: Json, depth: int = 0) -> None:
        """Charge a value that exists already."""

    def check_text(self, characters: int) -> None:
        """Refuse a text that is too long to be made; charges nothing."""

    def json_text(self, value: Json) -> str:
        """Return a map or list as JSON, charged."""

    def spend(self, seconds: float) -> None:
        """Charge processor time of another process."""

    def seconds_left(self) -> float:
        """Return the processor time that is left."""


@dataclass(frozen=True)
class ListForm:
    """The argument of a function that takes a list of `least` to `most` items; `text` shows it to users."""

    least: int
    most: int
    text: str

    def problem(self, argument: Json) -> str | None:
        """Return why the argument does not have the form, None if it has."""
        if isinstance(argument, list) and self.least <= len(argument) <= self.most:
            return None
        return f"must be of the form {self.text}"


@dataclass(frozen=True)
class MapForm:
    """The argument of a function that takes a map with at least these keys."""

    keys: tuple[str, ...] = ()

    def problem(self, argument: Json) -> str | None:
        """Return why the argument does not have the form, None if it has."""
        if isinstance(argument, Mapping) and set(self.keys) <= set(argument):
            return None
        return f"must be a map{self.keys and ' with the keys ' + ' and '.join(self.keys) or ''}"


ANY_NUMBER = 1_000_000
"""Items of a list form without an upper bound."""

Apply = Callable[[Json, Version, CostMeter], Json]


@dataclass(frozen=True)
class Function:
    """A function of the template language.

    :ivar description: one sentence; the API lists it.
    :ivar since: date of the first version that has it; None: conditions alone have it.
    :ivar in_conditions_since: date of the first version that has it in conditions; None: none has.
    :ivar form: of the argument, checked at compile time while the argument cannot be evaluated yet.
    :ivar apply: computes the value from the evaluated argument; None for a function that needs more than its
        argument, which fold.py, conditions.py or residual.py evaluates.  It charges a text before it makes
        it, and whatever is larger than the argument; the caller charges a value of another type.  It raises
        TemplateError with a message that says what would be right.
    """

    name: str
    description: str
    since: str | None
    in_conditions_since: str | None = None
    form: ListForm | MapForm | None = None
    apply: Apply | None = None
