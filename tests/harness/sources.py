"""The modules of the repository as syntax trees, for tests that judge the code."""

import ast
import collections
import functools
import gc
import pathlib
import typing

ROOT = pathlib.Path(__file__).parents[2]
N = typing.TypeVar("N", bound=ast.AST)


class Source:
    """A module; it is parsed, and its nodes are sorted by their types, once.

    :param path: path of the module from the root of the repository.
    """

    def __init__(self, path: pathlib.PurePath, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text, str(path))
        self._nodes = sorted_by_type(self.tree)

    def nodes(self, *kinds: type[N]) -> list[N]:
        """Return the nodes of some types, those of one type in the order of ``ast.walk``."""
        return [typing.cast("N", node) for kind in kinds for node in self._nodes[kind]]


def sorted_by_type(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """Return all nodes of a tree, in half of the time that ``ast.walk`` takes."""
    by_type: dict[type[ast.AST], list[ast.AST]] = collections.defaultdict(list)
    nodes = [tree]
    for node in nodes:
        by_type[type(node)].append(node)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return by_type


@functools.cache
def source(path: pathlib.Path) -> Source:
    """Return a module, which all tests of a process share."""
    gc.disable()
    try:
        return Source(path.relative_to(ROOT), path.read_text())
    finally:
        gc.freeze()  # Searching for garbage in trees that stay takes four times the parsing.
        gc.enable()
