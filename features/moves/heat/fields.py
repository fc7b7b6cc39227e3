"""The fields of rows and answers of Heat's, each read as the type that it must have.

Heat checks little of what it stores, and users reach some of it: an adoption stores whatever metadata a
document has.  So no value is used before its type is known, and a wrong one is named by its place.
"""

import math
import typing
from collections.abc import Callable, Collection, Iterable, Mapping

from ....shapes import Json, JsonMap

LARGEST = 2**62
"""Numbers above this one are in none of the columns."""
MOST_MINUTES = 2**31 - 1
"""The longest timeout that both databases can store."""


class Damaged(Exception):
    """A field has a value that it cannot have; the text names its place, and not the value."""


class NoJson:
    """The place of a stored text that is no JSON."""


NO_JSON = NoJson()
T = typing.TypeVar("T")
Row = typing.TypeVar("Row")


class HeatFields:
    """The fields of one row or answer.

    :param values: the values by name.
    :param place: returns the place of a field, such as ``stack.timeout, id 5``.
    :param subject: what the row is about, in front of the texts of errors; "": the stack itself.
    """

    def __init__(
        self, values: Mapping[str, typing.Any], place: Callable[[str], str], subject: str = ""
    ) -> None:
        self._values = values
        self._place = place
        self._subject = subject

    def about(self, subject: str) -> "HeatFields":
        """Return the fields with another subject."""
        return HeatFields(self._values, self._place, subject)

    def all(self) -> JsonMap:
        """Return all fields, whose types are not known."""
        return dict(self._values)

    def damaged(self, name: str, state: str) -> Damaged:
        """Return the error of a field.

        :param state: what is wrong with it, such as ``is no number``.
        """
        subject = f"{self._subject}: " if self._subject else ""
        return Damaged(f"{subject}its {name.replace('_', ' ')} {state} ({self._place(name)})")

    def text(self, name: str) -> str:
        """Return a text that must be there.

        :raises Damaged: it is missing, empty or no text.
        """
        value = self.text_or_none(name)
        if not value:
            raise self.damaged(name, "is missing")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a text; None: there is none.

        :raises Damaged: it is no text.
        """
        return self._typed(name, str, "is not a text")

    def text_or_empty(self, name: str) -> str:
        """Return a text; "": there is none.

        :raises Damaged: it is no text.
        """
        return self.text_or_none(name) or ""

    def one_of(self, name: str, known: Collection[str]) -> str:
        """Return a text that is one of some.

        :raises Damaged: it is missing, or another one.
        """
        value = self.text(name)
        if value not in known:
            raise self.damaged(name, "is not one that Heat has")
        return value

    def number(self, name: str) -> int:
        """Return a number that must be there.

        :raises Damaged: it is missing, or no number.
        """
        value = self.number_or_none(name)
        if value is None:
            raise self.damaged(name, "is missing")
        return value

    def number_or_none(self, name: str) -> int | None:
        """Return a number; None: there is none.

        :raises Damaged: it is no number.
        """
        value = self._typed(name, int, "is not a number")
        if isinstance(value, bool) or (value is not None and abs(value) > LARGEST):
            raise self.damaged(name, "is not a number")
        return value

    def minutes(self, name: str) -> int | None:
        """Return the minutes of a timeout; None: there is none.

        :raises Damaged: it is no number, or none of a timeout.
        """
        value = self.number_or_none(name)
        if value is not None and not 0 <= value <= MOST_MINUTES:
            raise self.damaged(name, "is not one that a stack can have")
        return value

    def flag(self, name: str) -> bool:
        """Return whether a flag is set; one that is missing is not.

        :raises Damaged: it is no flag.
        """
        value = self._values.get(name)
        if value not in (None, False, True):
            raise self.damaged(name, "is neither true nor false")
        return bool(value)

    def instant(self, name: str) -> float | None:
        """Return the seconds since the epoch; None: there are none.

        :raises Damaged: it is no time.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.damaged(name, "is not a time")
        return float(value)

    def map(self, name: str) -> JsonMap | None:
        """Return a JSON object; None: there is none.

        :raises Damaged: it is no JSON, or no object.
        """
        return self._typed(name, dict, "is not a map")

    def list(self, name: str) -> typing.Sequence[Json]:
        """Return a JSON list; empty: there is none.

        :raises Damaged: it is no JSON, or no list.
        """
        return self._typed(name, list, "is not a list") or ()

    def json(self, name: str) -> Json:
        """Return a JSON value.

        :raises Damaged: it is no JSON.
        """
        value = self._values.get(name)
        if value is NO_JSON:
            raise self.damaged(name, "is not JSON")
        return value

    def _typed(self, name: str, kind: type[T], state: str) -> T | None:
        value = self.json(name)
        if value is not None and not isinstance(value, kind):
            raise self.damaged(name, state)
        return value


def sound(rows: Iterable[Row], read: Callable[[Row], T], notes: list[str]) -> list[T]:
    """Return what can be read of rows.

    :param notes: gets a line for each row that stays behind, because it is damaged.
    """
    items = []
    for row in rows:
        try:
            items.append(read(row))
        except Damaged as error:
            notes.append(f"{error}: it stays")
    return items


def numbers(fields: HeatFields, name: str) -> list[int]:
    """Return a list of numbers.

    :raises Damaged: it is none.
    """
    values = fields.list(name)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise fields.damaged(name, "is not a list of numbers")
    return list(values)


def texts_by_name(fields: HeatFields, name: str, value: Json) -> dict[str, str]:
    """Return a map of texts.

    :raises Damaged: it is none.
    """
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise fields.damaged(name, "has an item that is not a text")
    return dict(value)


def check_sections(fields: HeatFields, name: str, document: JsonMap, kinds: Mapping[str, type]) -> None:
    """Check the sections of a document, each of which may be missing.

    :raises Damaged: one of them is of another type.
    """
    for section, kind in kinds.items():
        if document.get(section) is not None and not isinstance(document[section], kind):
            raise fields.damaged(name, f"has {section} of a wrong type")
