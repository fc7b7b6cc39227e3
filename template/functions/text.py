"""Functions that compute texts."""

import hashlib
import typing
import urllib.parse
from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from ..errors import TemplateError
from ..language import ANY_NUMBER, CFN_VERSIONS, CostMeter, Function, ListForm, MapForm, Version, measure
from ..scalars import written

_SCANNED = 1000
"""Characters that one step of work searches."""
_HASHED = 200
"""Characters that one step of work digests."""
_QUOTED = 10
"""Characters that one step of work quotes for a URL."""
_PIECE = 64
"""Bytes of a piece of a text, on average."""


def _is_list(value: object) -> typing.TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def list_join(args: Json, version: Version, budget: CostMeter) -> str:
    """Join ``[delimiter, list, …]``; None counts as empty."""
    if not _is_list(args) or len(args) < 2:
        raise TemplateError('must be of the form [delimiter, [item, item, …]], e.g. [", ", [a, b]]')
    if len(args) > 2 and not version.json_in_text:
        raise TemplateError(
            f"joins one list only in version {version.date}; several need 2015-10-15 or later"
        )
    delimiter, *lists = args
    if not isinstance(delimiter, str):
        raise TemplateError(f"the delimiter must be a string, not {written(delimiter)}")
    items: list[str] = []
    for part in lists:
        # As in Heat any empty value counts as an empty list in the versions that join several lists.
        nothing = part is None or (version.json_in_text and not part)
        if not nothing and not _is_list(part):
            raise TemplateError(f"must join lists, not {written(part)}")
        budget.step(len(part or ()))
        items.extend(_item_text(item, version, budget) for item in part or ())
    length = sum(map(len, items)) + len(delimiter) * max(0, len(items) - 1)
    budget.check_text(length)
    budget.take_text(length, is_ascii=delimiter.isascii() and all(map(str.isascii, items)))
    return delimiter.join(items)


def _item_text(item: Json, version: Version, budget: CostMeter) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if version.json_in_text and isinstance(item, Mapping | list | tuple):
        return budget.json_text(item)
    allowed = "strings, maps and lists" if version.json_in_text else "strings"
    raise TemplateError(f"items to join must be {allowed}, not {written(item)}")


def str_replace(args: Json, version: Version, budget: CostMeter) -> str:
    """Replace words: ``{template, params}``; longer words first, then by the alphabet."""
    return _replace(args, version, budget, strict=False, empty_allowed=True)


def str_replace_strict(args: Json, version: Version, budget: CostMeter) -> str:
    """Replace words as str_replace does; the text must contain each of them."""
    return _replace(args, version, budget, strict=True, empty_allowed=True)


def str_replace_vstrict(args: Json, version: Version, budget: CostMeter) -> str:
    """Replace words as str_replace_strict does; no value may be empty."""
    return _replace(args, version, budget, strict=True, empty_allowed=False)


