"""Loading of YAML and JSON documents from untrusted users."""

import io
import json
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from ..shapes import Json, JsonMap
from .budget import Budget
from .errors import LimitExceeded, TemplateError
from .parsed import ProjectDocuments
from .scalars import kind_of, written

MAX_NODES = 500_000
"""Nodes of a document after its aliases are expanded; a longer text may have one for each character."""

MAX_DEPTH = 100
"""Levels of maps and lists inside each other; recursive functions over documents rely on it."""

_MERGE = "tag:yaml.org,2002:merge"


_MAX_BITS = 1024
"""Bits of the largest whole number: Python refuses to print much longer ones, and databases refuse them."""
_MAX_DIGITS = 1200
"""Characters of a whole number of so many bits in any notation.  YAML's numbers to the base of 60 would
cost the square of their length."""
_MAX_DIRECTIVES = 10
"""Lines like ``%TAG`` before a document: libyaml compares each with each."""
_SHARE = 16
"""Characters of a text that count as one node: a text that many aliases name is stored as often."""
_EVENT = 5
"""Steps of work that one node of a YAML document takes."""
_TOO_DEEP = "exceeded maximum nesting depth"
"""The problem of 1000 levels for libyaml from 0.2.6 on, whose scanner runs ahead of the events."""
_READ = 50
"""Characters of a JSON document that one step of work reads."""


class _Loader(yaml.CSafeLoader):
    """Loads YAML as HOT needs it: dates stay strings and keys are strings, of equal ones the last counts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[typing.Hashable, Json]:
        for key_node, _ in node.value:
            is_merge = key_node.tag == _MERGE
            key = None if is_merge else self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a string", key_node.start_mark
                )
        self.flatten_mapping(node)
        return {
            _key_text(self.construct_object(key, deep=True)): self.construct_object(value, deep=deep)
            for key, value in node.value
        }


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _as_string(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _whole_number(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _MAX_DIGITS:
        problem = f"a number of more than {_MAX_BITS} bits"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return int(loader.construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_string)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def load_template(
    document: str | JsonMap,
    *,
    max_bytes: int = 0,
    budget: Budget | None = None,
    parsed: ProjectDocuments | None = None,
) -> dict[str, Json]:
    """Load a template as a dict.

    :param document: its text, or the map that a client has parsed; the size of a map is that of its JSON.
    :param max_bytes: refuse longer texts; 0: no limit.
    :param budget: the budget of the request; None: `max_bytes` is the only limit.
    :param parsed: the documents that the project has sent before; None: the text is parsed.
    :raises TemplateError: the document is not YAML, or not a mapping; with line and column.
    :raises LimitExceeded: the document is too long, too deep, or expands to too much.
    """
    if isinstance(document, Mapping):
        check_tree(document, "template")
    elif not isinstance(document, str):
        raise TemplateError(f"the template must be a text or a mapping, not {kind_of(document)}")
    if max_bytes:
        text = document if isinstance(document, str) else json.dumps(document)
        size = len(text.encode(errors="replace"))
        if size > max_bytes:
            raise LimitExceeded(f"the template has {size} bytes, above the limit of {max_bytes}")
    if isinstance(document, Mapping):
        return dict(document)
    return load_document(document, "template", budget, parsed)


@dataclass
class LoadedTemplates:
    """Templates of one request: equal texts are loaded once.

    :ivar budget: the request's.
    :ivar max_bytes: longer texts are refused, whoever asks for them; 0: no limit.
    :ivar parsed: the documents that the project has sent before; None: each text is parsed.
    """

    budget: Budget
    max_bytes: int = 0
    parsed: ProjectDocuments | None = None
    _loaded: dict[str, dict[str, Json]] = field(default_factory=dict, init=False)

    def load(self, document: str | JsonMap, *, generated: bool = False) -> dict[str, Json]:
        """Load a template as `load_template` does.

        :param generated: the document is a map that a type has made: its size is not limited.
        :raises TemplateError, LimitExceeded: the errors of `load_template`.
        """
        if not isinstance(document, str):
            most = 0 if generated else self.max_bytes
            return load_template(document, max_bytes=most, budget=self.budget)
        if document not in self._loaded:
            self._loaded[document] = load_template(
                document, max_bytes=self.max_bytes, budget=self.budget, parsed=self.parsed
            )
        return self._loaded[document]


def load_document(
    text: str,
    noun: str = "document",
    budget: Budget | None = None,
    parsed: ProjectDocuments | None = None,
) -> dict[str, Json]:
    """Load a YAML mapping.

    :param noun: name for the errors.
    :param budget: the budget of the request; None: only the document's own limits count.
    :param parsed: the documents that the project has sent before; None: the text is parsed.
    :raises TemplateError: the document is not YAML, not a mapping, or empty.
    :raises LimitExceeded: the document is too deep, or expands to too much.
    """
    if budget is not None:
        budget.step(len(text) // _READ)
    value = _json(text) if text.lstrip().startswith("{") else None
    if value is None:
        value = _yaml(text, noun, budget, parsed)
    if value is None:
        raise TemplateError(f"the {noun} is empty")
    if not isinstance(value, dict):
        raise TemplateError(f"the {noun} must be a mapping, not {kind_of(value)}")
    check_tree(value, noun)
    return value


def repeated_keys(text: str) -> Iterator[tuple[str, int]]:
    """Yield the keys that a map has more than once, each with its line, counted from 1.

    :param text: the text of a document that `load_document` has taken.
    """
    loader = _Loader(text)
    try:
        unseen = [loader.get_single_node()]
        visited: set[int] = set()
        while unseen:
            node = unseen.pop()
            if not isinstance(node, yaml.CollectionNode) or id(node) in visited:
                continue
            visited.add(id(node))
            if isinstance(node, yaml.MappingNode):
                yield from _repeated_in(node)
                unseen += [value for _, value in reversed(node.value)]
            else:
                unseen += reversed(node.value)
    finally:
        loader.dispose()


def _repeated_in(node: yaml.MappingNode) -> Iterator[tuple[str, int]]:
    names: set[str] = set()
    for key, _ in node.value:
        if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
            if key.value in names:
                yield key.value, key.start_mark.line + 1
            names.add(key.value)


def _json(text: str) -> Json:
    """Parse JSON; return None where it is not JSON.

    JSON is not a subset of YAML: pairs of surrogates, tabs and long keys differ.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _yaml(text: str, noun: str, budget: Budget | None, parsed: ProjectDocuments | None) -> Json:
    if parsed is None:
        return _parsed(text, noun, budget)[0]
    if (document := parsed.find(text)) is None:
        tree, events = _parsed(text, noun, budget)
        parsed.keep(text, tree, events)
        return tree
    # The same work as if it were parsed: whether a request is within its budget is no matter of luck.
    if budget is not None:
        budget.step(document.events * _EVENT)
    return document.tree


