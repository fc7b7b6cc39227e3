"""Only db/, and features for tables of their own, write SQL: the others call functions of it."""

import ast

from harness.sources import ROOT

OTHERS = (
    *("api", "conductor", "console", "engine", "keystone", "observe", "osc", "resources"),
    *("ring", "rpc", "sealing", "template"),
)
"""All folders but cli/, which connects to databases and catches their errors."""
PASSED = frozenset({"Connection", "revisions"})
"""Names that are no SQL: the transaction that a caller passes on, and the numbers of schemas."""


def uses_of_sql(text: str) -> list[str]:
    """The names of SQLAlchemy, and of the tables, that a module imports."""
    imports: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names if alias.name.split(".")[0] == "sqlalchemy"]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            if module[0] == "sqlalchemy" or module[-2:] == ["db", "schema"]:
                imports += [alias.name for alias in node.names]
    return [name for name in imports if name not in PASSED]


def test_nobody_but_the_database_layer_writes_sql() -> None:
    modules = [path for name in OTHERS for path in sorted((ROOT / name).rglob("*.py"))]
    assert {path.relative_to(ROOT).parts[0] for path in modules} == set(OTHERS)
    uses = {str(path.relative_to(ROOT)): uses_of_sql(path.read_text()) for path in modules}
    assert {path: names for path, names in uses.items() if names} == {}, "use or add a function of db/"


def test_a_use_of_sql_would_be_seen() -> None:
    assert uses_of_sql("import sqlalchemy as sa") == ["sqlalchemy"]
    assert uses_of_sql("from ...db.schema import tables") == ["tables"]
    assert uses_of_sql("from sqlalchemy import select") == ["select"]
    assert uses_of_sql("from sqlalchemy.engine import Connection") == []
