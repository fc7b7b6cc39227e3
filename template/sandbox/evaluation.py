"""Evaluates requests; runs in a helper process only."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import yaql

from ...shapes import Json, JsonMap
from .channel import MEMORY
from .limits import HelperLimits

MOST_BITS = 1024
"""Bits of the largest whole number, as in templates: databases refuse much larger ones."""
MOST_TEXT = 500
"""Characters of an error's text."""
OBJECT = re.compile(r"<[\w.]*?(\w+) object at 0x[0-9a-f]+>")
"""Python's text of an object that has none of its own."""


class _NotJson(Exception):
    """The result has a part that JSON cannot hold."""


class Evaluation:
    """Answers requests.  Made once before helpers are forked, so that each has YAQL loaded.

    A request is a map with ``do``: ``yaql`` with expression and data, ``match`` with pattern and text (null
    only compiles it), or ``begin`` with pattern and texts.  An answer has one key: ``value``, or ``error``,
    ``unusable`` or ``limit`` with a text.
    """

    def __init__(self, limits: HelperLimits) -> None:
        options = {"yaql.limitIterators": limits.limit_iterators, "yaql.memoryQuota": limits.memory_quota}
        self._engine = yaql.YaqlFactory().create(options)
        self._context = yaql.create_context().create_child_context()
        any_value = yaql.language.specs.parameter("value", nullable=True)
        self._context.register_function(any_value(_text_of), name="str")
        self._most = limits.message
        self._do: Mapping[str, Callable[[JsonMap], Json]] = {
            "yaql": self._yaql,
            "match": _match,
            "begin": _begin,
        }
        # The parser reads its tables and the first evaluation resolves names: once for all helpers.
        self.answer(json.dumps({"do": "yaql", "expression": "$.data.select($ + 1)", "data": [1]}).encode())

    def answer(self, body: bytes) -> bytes:
        """Return the answer to a request; an exception of any class becomes a refusal."""
        try:
            request = json.loads(body)
            value = _plain(self._do[request["do"]](request))
            reply = json.dumps({"value": value}, allow_nan=False).encode()
        except MemoryError:
            return _refusal("limit", MEMORY)
        except RecursionError:
            return _refusal("error", "is nested too deeply")
        except Exception as error:  # noqa: BLE001 - top of the process: a user's expression may raise anything
            return _refusal("unusable" if isinstance(error, _NotJson) else "error", _words(error))
        if len(reply) > self._most:
            text = f"gives {len(reply)} bytes as JSON; the limit is {self._most}"
            return _refusal("limit", text)
        return reply

    def _yaql(self, request: JsonMap) -> Json:
        statement = self._engine(request["expression"])
        return statement.evaluate({"data": request["data"]}, self._context.create_child_context())


def _refusal(kind: str, text: str) -> bytes:
    return json.dumps({kind: text[:MOST_TEXT]}).encode()


def _words(error: Exception) -> str:
    text = OBJECT.sub(r"\1", str(error))
    if isinstance(error, _NotJson | re.error):
        return text
    if isinstance(error, ValueError) and "integer string conversion" in text:
        return "gives an integer with too many digits"
    if isinstance(error, AssertionError):
        return f"an assertion failed{text and ': ' + text}"
    if isinstance(error, StopIteration) or "StopIteration" in text:
        return "a sequence has no item where one is needed (StopIteration)"
    return text or type(error).__name__


def _text_of(value: object) -> str:
    """Return YAQL's text of a value, in place of its own ``str``, which writes addresses of objects.

    :raises ValueError: YAQL has no text for it.
    """
    if isinstance(value, Iterator):
        value = tuple(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    if OBJECT.search(text):
        raise ValueError(f"str() has no text for a {type(value).__name__}")
    return text


def _match(request: JsonMap) -> bool:
    compiled = re.compile(request["pattern"])
    return request["text"] is not None and compiled.fullmatch(request["text"]) is not None


def _begin(request: JsonMap) -> list[str]:
    compiled = re.compile(request["pattern"])
    return [text for text in request["texts"] if compiled.match(text)]


def _plain(value: Json) -> Json:
    """Return a result of YAQL, its generators, tuples, sets and frozen dicts, as JSON's types."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _NotJson(f"gives {value}, which JSON cannot represent")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise _NotJson(f"gives a whole number of more than {MOST_BITS} bits")
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset | Iterator):
        return [_plain(item) for item in value]
    raise _NotJson(
        f"gives a {type(value).__name__}, which JSON cannot represent; turn it into a string or number"
    )


def _key(key: object) -> str:
    if isinstance(key, str | int | float | bool | None):
        return str(key)
    raise _NotJson(f"gives a map with a {type(key).__name__} as a key; keys in JSON are strings")