def _replace(args: Json, version: Version, budget: CostMeter, *, strict: bool, empty_allowed: bool) -> str:
    if not isinstance(args, Mapping) or not {"template", "params"} <= set(args):
        raise TemplateError("must be a map with the keys template and params")
    text = args["template"]
    params = args["params"]
    if not isinstance(text, str):
        raise TemplateError(f"template must be a string, not {written(text)}")
    if not isinstance(params, Mapping):
        raise TemplateError(f"params must be a map, not {written(params)}")
    words = sorted(sorted(str(word) for word in params), key=len, reverse=True)
    if "" in words:
        raise TemplateError("params must not have an empty key")
    scan = 1 + len(text) // _SCANNED
    values: dict[str, str] = {}
    for word in params:
        budget.step(scan)
        values[str(word)] = _param_text(word, params[word], version, budget, empty_allowed=empty_allowed)
    counts = {word: count for word in words if (count := text.count(word))}
    _charge_replaced(text, counts, values, budget)
    parts = [text]
    for word in counts:
        budget.step(scan + len(parts) // 2)
        # An inserted value is not searched again: it is not among the pieces that are split.
        split = [part.split(word) for part in parts[::2]]
        if all(len(pieces) == 1 for pieces in split):
            counts[word] = 0
        parts = _interleaved(split, parts[1::2], values[word])
    missing = [word for word in words if not counts.get(word)]
    if strict and missing:
        raise TemplateError(f"these params are not in the template: {', '.join(missing)}")
    return "".join(parts)


def _charge_replaced(
    text: str, counts: Mapping[str, int], values: Mapping[str, str], budget: CostMeter
) -> None:
    """Charge the resulting text and its pieces.

    :param counts: how often each word occurs in the text.
    """
    length = len(text) + sum(count * len(values[word]) for word, count in counts.items())
    budget.check_text(length)
    budget.take_text(length, is_ascii=text.isascii() and all(values[word].isascii() for word in counts))
    budget.take(_PIECE * sum(counts.values()))


def _interleaved(split: list[list[str]], inserted: list[str], value: str) -> list[str]:
    """Return pieces of the text at even places, inserted values at odd ones."""
    parts: list[str] = []
    for index, pieces in enumerate(split):
        if index:
            parts.append(inserted[index - 1])
        for number, piece in enumerate(pieces):
            parts.extend([value, piece] if number else [piece])
    return parts


def _param_text(word: Json, value: Json, version: Version, budget: CostMeter, *, empty_allowed: bool) -> str:
    if not empty_allowed and (value is None or value == "" or (_is_list(value) and not value) or value == {}):
        raise TemplateError(f"param {word} has no value")
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    if version.json_in_text and isinstance(value, Mapping | list | tuple):
        return budget.json_text(value)
    raise TemplateError(f"param {word} must be a string or a number, not {written(value)}")


def str_split(args: Json, version: Version, budget: CostMeter) -> Json:
    """Split ``[delimiter, string]``, or take one part: ``[delimiter, string, index]``."""
    if not _is_list(args) or len(args) not in (2, 3):
        raise TemplateError('must be of the form [delimiter, string, index], e.g. [",", "a,b", 0]')
    delimiter = args[0]
    text = args[1]
    if not isinstance(delimiter, str) or not delimiter:
        raise TemplateError(f"the delimiter must be a string that is not empty, not {written(delimiter)}")
    if text is None:
        return None
    if not isinstance(text, str):
        raise TemplateError(f"can only split a string, not {written(text)}")
    budget.take_list(1 + text.count(delimiter), _PIECE)
    budget.take_text(len(text), is_ascii=text.isascii())
    parts = text.split(delimiter)
    if len(args) == 2:
        return parts
    try:
        return parts[int(args[2])]
    except (TypeError, ValueError) as error:
        raise TemplateError(f"the index must be a whole number, not {written(args[2])}") from error
    except IndexError as error:
        raise TemplateError(f"the index {args[2]} is not between 0 and {len(parts) - 1}") from error


def digest(args: Json, version: Version, budget: CostMeter) -> str:
    """Return the digest of the text of ``[algorithm, string]``."""
    if not _is_list(args) or len(args) != 2 or not all(isinstance(arg, str) for arg in args):
        raise TemplateError('must be of the form [algorithm, string], e.g. ["sha256", "text"]')
    algorithm, value = args
    budget.step(len(value) // _HASHED)
    try:
        data = value.encode("latin-1")
    except UnicodeEncodeError:
        data = value.encode(errors="surrogatepass")
    try:
        return str(hashlib.new(algorithm.lower(), data, usedforsecurity=False).hexdigest())
    except (TypeError, ValueError) as error:
        # TypeError: the digests of this algorithm have no fixed length.
        names = ", ".join(sorted(name for name in hashlib.algorithms_guaranteed if "shake" not in name))
        text = f'does not support the algorithm "{algorithm}"; supported are: {names}'
        raise TemplateError(text) from error


_URL_KEYS = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")


def make_url(args: Json, version: Version, budget: CostMeter) -> str:
    """Compose a URL of a map with its parts."""
    if not isinstance(args, Mapping):
        raise TemplateError(f"must be a map with keys of: {', '.join(_URL_KEYS)}")
    unknown = sorted(set(args) - set(_URL_KEYS))
    if unknown:
        raise TemplateError(f"has unknown keys: {', '.join(unknown)}; known: {', '.join(_URL_KEYS)}")
    for key in set(args) - {"port", "query"}:
        if not isinstance(args[key], str):
            raise TemplateError(f"{key} must be a string, not {written(args[key])}")
    query = args.get("query", {})
    if not isinstance(query, Mapping):
        raise TemplateError(f"query must be a map, not {written(query)}")
    scheme = args.get("scheme", "")
    if ":" in scheme:
        raise TemplateError(f'scheme must not contain ":", as "{scheme}" does')
    length = measure(args).bytes
    budget.step(length // _QUOTED)
    budget.take_text(3 * length)
    try:
        parts: tuple[str, str, str, str, str] = (
            scheme,
            _netloc(args),
            urllib.parse.quote(args.get("path", "")),
            urllib.parse.urlencode(query).replace("%2F", "/"),
            urllib.parse.quote(args.get("fragment", "")),
        )
        return urllib.parse.urlunsplit(parts)
    except UnicodeEncodeError as error:
        raise TemplateError("a part is not Unicode: it has half of a surrogate pair") from error


def _netloc(args: JsonMap) -> str:
    user = urllib.parse.quote(args.get("username", ""), safe="")
    password = urllib.parse.quote(args.get("password", ""), safe="")
    name = args.get("host", "")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    host = urllib.parse.quote(name, safe=":")
    netloc = f"[{host}]" if ":" in host else host
    if user or password:
        netloc = f"{user}:{password}@{netloc}" if password else f"{user}@{netloc}"
    return f"{netloc}:{_port(args['port'])}" if args.get("port") not in (None, "") else netloc


def _port(value: Json) -> int:
    try:
        port = int(value)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"port must be a number, not {written(value)}") from error
    if not 0 < port <= 65535:
        raise TemplateError(f"port must be between 1 and 65535, not {port}")
    return port


_JOIN = ListForm(2, 2, "[delimiter, [item, …]]")
_SPLIT = ListForm(2, 2, "[delimiter, string]")
_REPLACE = ListForm(2, 2, "[{word: value, …}, string]")


def _two(args: Json, form: ListForm) -> list[Json]:
    if (problem := form.problem(args)) is not None:
        raise TemplateError(problem)
    return list(args)


def cfn_join(args: Json, version: Version, budget: CostMeter) -> str:
    """Join ``[delimiter, list]``."""
    return list_join(_two(args, _JOIN), version, budget)


def cfn_split(args: Json, version: Version, budget: CostMeter) -> Json:
    """Split ``[delimiter, string]``; a list is split already, as the value of a CommaDelimitedList is."""
    delimiter, text = _two(args, _SPLIT)
    if isinstance(delimiter, str) and delimiter and isinstance(text, list):
        return text
    if text is None:
        raise TemplateError("can only split a string, not None")
    return str_split([delimiter, text], version, budget)


def cfn_replace(args: Json, version: Version, budget: CostMeter) -> str:
    """Replace words: ``[{word: value}, string]``."""
    words, text = _two(args, _REPLACE)
    if not isinstance(words, Mapping):
        raise TemplateError(f"the words to replace must be a map, not {written(words)}")
    if not isinstance(text, str):
        raise TemplateError(f"can only replace words of a string, not {written(text)}")
    return str_replace({"template": text, "params": words}, version, budget)


FUNCTIONS = (
    Function(
        "list_join",
        "Joins lists of strings into one string.",
        "2013-05-23",
        form=ListForm(2, ANY_NUMBER, "[delimiter, list, …]"),
        apply=list_join,
    ),
    Function(
        "str_replace",
        "Replaces words of a text by values.",
        "2013-05-23",
        form=MapForm(("template", "params")),
        apply=str_replace,
    ),
    Function(
        "str_replace_strict",
        "Like str_replace; the text must contain every word.",
        "2017-02-24",
        form=MapForm(("template", "params")),
        apply=str_replace_strict,
    ),
    Function(
        "str_replace_vstrict",
        "Like str_replace_strict; no value may be empty.",
        "2017-09-01",
        form=MapForm(("template", "params")),
        apply=str_replace_vstrict,
    ),
    Function(
        "str_split",
        "Splits a string into a list, or takes one of its parts.",
        "2015-10-15",
        form=ListForm(2, 3, "[delimiter, string, index]"),
        apply=str_split,
    ),
    Function(
        "digest",
        "The digest of a text by a hash algorithm.",
        "2015-04-30",
        form=ListForm(2, 2, "[algorithm, string]"),
        apply=digest,
    ),
    Function(
        "make_url",
        "Composes a URL from its parts, quoted where necessary.",
        "2017-09-01",
        form=MapForm(),
        apply=make_url,
    ),
    Function(
        "Fn::Join",
        "Joins a list of strings into one string.",
        "2013-05-23",
        form=_JOIN,
        apply=cfn_join,
        until="2014-10-16",
        cfn=CFN_VERSIONS,
    ),
    Function(
        "Fn::Split",
        "Splits a string into a list.",
        "2013-05-23",
        form=_SPLIT,
        apply=cfn_split,
        until="2014-10-16",
        cfn=CFN_VERSIONS,
    ),
    Function(
        "Fn::Replace",
        "Replaces words of a text by values.",
        "2013-05-23",
        form=_REPLACE,
        apply=cfn_replace,
        until="2014-10-16",
        cfn=CFN_VERSIONS,
    ),
)
