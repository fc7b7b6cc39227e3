"""Whatever may differ from one server to another is tested on all of them by `make test`."""

import ast
import pathlib
import re

from services.db import servers

HERE = pathlib.Path(__file__).parent
DB = pathlib.Path(__file__).parents[3] / "db"
BRANCH = re.compile(r"\bdialects?\b|with_variant|get_backend_name|skip_locked")
"""In a module of db: it names a dialect, or skips rows that others have locked, which SQLite cannot do."""
AT_ONCE = re.compile(r"\btogether\(|\bthreading\.|\.dialect\b")
"""In a test: several transactions at once, whose locks differ, or a branch of the test's own."""


def test_each_module_with_a_branch_is_tested_on_all_servers() -> None:
    branching = {
        str(path.relative_to(DB).with_suffix(""))
        for path in DB.rglob("*.py")
        if "migrations" not in path.parts and BRANCH.search(path.read_text())
    }
    assert branching == set(servers.CHECKED_BY)


def test_each_file_that_runs_on_all_servers_exists() -> None:
    assert {path.stem for path in HERE.glob("test_*.py")} >= servers.ON_ALL


def test_whatever_acts_at_once_runs_on_all_servers() -> None:
    offenders = []
    for path in sorted(HERE.glob("test_*.py")):
        text = path.read_text()
        offenders += [
            f"{path.name}:{node.lineno} {node.name}"
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef) and path.stem not in servers.ON_ALL
            if AT_ONCE.search(ast.get_source_segment(text, node) or "")
            if not any(ast.unparse(decorator).startswith("on(") for decorator in node.decorator_list)
        ]
    assert offenders == [], "name the file in servers.ON_ALL, or decorate the test with @on(*SERVERS)"
