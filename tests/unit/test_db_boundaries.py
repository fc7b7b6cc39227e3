"""Only db/ reads and writes rows of stacks and contents."""

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
OTHERS = ("api", "cli", "conductor", "engine", "keystone", "resources", "ring", "rpc", "template")


def uses_of_the_stack_table(path: pathlib.Path) -> list[str]:
    text = path.read_text()
    if "tables." not in text:
        return []
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and node.attr in ("stack", "content", "content_use")
        and isinstance(node.value, ast.Name)
        and node.value.id == "tables"
    ]


def test_nobody_but_the_database_layer_touches_the_tables_of_stacks_and_contents() -> None:
    modules = [path for name in OTHERS for path in (ROOT / name).rglob("*.py")]
    assert {path.relative_to(ROOT).parts[0] for path in modules} == set(OTHERS)
    uses = [use for path in modules for use in uses_of_the_stack_table(path)]
    assert uses == [], "use the functions of db/: a content that no use is stored of is swept away"


def test_a_use_would_be_seen() -> None:
    assert uses_of_the_stack_table(ROOT / "db" / "stacks.py")
    assert uses_of_the_stack_table(ROOT / "db" / "content.py")
