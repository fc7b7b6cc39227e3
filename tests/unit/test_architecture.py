"""The house as the design draws it: imports run one way, and nothing grows without bound."""

import ast
import pathlib
import typing

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MAY_IMPORT: dict[str, set[str]] = {
    "sandbox": set(),
    "ring": set(),
    "db": set(),
    "observe": set(),
    "osc": {"observe"},
    "template": {"sandbox"},
    "rpc": {"db", "observe"},
    "resources": {"template", "sandbox"},
    "resources/openstack": {"resources", "template"},
    "sealing": {"template", "resources", "db"},
    "keystone": {"template", "sealing", "db"},
    "planning": {"template", "resources", "sealing", "keystone", "db"},
    "engine": {
        *("planning", "template", "resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "db", "observe"),
    },
    "conductor": {
        *("engine", "planning", "template", "sandbox", "resources"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
    "api": {
        *("engine", "planning", "template", "sandbox", "resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
    "cli": {
        *("api", "conductor", "engine", "planning", "template", "sandbox"),
        *("resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
}
"""rpc takes its ids' types from db, resources the residual's from template.  A folder within one of these
has walls of its own where it is named."""
PURE = {"planning": {"ids", "rows", "states", "breakpoint_rules"}}
"""Folders that compute only, with the modules of db that they and all below them may import."""
IMPURE = (
    "sqlalchemy",
    "alembic",
    "oslo",
    "requests",
    "keystoneauth1",
    "socket",
    "subprocess",
    "http",
    "urllib.request",
)
LONGEST_CHAIN, MOST_LEVELS, MOST_IMPORTS = 16, 6, 15
MOST_LINES, MOST_CLASS, MOST_FUNCTION, MOST_PARAMETERS = 500, 300, 60, 6
BROAD_EXCEPT = {
    "api/app.py": "top of the WSGI stack",
    "cli/daemon/main_thread.py": "top of the main thread",
    "cli/wiring/probes.py": "top of the thread that asks a server",
    "conductor/steps/runner.py": "top of a step's thread",
    "conductor/worker/thread.py": "top of the work loop's thread",
    "conductor/scheduler.py": "top of a duty",
    "ring/membership.py": "top of the membership's thread",
    "rpc/outbox.py": "top of the outbox's thread",
    "sandbox/evaluation.py": "top of a helper process",
}
CONFIGURATION = {
    "cli/": "the composition roots",
    "rpc/transport.py": "oslo.messaging takes the object itself",
}


class Module(typing.NamedTuple):
    path: pathlib.Path
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def dotted(self) -> tuple[str, ...]:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return parts[:-1] if parts[-1] == "__init__" else parts

    def imports(self) -> list[tuple[str, ...]]:
        """The project's own modules that it imports, from the root."""
        found = []
        package = self.path.relative_to(ROOT).parent.parts
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package[: len(package) - node.level + 1]
                base += tuple(node.module.split(".")) if node.module else ()
                found += [(*base, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stoker":
                found += [(*str(node.module).split(".")[1:], alias.name) for alias in node.names]
        return found

    def libraries(self) -> list[str]:
        """The modules of others that it imports when it runs; types alone are no imports."""
        checked = {
            inner
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        found: list[str] = []
        for node in ast.walk(self.tree):
            if node not in checked and isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif node not in checked and isinstance(node, ast.ImportFrom) and not node.level:
                found.append(str(node.module))
        return found


def _modules() -> list[Module]:
    paths = [ROOT / "__init__.py"]
    for package in sorted({name.split("/")[0] for name in MAY_IMPORT}):
        paths += sorted((ROOT / package).rglob("*.py"))
    return [Module(path, ast.parse(path.read_text(), str(path))) for path in paths]


MODULES = _modules()
by_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


def _folder(dotted: tuple[str, ...]) -> str:
    """Return the folder with walls of its own that a module is in."""
    inner = "/".join(dotted[:2])
    return inner if inner in MAY_IMPORT else dotted[0]


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _length(node: ast.FunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_package_of_the_design_is_looked_at() -> None:
    found = {_folder(module.dotted) for module in MODULES if module.dotted}
    assert found == set(MAY_IMPORT)
    assert len(MODULES) > 80


@by_module
def test_imports_run_one_way(module: Module) -> None:
    if not module.dotted:
        return
    own = _folder(module.dotted)
    wrong = {_folder(path) for path in module.imports()} & set(MAY_IMPORT) - MAY_IMPORT[own] - {own}
    assert not wrong, f"{module.name} imports {wrong}; {own} may import {MAY_IMPORT[own] or 'nothing'}"


def _graph() -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Return each module and the modules of the house that it imports."""
    known = {module.dotted for module in MODULES if module.path.name != "__init__.py"}
    return {
        module.dotted: {
            target for path in module.imports() for target in (path, path[:-1]) if target in known
        }
        - {module.dotted}
        for module in MODULES
        if module.dotted in known
    }


GRAPH = _graph()


def _longest_chain(within: str | None = None) -> tuple[tuple[str, ...], ...]:
    """Return the modules of the longest way of imports, from the top down; `within` one folder only."""
    chains: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}

    def chain(name: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        if name not in chains:
            below = [chain(target) for target in GRAPH[name] if within in (None, _folder(target))]
            chains[name] = (name, *max(below, key=len, default=()))
        return chains[name]

    return max((chain(name) for name in GRAPH if within in (None, _folder(name))), key=len)


def _said(chain: tuple[tuple[str, ...], ...]) -> str:
    return f"{len(chain)}: " + " -> ".join(".".join(name) for name in chain)


def test_no_module_imports_itself_in_a_circle() -> None:
    done: set[tuple[str, ...]] = set()

    def visit(name: tuple[str, ...], above: tuple[tuple[str, ...], ...]) -> None:
        assert name not in above, " -> ".join(".".join(part) for part in (*above, name))
        if name not in done:
            for target in GRAPH[name]:
                visit(target, (*above, name))
            done.add(name)

    for name in GRAPH:
        visit(name, ())


def test_the_house_is_no_tower() -> None:
    """Who reads a module from above has that many others to know."""
    longest = _longest_chain()
    assert len(longest) <= LONGEST_CHAIN, _said(longest)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_has_few_levels(folder: str) -> None:
    longest = _longest_chain(folder)
    assert len(longest) <= MOST_LEVELS, _said(longest)


@by_module
def test_a_module_imports_few_others(module: Module) -> None:
    imported = GRAPH.get(module.dotted, set())
    assert len(imported) <= MOST_IMPORTS, f"{module.name}: {len(imported)}"


def test_a_public_class_name_is_one_class() -> None:
    """So a reader, and a search, finds what a name means."""
    found: dict[str, list[str]] = {}
    for module in MODULES:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module.name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


@pytest.mark.parametrize("folder", PURE)
def test_a_pure_folder_reaches_no_database_and_no_network(folder: str) -> None:
    """Neither itself nor through others."""
    reached: set[tuple[str, ...]] = set()
    left = [name for name in GRAPH if name[:1] == (folder,)]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += GRAPH[name]
    of_db = {name[-1] for name in reached if name[0] == "db"}
    assert of_db <= PURE[folder], f"{folder} reaches {of_db - PURE[folder]} of db"
    for module in (module for module in MODULES if module.dotted in reached):
        wrong = [name for name in module.libraries() if name.startswith(IMPURE)]
        assert not wrong, f"{folder} reaches {module.name}, which imports {wrong}"


@by_module
def test_imports_stand_at_the_top(module: Module) -> None:
    for function in _functions(module.tree):
        inner = [n.lineno for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
        assert not inner, f"{module.name}:{inner[0]} imports inside of {function.name}"


@by_module
def test_nothing_is_longer_than_the_limits(module: Module) -> None:
    assert len(module.path.read_text().splitlines()) <= MOST_LINES
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            assert _length(node) <= MOST_CLASS, f"{module.name}: class {node.name}"
        if isinstance(node, ast.FunctionDef):
            assert _length(node) <= MOST_FUNCTION, f"{module.name}: {node.name}"


@by_module
def test_functions_take_few_parameters(module: Module) -> None:
    """A constructor that is given its collaborators by keyword may take more."""
    for function in _functions(module.tree):
        arguments = function.args
        positional = [a for a in (*arguments.posonlyargs, *arguments.args) if a.arg not in ("self", "cls")]
        count = len(positional) + (0 if function.name == "__init__" else len(arguments.kwonlyargs))
        assert count <= MOST_PARAMETERS, f"{module.name}: {function.name} takes {count} parameters"


@by_module
def test_configuration_is_read_in_cli_only(module: Module) -> None:
    if module.name.startswith("cli/"):
        return
    for node in ast.walk(module.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        source = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        assert not any(name.startswith("oslo_config") for name in [*names, source]), module.name


@by_module
def test_everything_is_caught_only_at_the_top_of_a_thread(module: Module) -> None:
    broad = [
        node.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    ]
    assert len(broad) <= (module.name in BROAD_EXCEPT), f"{module.name}: lines {broad}"


@by_module
def test_no_module_has_a_name_that_says_nothing(module: Module) -> None:
    assert not {"common", "utils", "util", "helpers", "misc"} & set(module.dotted)


@by_module
def test_public_functions_say_what_they_promise(module: Module) -> None:
    tops = [node for node in module.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    documented = {node.name for node in tops if ast.get_docstring(node)}  # Not the overloads of a function.
    silent = [node.name for node in tops if node.name[0] != "_" and node.name not in documented]
    assert not silent, f"{module.name}: {silent}"
