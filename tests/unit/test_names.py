"""A local name is the noun of what it holds: a reader need not infer a type from the right-hand side."""

import ast
import collections
import pathlib
from collections.abc import Iterator

import pytest
from harness.sources import ROOT, Source, source

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
RELATIVE = frozenset(("near", "around", "place", "part", "before", "beside", "behind", "aside", "held"))
"""Names that say where a value lies, or when it was so, instead of what it is."""
MOST_RELATIVE = 0.01
"""The same for these, of the product: a part of a path, for one, has no other name."""
MOST_RELATIVE_BESIDE = 0.025
"""The same for tests and benchmarks, which compare with what was before."""
MOST_PAIRS = 1.0
"""Assignments ``a, b = x, y`` of unrelated values in a thousand lines of a folder."""
SOURCES = ("tests", "benchmarks", "examples", "tools", "doc")
"""Folders beside those of the product."""


class Folder:
    """The counts of the modules of one folder.

    :ivar empty: places of bindings with empty names.
    :ivar relative: places of bindings with relative names.
    :ivar pairs: places of unrelated assignments in one statement.
    """

    def __init__(self) -> None:
        self.bindings = 0
        self.lines = 0
        self.empty: list[str] = []
        self.relative: list[str] = []
        self.pairs: list[str] = []


def bindings(module: Source) -> Iterator[tuple[str, int]]:
    """Yield each name that a statement, a parameter or a handler binds, with its line."""
    yield from ((node.id, node.lineno) for node in module.nodes(ast.Name) if isinstance(node.ctx, ast.Store))
    yield from ((node.arg, node.lineno) for node in module.nodes(ast.arg) if node.arg not in ("self", "cls"))
    yield from ((node.name, node.lineno) for node in module.nodes(ast.ExceptHandler) if node.name)


def is_pair(node: ast.Assign) -> bool:
    """Return whether a statement assigns several values to as many names: a swap or an unpacking does not."""
    if not isinstance(node.value, ast.Tuple):
        return False
    [target, *others] = node.targets
    if others or not isinstance(target, ast.Tuple):
        return False
    targets = {ast.unparse(item) for item in target.elts}
    return targets != {ast.unparse(item) for item in node.value.elts}


def place_of(path: pathlib.PurePath) -> str:
    """Return the folder that a module counts for: of tests the one below, otherwise the top one."""
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] == "tests" and len(parts) > 2 else parts[0]


@pytest.fixture(scope="module")
def folders() -> dict[str, Folder]:
    counted: dict[str, Folder] = collections.defaultdict(Folder)
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    for name in sorted({*packages, *SOURCES}):
        for path in sorted((ROOT / name).rglob("*.py")):
            if "build" in path.parts or "node_modules" in path.parts:
                continue
            module = source(path)
            folder = counted[place_of(module.path)]
            folder.lines += module.text.count("\n")
            for binding, line in bindings(module):
                folder.bindings += 1
                if binding.strip("_") in EMPTY:
                    folder.empty.append(f"{module.path}:{line} {binding}")
                if binding.strip("_") in RELATIVE:
                    folder.relative.append(f"{module.path}:{line} {binding}")
            folder.pairs += [
                f"{module.path}:{node.lineno}" for node in module.nodes(ast.Assign) if is_pair(node)
            ]
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


def test_few_names_are_relative(folders: dict[str, Folder]) -> None:
    beside = {name: name.split("/")[0] in SOURCES for name in folders}
    bounds = {name: MOST_RELATIVE_BESIDE if beside[name] else MOST_RELATIVE for name in folders}
    offenders = [
        f"{name}: {len(folder.relative) / folder.bindings:.1%} of {folder.bindings} names are relative, "
        f"{bounds[name]:.1%} are allowed: {', '.join(folder.relative)}"
        for name, folder in folders.items()
        if len(folder.relative) > max(5, bounds[name] * folder.bindings)
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
    ("text", "names", "pairs"),
    [
        ("for found in rows:\n    kept, row = row, found\n", ["found", "kept", "row"], 1),
        ("def get(self, given, *, key=1):\n    return (shown := given)\n", ["given", "key", "shown"], 0),
        ("a, b = b, a\nhead, *rest = line\n", ["a", "b", "head", "rest"], 0),
        ("try:\n    pass\nexcept OSError as error:\n    left, right = 1, 2\n", ["error", "left", "right"], 1),
    ],
)
def test_names_and_pairs_are_counted(text: str, names: list[str], pairs: int) -> None:
    module = Source(pathlib.PurePath("module.py"), text)
    assert sorted(name for name, _ in bindings(module)) == sorted(names)
    assert sum(map(is_pair, module.nodes(ast.Assign))) == pairs
