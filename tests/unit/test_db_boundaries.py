"""Whoever changes a stack's contents says which ones it holds on to; so only db/ writes rows of stacks."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
OTHERS = ("api", "cli", "conductor", "resources", "ring", "rpc", "template", "traversal")


def uses_of_the_stack_table(path: pathlib.Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("stack", "content", "content_use")
        and isinstance(node.value, ast.Name)
        and node.value.id == "tables"
    ]


def test_nobody_but_the_database_layer_touches_the_tables_of_stacks_and_contents() -> None:
    found = [
        use
        for name in OTHERS
        for path in (ROOT / name).rglob("*.py")
        for use in uses_of_the_stack_table(path)
    ]
    assert found == [], "use the functions of db/: a content that no use is stored of is swept away"


def test_a_use_would_be_seen() -> None:
    assert uses_of_the_stack_table(ROOT / "db" / "stacks.py")
    assert uses_of_the_stack_table(ROOT / "db" / "content.py")
