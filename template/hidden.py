"""Names of the parameters that a tree of stacks hides: one that any template of the tree declares hidden.

They are found in texts before anything is compiled: in the template, in the files and in all texts in them.
The template of a nested stack may be a property or the value of a parameter.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from .budget import Budget
from .errors import TemplateError
from .load import load_document
from .model import Json
from .scalars import boolean

_KEY = re.compile(r"""hidden["']?\s*:""")
"""Text that each template contains that hides a parameter."""

_READ = 2
"""Characters that one step of work reads."""


def hidden_names(
    documents: Iterable[Json], *, depth: int, max_bytes: int = 0, budget: Budget | None = None
) -> frozenset[str]:
    """Return the names of parameters that a template among the documents, or in a text of theirs, hides.

    :param documents: maps and texts; those that are no templates are ignored.
    :param depth: of texts inside of texts.
    :param max_bytes: longer texts are refused as templates, and not read; 0: no limit.
    :param budget: of the request.
    :raises LimitExceeded: it takes too long to read them.
    """
    found: set[str] = set()
    seen: set[str] = set()
    level: list[Json] = list(documents)
    for _ in range(depth + 1):
        texts = {text for text in _texts(level) if text not in seen and _KEY.search(text)}
        found.update(name for item in level if isinstance(item, Mapping) for name in _declared(item))
        texts = {text for text in texts if not max_bytes or len(text) <= max_bytes}
        seen |= texts
        if budget is not None:
            budget.step(sum(map(len, texts)) // _READ)
        level = [parsed for text in sorted(texts) if (parsed := _parsed(text)) is not None]
        if not level:
            break
    return frozenset(found)


def _texts(level: Iterable[Json]) -> Iterator[str]:
    stack = list(level)
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)


def _parsed(text: str) -> Json:
    try:
        return load_document(text)
    except TemplateError:
        return None


def _declared(document: Mapping[str, Json]) -> Iterator[str]:
    declarations = document.get("parameters")
    for name, body in declarations.items() if isinstance(declarations, Mapping) else ():
        if isinstance(body, Mapping) and _is_true(body.get("hidden")):
            yield str(name)


def _is_true(value: Json) -> bool:
    try:
        return value is not None and boolean(value)
    except ValueError:
        return False  # The template is refused where it is compiled.