def _parsed(text: str, noun: str, budget: Budget | None) -> tuple[Json, int]:
    """Parse YAML; return the document, and how many events that took."""
    try:
        _refuse_directives(text, noun)
        events = _refuse_depth(text, noun, budget)
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            _refuse_bombs(root, noun, max(MAX_NODES, len(text)))
            return None if root is None else loader.construct_document(root), events
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.problem == _TOO_DEEP:
            raise _too_deep(noun, mark) from error
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = ", ".join(text for text in (error.context, error.problem) if text)
        raise TemplateError(f"the {noun} is not valid YAML{where}: {problem}") from error
    except TemplateError:
        raise
    except RecursionError as error:
        raise LimitExceeded(f"the {noun} merges maps through too many others") from error
    except (yaml.YAMLError, ValueError) as error:
        raise TemplateError(f"the {noun} is not valid YAML: {error}") from error


def _refuse_directives(text: str, noun: str) -> None:
    """Refuse a document with so many directives that they take long to read.

    :raises LimitExceeded: the document has too many directives.
    """
    documents = 0
    for line in io.StringIO(text.removeprefix("\ufeff"), newline=None):
        if line.startswith("%"):
            documents += 1
        elif line.strip() and not line.startswith("#"):
            return
        if documents > _MAX_DIRECTIVES:
            raise LimitExceeded(f"the {noun} has more than {_MAX_DIRECTIVES} lines that begin with %")


def _refuse_depth(text: str, noun: str, budget: Budget | None) -> int:
    """Refuse a document so deep that composing it would overflow the C stack and kill the process.

    :returns: how many events it has.
    """
    depth = events = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        events += 1
        if budget is not None:
            budget.step(_EVENT)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(noun, event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return events


def _too_deep(noun: str, mark: Json) -> LimitExceeded:
    """Return the refusal; `mark` is yaml's or libyaml's, which have no type in common, or None."""
    where = f" in line {mark.line + 1}" if mark else ""
    return LimitExceeded(f"the {noun} is deeper than {MAX_DEPTH} levels{where}")


def _refuse_bombs(root: yaml.Node | None, noun: str, limit: int) -> None:
    """Refuse a document whose aliases expand to too many nodes, without expanding them."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, above: frozenset[int]) -> int:
        if id(node) in above:
            raise TemplateError(f"the {noun} has an alias inside its own anchor")
        if id(node) not in sizes:
            inner = above | {id(node)}
            if isinstance(node, yaml.MappingNode):
                total = sum(size(k, inner) + size(v, inner) for k, v in node.value)
            elif isinstance(node, yaml.SequenceNode):
                total = sum(size(item, inner) for item in node.value)
            else:
                total = len(node.value) // _SHARE
            sizes[id(node)] = total + 1
            if total > limit:
                raise LimitExceeded(f"the {noun} expands to more than {limit} nodes through its aliases")
        return sizes[id(node)]

    if root is not None:
        size(root, frozenset())


def check_tree(value: object, noun: str) -> None:
    """Refuse a value that is not JSON, or deeper than MAX_DEPTH.

    :raises LimitExceeded: the value is too deep.
    :raises TemplateError: the value holds a number that is not finite, or a YAML type that JSON has not.
    """
    level = [value]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise LimitExceeded(f"the {noun} is deeper than {MAX_DEPTH} levels")
        below: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, int) and item.bit_length() > _MAX_BITS:
                raise TemplateError(f"the {noun} holds a number of more than {_MAX_BITS} bits")
            elif not isinstance(item, str | int | None) and not _finite(item):
                raise TemplateError(f"the {noun} holds {written(item)}, which JSON cannot represent")
        level = below


def _finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
