"""Only db/ writes rows of stacks and contents, and only transitions.py the state of a task."""

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[2]
OTHERS = ("api", "cli", "conductor", "engine", "keystone", "resources", "ring", "rpc", "template")
TRANSITIONS = "db/work/transitions.py"
BY_NAME = {
    "db/bulk.py": "updates the table that it is given; its calls are looked at",
    "db/sealed_rows.py": "writes columns that hold sealed values, of any table",
}
"""Modules that update tables which the text does not name."""


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


Names = dict[str, ast.expr]


def _assigned(scope: ast.AST) -> Names:
    """The values of names that are assigned in a scope, with those of `a, b = x, y` taken apart."""
    names: Names = {}
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            names.update((name.id, value) for name, value in pairs if isinstance(name, ast.Name))
    return names


def _resolved(node: ast.expr, names: Names) -> ast.expr:
    visited = set[str]()
    while isinstance(node, ast.Name) and node.id in names and node.id not in visited:
        visited.add(node.id)
        node = names[node.id]
    return node


def _updated_table(node: ast.expr, names: Names) -> ast.expr | None:
    """The table of the update that a chain of calls such as `sa.update(t).where(…)` begins with."""
    node = _resolved(node, names)
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "update":
            return _resolved(node.args[0] if node.args else node.func.value, names)
        node = _resolved(node.func.value, names)
    return None


def _is_another(table: ast.expr) -> bool:
    if not isinstance(table, ast.Attribute) or not isinstance(table.value, ast.Name):
        return False
    return table.value.id == "tables" and table.attr != "task"


def _columns(expression: ast.Call, names: Names) -> Iterator[str]:
    """The columns that `values(…)` sets; `*` where the text does not say which."""
    for keyword in expression.keywords:
        if keyword.arg is not None:
            yield keyword.arg
        else:
            yield from _keys(keyword.value, names)
    for argument in expression.args:
        if isinstance(argument, ast.Tuple) and isinstance(argument.elts[0], ast.Attribute):
            yield argument.elts[0].attr
        else:
            yield from _keys(argument, names)


def _keys(node: ast.expr, names: Names) -> Iterator[str]:
    node = _resolved(node, names)
    if not isinstance(node, ast.Dict):
        yield "*"
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from _keys(value, names)
        elif isinstance(key, ast.Constant):
            yield str(key.value)
        else:
            yield key.attr if isinstance(key, ast.Attribute) else "*"


def _updates_many(node: ast.Call) -> bool:
    """Return whether a call is `bulk.update(conn, …)` for the tasks, as far as the text says."""
    is_bulk = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "bulk.update"
    return is_bulk and not _is_another(node.args[1])


def _names_the_state(node: ast.AST) -> bool:
    return isinstance(node, ast.Dict) and any(
        isinstance(key, ast.Constant) and key.value == "state" for key in node.keys
    )


def updates_of_states(text: str) -> list[int]:
    """The lines where the state of tasks is updated, or may be as far as the text says."""
    if not re.search(r"values\(|\bupdate\s+task\b|bulk\.update\(", text, re.IGNORECASE):
        return []
    tree = ast.parse(text)
    updates = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\bupdate\s+task\s+set\b", node.value, re.IGNORECASE)
    }
    outer: Names = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            outer.update(_assigned(statement))
    for scope in tree.body:
        names = {**outer, **_assigned(scope)}
        for node in ast.walk(scope):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if _updates_many(node) and any(_names_the_state(part) for part in ast.walk(scope)):
                updates.add(node.lineno)
            if node.func.attr not in ("values", "ordered_values"):
                continue
            table = _updated_table(node.func.value, names)
            if table is None or _is_another(table):
                continue
            if {"state", "*"} & set(_columns(node, names)):
                updates.add(node.lineno)
    return sorted(updates)


PRODUCT = [
    path
    for name in (*OTHERS, "db", "sealing")
    for path in sorted((ROOT / name).rglob("*.py"))
    if "migrations" not in path.parts
]


def test_only_the_transitions_update_the_state_of_a_task() -> None:
    updates = {
        f"{name}:{line}"
        for path in PRODUCT
        if (name := str(path.relative_to(ROOT))) != TRANSITIONS and name not in BY_NAME
        for line in updates_of_states(path.read_text())
    }
    assert updates == set(), f"add a function for the arrow to {TRANSITIONS}, or use the one that is there"


@pytest.mark.parametrize(
    "statement",
    [
        "conn.execute(sa.update(tables.task).where(tables.task.c.id == 1).values(state='ready'))",
        "t = tables.task\nconn.execute(sa.update(t).where(t.c.id == 1).values(due_at=1, state='ready'))",
        "def f():\n    t, s = tables.task, tables.stack\n    return sa.update(t).values({'state': 1})",
        "values = {'state': 1}\ndef f():\n    t = tables.task\n    return sa.update(t).values(**values, a=1)",
        "def f(**columns):\n    return sa.update(tables.task).values(**columns)",
        "t = tables.task\nfirst = sa.update(t)\nthen = first.where(t.c.id == 1)\nthen.values(state=1)",
        "t = tables.task\nsa.update(t).ordered_values((t.c.due_at, 1), (t.c.state, 'ready'))",
        "t = tables.task\nt.update().values({t.c.state: 'ready'})",
        "def f(table):\n    return sa.update(table).values(state=1)",
        "conn.execute(sa.text('UPDATE task SET state = 1'))",
        "def f(conn):\n    rows = [{'id': 1, 'state': 'ready'}]\n    bulk.update(conn, tables.task, rows)",
    ],
)
def test_an_update_of_a_state_would_be_seen(statement: str) -> None:
    assert updates_of_states(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "conn.execute(sa.update(tables.task).where(tables.task.c.state == 'ready').values(due_at=1))",
        "conn.execute(sa.update(tables.conductor).values(state='active'))",
        "t = tables.task\nvalues = {'due_at': 1}\nsa.update(t).values(**values)",
        "conn.execute(sa.insert(tables.task).values(state='ready'))",
        "def f(conn):\n    bulk.update(conn, tables.task, [{'id': 1, 'due_at': 2}])",
    ],
)
def test_other_statements_are_left_alone(statement: str) -> None:
    assert not updates_of_states(statement)
