"""Each function that follows stacks nested in stacks has a bound, which this table names."""

import ast
import pathlib
from collections.abc import Iterator

import stoker

ROOT = pathlib.Path(stoker.__file__).parent
WALKS = {"all_below", "below", "inside", "paths"}
"""Queries of db/statements.py that follow the rows of a tree, each of which they take once."""
PAGE = "it reads a page of a limited length"
SIZE = "one short row for each stack of the tree, whose size is limited when stacks are made"
ANSWER = "[api] max_read: the database stops the read of an answer"
BOUNDS = {
    "features/drift/rows.py:of_tree": ANSWER,
    "db/events.py:_of_stacks": f"{PAGE}, or {ANSWER}",
    "features/diagnosis/graphs.py:_resources": PAGE,
    "features/diagnosis/graphs.py:_stacks": PAGE,
    "features/diagnosis/graphs.py:_tasks": "at most a short row for each resource of the tree",
    "features/diagnosis/graphs.py:last_event": "it returns one number",
    "features/diagnosis/inspections.py:_tasks": "its callers read a page of a limited length",
    "features/diagnosis/inspections.py:failed_resources": PAGE,
    "features/diagnosis/inspections.py:page": "it names what is on a page of a limited length",
    "features/diagnosis/inspections.py:waiting": PAGE,
    "db/queries/nesting.py:data_by_path": "the data of some types; a stack has a limited number of resources",
    "db/queries/nesting.py:things": "two short values for each resource of the tree; likewise",
    "db/resources.py:of_tree": f"{ANSWER}; the levels of nested_depth",
    "db/resources.py:types_in": "it returns the names of types",
    "db/stacks.py:lock_inside": SIZE,
    "db/work/breakpoints.py:held_in_tree": SIZE,
    "db/stacks.py:ids_inside": f"{SIZE}, after an export with the budget of the request",
}
"""By caller of these queries what bounds its cost."""
BUDGETS = {
    "engine/exports.py",
    "features/preview/updates.py",
    "engine/restore.py",
    "engine/updates.py",
}
"""Modules that follow a tree stack by stack: with the budget of the request."""


def _calls() -> Iterator[str]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT)
        if name.parts[0] in ("tests", ".venv", ".check", "build"):
            continue
        text = path.read_text()
        if "statements" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    if (
                        isinstance(node, ast.Attribute)
                        and node.attr in WALKS
                        and isinstance(node.value, ast.Name)
                        and node.value.id == "statements"
                    ):
                        yield f"{name}:{function.name}"


def test_whoever_follows_a_tree_names_the_module_of_the_queries() -> None:
    """Otherwise the table would not see it."""
    importing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("api", "cli", "conductor", "db", "engine", "features")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").rpartition(".")[2] == "statements"
        and not WALKS.isdisjoint(alias.name for alias in node.names)
    ]
    assert importing == []


def test_who_follows_a_tree_has_a_bound() -> None:
    assert {*_calls()} == BOUNDS.keys()


def test_who_follows_a_tree_stack_by_stack_has_the_budget_of_the_request() -> None:
    paths = [path for folder in ("engine", "features") for path in (ROOT / folder).rglob("*.py")]
    charging = {str(path.relative_to(ROOT)) for path in paths if "import TreeBudget" in path.read_text()}
    assert charging == BUDGETS
