"""A local name is the noun of what it holds: a reader need not infer a type from the right-hand side."""

import ast
import collections
import pathlib
import typing
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EMPTY = frozenset(
    (
        *("found", "given", "known", "shown", "made", "kept", "asked", "wanted", "told", "seen", "said"),
        *("gone", "taken", "got", "meant", "left", "there", "behind", "beside"),
        *("mine", "ours", "theirs", "own", "thing", "things", "work", "call", "what", "whose", "whom"),
    )
)
"""Names that say nothing of the thing: participles, pronouns, and nouns for anything."""
MOST_EMPTY = 0.015
"""Share of the bindings of a folder that may have such a name."""
MOST_PAIRS = 1.0
"""Assignments ``a, b = x, y`` of unrelated values in a thousand lines of a folder."""
SOURCES = ("tests", "benchmarks", "examples", "tools", "doc")
"""Folders beside those of the product."""


class Folder:
    """What is counted in the modules of one folder.

    :ivar empty: places of bindings with empty names.
    :ivar pairs: places of unrelated assignments in one statement.
    """

    def __init__(self) -> None:
        self.bindings = 0
        self.lines = 0
        self.empty: list[str] = []
        self.pairs: list[str] = []


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that a statement, a parameter or a handler binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def is_pair(node: ast.AST) -> typing.TypeGuard[ast.Assign]:
    """Return whether a statement assigns several values to as many names: a swap or an unpacking does not."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    [target, *others] = node.targets
    if others or not isinstance(target, ast.Tuple):
        return False
    targets = {ast.unparse(item) for item in target.elts}
    return targets != {ast.unparse(item) for item in node.value.elts}


def place_of(path: pathlib.Path) -> str:
    """Return the folder that a module counts for: of tests the one below, otherwise the top one."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "tests" and len(parts) > 2 else parts[0]


@pytest.fixture(scope="module")
def folders() -> dict[str, Folder]:
    counted: dict[str, Folder] = collections.defaultdict(Folder)
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    for name in sorted({*packages, *SOURCES}):
        for path in sorted((ROOT / name).rglob("*.py")):
            if "build" in path.parts or "node_modules" in path.parts:
                continue
            text = path.read_text()
            folder = counted[place_of(path)]
            folder.lines += text.count("\n")
            tree = ast.parse(text)
            where = path.relative_to(ROOT)
            for binding, line in bindings(tree):
                folder.bindings += 1
                if binding.strip("_") in EMPTY:
                    folder.empty.append(f"{where}:{line} {binding}")
            folder.pairs += [f"{where}:{node.lineno}" for node in ast.walk(tree) if is_pair(node)]
    return counted


def test_few_names_are_empty(folders: dict[str, Folder]) -> None:
    assert len(folders) > 25
    offenders = [
        f"{name}: {len(folder.empty) / folder.bindings:.1%} of {folder.bindings} names are empty, "
        f"{MOST_EMPTY:.1%} are allowed: {', '.join(folder.empty)}"
        for name, folder in folders.items()
        if len(folder.empty) > max(3, MOST_EMPTY * folder.bindings)
    ]
    assert not offenders, "\n".join(offenders)


def test_unrelated_values_are_assigned_on_lines_of_their_own(folders: dict[str, Folder]) -> None:
    offenders = [
        f"{name}: {len(folder.pairs)} in {folder.lines} lines: {', '.join(folder.pairs)}"
        for name, folder in folders.items()
        if len(folder.pairs) > max(3, MOST_PAIRS * folder.lines / 1000)
    ]
    assert not offenders, "\n".join(offenders)


@pytest.mark.parametrize(
    ("source", "names", "pairs"),
    [
        ("for found in rows:\n    kept, row = row, found\n", ["found", "kept", "row"], 1),
        ("def get(self, given, *, key=1):\n    return (shown := given)\n", ["given", "key", "shown"], 0),
        ("a, b = b, a\nhead, *rest = line\n", ["a", "b", "head", "rest"], 0),
        ("try:\n    pass\nexcept OSError as error:\n    left, right = 1, 2\n", ["error", "left", "right"], 1),
    ],
)
def test_what_is_counted(source: str, names: list[str], pairs: int) -> None:
    tree = ast.parse(source)
    assert sorted(name for name, _ in bindings(tree)) == sorted(names)
    assert sum(map(is_pair, ast.walk(tree))) == pairs
