"""The names of parameters that a tree of stacks hides."""

import re
from collections.abc import Iterable, Iterator, Mapping

from ..shapes import Json, JsonMap
from .budget import Budget
from .errors import TemplateError
from .formats import is_no_echo
from .load import load_document
from .scalars import boolean

_KEY = re.compile(r"""(?:hidden|NoEcho)["']?\s*:""")
"""Text that each template contains that hides a parameter."""

_READ = 2
"""Characters that one step of work reads."""


def hidden_names(
    documents: Iterable[object], *, depth: int, max_bytes: int = 0, budget: Budget | None = None
) -> frozenset[str]:
    """Return the names of parameters that a template among the documents, or in a text of theirs, hides.

    A name that any template of a tree of stacks declares hidden is hidden in all of the tree.  The names are
    found in texts before anything is compiled: in the template, in the files and in all texts in them.  The
    template of a nested stack may be a property or the value of a parameter.

    :param documents: maps and texts; those that are no templates are ignored.
    :param depth: levels of texts inside of texts.
    :param max_bytes: longer texts are refused as templates, and not read; 0: no limit.
    :param budget: the budget of the request.
    :raises LimitExceeded: the documents take too long to read.
    """
    names: set[str] = set()
    visited: set[str] = set()
    level: list[object] = list(documents)
    for _ in range(depth + 1):
        texts = {text for text in _texts(level) if text not in visited and _KEY.search(text)}
        names.update(name for item in level if isinstance(item, Mapping) for name in _declared(item))
        texts = {text for text in texts if not max_bytes or len(text) <= max_bytes}
        visited |= texts
        if budget is not None:
            budget.step(sum(map(len, texts)) // _READ)
        level = [parsed for text in sorted(texts) if (parsed := _parsed(text)) is not None]
        if not level:
            break
    return frozenset(names)


def _texts(level: Iterable[object]) -> Iterator[str]:
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


def _declared(document: JsonMap) -> Iterator[str]:
    for section, is_hidden in (("parameters", _is_hidden), ("Parameters", is_no_echo)):
        declarations = document.get(section)
        for name, body in declarations.items() if isinstance(declarations, Mapping) else ():
            if isinstance(body, Mapping) and is_hidden(body):
                yield str(name)


def _is_hidden(body: JsonMap) -> bool:
    try:
        return body.get("hidden") is not None and boolean(body["hidden"])
    except ValueError:
        return False  # The template is refused where it is compiled.
