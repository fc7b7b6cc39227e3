"""Reading YAML (and so JSON) documents that strangers send."""

import typing
from collections.abc import Mapping

import yaml

from .errors import LimitExceeded, TemplateError

Json = typing.Any

MAX_NODES = 2_000_000
"""Nodes of a document after its aliases are expanded."""


class _Loader(yaml.CSafeLoader):
    """YAML as HOT wants it: dates stay strings, keys are unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[typing.Hashable, Json]:
        self.flatten_mapping(node)
        seen: set[Json] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, dict | list):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a string", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key "{key}" stands here twice', key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _as_string(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_string)


def load_template(document: str | Mapping[str, Json], *, max_bytes: int = 0) -> dict[str, Json]:
    """A template as a dict.

    :param max_bytes: refuse longer texts; 0: no limit.
    :raises TemplateError: it is not YAML, or not a mapping, with line and column.
    """
    if isinstance(document, Mapping):
        return dict(document)
    if max_bytes and len(document.encode()) > max_bytes:
        raise LimitExceeded(
            f"the template has {len(document.encode())} bytes, above the limit of {max_bytes}"
        )
    return load_document(document, "template")


def load_document(text: str, what: str = "document") -> dict[str, Json]:
    """A YAML mapping.

    :param what: name for the errors.
    :raises TemplateError: see load_template.
    """
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            _refuse_bombs(root, what)
            value = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise TemplateError(f"the {what} is not valid YAML{where}: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise TemplateError(f"the {what} is not valid YAML: {error}") from error
    if value is None:
        raise TemplateError(f"the {what} is empty")
    if not isinstance(value, dict):
        raise TemplateError(f"the {what} must be a mapping, not {type(value).__name__}")
    return value


def _refuse_bombs(root: yaml.Node | None, what: str) -> None:
    """Count what the aliases expand to, without expanding them."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, above: frozenset[int]) -> int:
        if id(node) in above:
            raise TemplateError(f"the {what} has an alias inside of what it stands for")
        if id(node) not in sizes:
            inner = above | {id(node)}
            if isinstance(node, yaml.MappingNode):
                total = sum(size(k, inner) + size(v, inner) for k, v in node.value)
            elif isinstance(node, yaml.SequenceNode):
                total = sum(size(item, inner) for item in node.value)
            else:
                total = 0
            sizes[id(node)] = total + 1
            if total > MAX_NODES:
                raise LimitExceeded(f"the {what} expands to more than {MAX_NODES} nodes through its aliases")
        return sizes[id(node)]

    if root is not None:
        size(root, frozenset())
