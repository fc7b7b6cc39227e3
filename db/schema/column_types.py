"""The types of columns, and of parameters with lists: alike on all databases, as far as these are."""

import json
import re
import typing
from collections.abc import Callable
from contextvars import ContextVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from ..errors import DamagedRow, TooMuchToRead


class LongestText(sa.Text):
    """MariaDB's type without the limit of 64 KiB; SQLAlchemy's own class would load the dialect."""

    __visit_name__ = "LONGTEXT"


LongText = sa.Text().with_variant(LongestText(), "mysql", "mariadb")
RowId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Instant: sa.Double[float] = sa.Double()


class Meter:
    """Counts the characters of the long values that are read.

    :param most: characters in all.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0

    def charge(self, size: int) -> None:
        """Count a value.

        :raises TooMuchToRead: the values read so far have more characters than allowed.
        """
        self._total += size
        if self._total > self._most:
            raise TooMuchToRead(self._most)


METER: ContextVar[Meter | None] = ContextVar("meter", default=None)
"""The meter of what is read in this context; see engine.metered."""


def _metered(text: str) -> str:
    if (meter := METER.get()) is not None:
        meter.charge(len(text))
    return text


Processor = Callable[[str | None], typing.Any]
"""Returns the value of a stored text."""
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
_DECODER = json.JSONDecoder()
"""Made once: ``json.dumps`` with an option makes an encoder for each value."""


def _decoded(text: str) -> typing.Any:
    """Return the value of a JSON text; compact ones, which have no space at their ends, take half the time.

    :raises ValueError: it is no JSON.
    """
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return _DECODER.decode(text)
    return value if end == len(text) else _DECODER.decode(text)


class JsonText(sa.types.TypeDecorator[typing.Any]):
    """A JSON value as compact text; SQL NULL is None.

    :param shape: the kind that all values of the column have: dict or list; None: they differ.
    """

    impl = LongText
    cache_ok = True

    def __init__(self, shape: type[dict[str, typing.Any]] | type[list[typing.Any]] | None = None) -> None:
        super().__init__()
        self.shape = shape

    def process_bind_param(self, value: typing.Any, dialect: Dialect) -> str | None:
        return None if value is None else _ENCODE(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Processor:
        """Return the function that decodes a stored text.

        It raises DamagedRow if the text is no JSON, or its value has another kind than all values have.
        SQLAlchemy calls it itself: a method between them is a tenth of the time of a long list.
        """
        shape: type = self.shape or object

        def decode(text: str | None) -> typing.Any:
            if text is None:
                return None
            try:
                value = _decoded(_metered(text))
            except ValueError as error:
                raise DamagedRow(f"A stored value is not JSON: {error}") from error
            if not isinstance(value, shape):
                kind = type(value).__name__
                raise DamagedRow(f"A stored value is a {kind} where a {shape.__name__} is needed")
            return value

        return decode


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class CleanText(sa.types.TypeDecorator[str]):
    """A long text from outside, such as a plugin's error message.

    A character that some database refuses (NUL, half of a surrogate pair) becomes U+FFFD: a strange message
    must not make its resource's failure impossible to store.
    """

    impl = LongText
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text without the characters that a database refuses."""
        return None if value is None else _UNSTORABLE.sub("\ufffd", value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Processor:
        """Return the function that counts a stored text, see JsonText."""

        def text_of(text: str | None) -> str | None:
            return None if text is None else _metered(text)

        return text_of


class JsonArray(sa.types.TypeDecorator[typing.Any]):
    """A list as a JSON text, for SQLite's json_each."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: typing.Any, dialect: Dialect) -> str:
        return json.dumps(value)


class ArrayText(sa.types.TypeDecorator[typing.Any]):
    """A list of ids as the text of an array: psycopg takes longer to convert a list."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: typing.Any, dialect: Dialect) -> str:
        return f"{{{','.join(map(_array_item, value))}}}"


def _array_item(value: int | str) -> str:
    if isinstance(value, int):
        return str(value)
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
