"""The house as the design draws it: imports run one way, and nothing grows without bound.

Each rule is one test over all modules, which lists all offenders.
"""

import ast
import collections
import functools
import pathlib
import typing
import warnings
from collections.abc import Iterable

import pytest
from harness.sources import ROOT, source

MAY_IMPORT: dict[str, set[str]] = {
    "template/sandbox": set(),
    "ring": set(),
    "db": set(),
    "observe": set(),
    "osc": {"observe"},
    "template": {"template/sandbox"},
    "rpc": {"db", "observe"},
    "resources": {"template", "template/sandbox"},
    "resources/openstack": {"resources", "template"},
    "sealing": {"template", "db"},
    "keystone": {"template", "sealing", "resources", "db"},
    "engine/planning": {"template", "resources", "sealing", "db"},
    "engine": {
        *("engine/planning", "template", "resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "db", "observe"),
    },
    "conductor": {
        *("engine", "engine/planning", "template", "template/sandbox", "resources"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
    "api": {
        *("engine", "engine/planning", "template", "template/sandbox", "resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
    "console": {"api", "keystone"},
    "features": set(),
    "features/cloudformation": {
        "features/preview",
        *("features", "api", "engine", "template", "template/sandbox", "keystone", "db", "observe"),
    },
    "features/diagnosis": {
        *("features", "api", "conductor", "engine", "ring", "rpc", "db", "observe"),
    },
    "features/preflight": {
        *("features", "features/preview", "api", "engine", "engine/planning", "keystone", "template"),
        *("sealing", "resources", "resources/openstack", "db"),
    },
    "features/preview": {
        *(
            "features",
            "api",
            "engine",
            "engine/planning",
            "template",
            "resources",
            "sealing",
            "db",
            "observe",
        ),
    },
    "features/quotas": {"features", "api", "engine", "db"},
    "features/software": {"features", "api", "engine", "resources", "sealing", "db", "observe"},
    "features/drift": {
        *("features", "api", "conductor", "engine", "engine/planning", "keystone", "resources", "sealing"),
        *("template", "ring", "db", "observe"),
    },
    "features/moves": {"features"},
    "features/moves/heat": set(),
    "features/moves/mapping": {
        "features/moves/heat",
        "sealing",
        "resources",
        "resources/openstack",
        "template",
        "db",
    },
    "features/moves/inward": {
        *("features/moves/heat", "features/moves/mapping", "conductor", "engine"),
        *("engine/planning", "template"),
        *("resources", "resources/openstack", "sealing", "ring", "db"),
    },
    "features/moves/outward": {
        *("features/moves/heat", "features/moves/mapping", "engine", "engine/planning"),
        *("template", "resources"),
        *("resources/openstack", "sealing", "db"),
    },
    "cli": {
        *("api", "console", "features", "features/cloudformation", "features/diagnosis", "features/drift"),
        *("features/moves", "features/moves/heat", "features/moves/inward", "features/moves/outward"),
        *("features/preflight", "features/preview", "features/quotas", "features/software"),
        *("conductor", "engine", "engine/planning", "template", "template/sandbox"),
        *("resources", "resources/openstack"),
        *("sealing", "keystone", "ring", "rpc", "db", "observe"),
    },
}
"""rpc takes its ids' types from db, resources the residual's from template.  A folder within one of these
has walls of its own where it is named."""
VOCABULARY = ("settings", "shapes")
"""The modules that all may import, for they only give words to declare values; they are no floor of the
house."""
_VALUES = {"ids", "id_source", "rows", "states", "breakpoint_rules", "errors"}
PURE = {
    "engine/planning": _VALUES,
    "features/preflight/findings": _VALUES,
    "features/preflight/planned": _VALUES,
    "features/preflight/quota": _VALUES,
    "features/preview/plan": _VALUES,
    "features/preview/creation": _VALUES,
    "features/preview/described": _VALUES,
    "features/preview/template_findings": _VALUES,
}
"""Folders and modules that compute only, with the modules of db that they and all below them may import."""
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
FEATURES_OF_FEATURES: dict[str, str] = {
    "cloudformation -> preview": "its action ValidateTemplate is a view of the validation",
    "preflight -> preview": "it compares the changes that an update would make with the cloud",
}
"""Features that import another one, as ``one -> other``, each with the reason."""
MEAN_IMPORTS = 5.6
"""The aim is 4.7."""
MOST_ARROWS = 60
"""Folders of the root that import another one, counted by pairs."""
MOST_IMPORTS = 15
MOST_LINES = 500
MOST_CLASS = 300
MOST_FUNCTION = 60
MOST_PARAMETERS = 6
TOLERANCE = 1.3
"""A size above its limit is a warning, above this many times the limit it is a failure."""
EXCEPTIONS: dict[str, str] = {
    "cli/config/sections.py:1 imported modules": "it is a table of the dataclasses that declare settings",
    "conductor/steps/context.py:1 imported modules": "it implements the whole contract of a step's context",
    "engine/nested_stacks.py:1 imported modules": "everything that steps ask of nested stacks is one class",
}
"""Exceptions to these limits, with the reason; a key is the beginning of a line that a test fails with."""
BUDGETS = (
    "api/",
    "engine/requested.py",
    "features/preview/",
    "resources/nested/members.py",
    "template/budget.py",
    "template/compile.py",
)
"""Modules that make the budgets of requests, and those that take them or only add up a size."""
BROAD_EXCEPT = {
    "api/app.py": "top of the WSGI stack",
    "cli/daemon/main_thread.py": "top of the main thread",
    "cli/wiring/servers.py": "top of the thread that asks a server",
    "features/drift/observer.py": "call of a type for one resource",
    "features/preflight/check.py": "call of types' rules for one request",
    "features/preflight/reader.py": "top of the thread that asks a service",
    "conductor/steps/runner.py": "top of a step's thread",
    "conductor/worker/thread.py": "top of the work loop's thread",
    "conductor/scheduler.py": "top of a duty",
    "features/moves/heat/border.py": "border of the move of one stack",
    "ring/membership.py": "top of the membership's thread",
    "rpc/outbox.py": "top of the outbox's thread",
    "template/sandbox/evaluation.py": "top of a helper process",
}

TERMINAL = "observe/terminal.py"
"""The module that writes to the streams of people."""
SCREEN = "observe/screen.py"
"""The module that makes their consoles."""
LATE_IMPORTS = {
    "cli/programs/conductor.py": "Prometheus' client with an HTTP server, where metrics have a port",
    "cli/wiring/api.py": "pycadf, where requests are audited",
    "cli/wiring/data_dir.py": "Alembic, where the database is to be migrated",
    "cli/wiring/operator_api.py": "openstacksdk, where a command works over an API",
    "cli/wiring/service_account.py": "Keystone's middleware, where Keystone authenticates",
    "cli/wiring/reports.py": "oslo.reports with Jinja, where somebody asks for a report",
}
"""Modules with one import inside of a function, and the part that most processes never use."""

Name = tuple[str, ...]
"""A module's name from the root, e.g. ``("db", "engine")``."""
Graph = dict[Name, set[Name]]


class Import(typing.NamedTuple):
    """One name that a module imports."""

    line: int
    target: Name


class Module:
    """A file of the house."""

    def __init__(self, path: pathlib.Path) -> None:
        self.relative = path.relative_to(ROOT)
        self.name = str(self.relative)
        parts = self.relative.with_suffix("").parts
        self.dotted: Name = parts[:-1] if parts[-1] == "__init__" else parts
        self.source = source(path)
        self.lines = len(self.source.text.splitlines())
        self.tree = self.source.tree
        self.nodes = self.source.nodes

    @functools.cached_property
    def imports(self) -> list[Import]:
        """The names of the house that it imports."""
        imports = []
        package = self.relative.parent.parts
        for node in self.nodes(ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                base += tuple(node.module.split(".")) if node.module else ()
            elif (node.module or "").split(".")[0] == "stoker":
                base = tuple(str(node.module).split(".")[1:])
            else:
                continue
            imports += [Import(node.lineno, (*base, alias.name)) for alias in node.names]
        return imports

    def libraries(self) -> list[tuple[int, str]]:
        """The modules of others that it imports when it runs, with lines; types alone are no imports."""
        checked = {
            inner
            for node in self.nodes(ast.If)
            if "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        libraries = [
            (node.lineno, alias.name)
            for node in self.nodes(ast.Import)
            if node not in checked
            for alias in node.names
        ]
        libraries += [
            (node.lineno, str(node.module))
            for node in self.nodes(ast.ImportFrom)
            if node not in checked and not node.level
        ]
        return libraries


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    paths = [ROOT / "__init__.py", *(ROOT / f"{name}.py" for name in VOCABULARY)]
    for package in sorted({name.split("/")[0] for name in MAY_IMPORT}):
        paths += sorted((ROOT / package).rglob("*.py"))
    return [Module(path) for path in paths]


@pytest.fixture(scope="module")
def graph(modules: list[Module]) -> Graph:
    """Each module and the modules of the house that it imports."""
    names = {module.dotted for module in modules if module.relative.name != "__init__.py"}
    names -= {(name,) for name in VOCABULARY}
    return {
        module.dotted: {
            target
            for _, path in module.imports
            for target in (path, path[:-1])
            if target in names and target != module.dotted
        }
        for module in modules
        if module.dotted in names
    }


def _assert_none(offenders: list[str]) -> None:
    """Fail with all offenders, a line for each."""
    if offenders:
        pytest.fail("\n".join([f"{len(offenders)} against the rule:", *offenders]), pytrace=False)


def _assert_bounded(sizes: Iterable[tuple[str, int]], limit: int) -> None:
    """Warn of what is above the limit; fail with what is far above it and no exception."""
    offenders = []
    for description, size in sizes:
        line = f"{description}: {size}, the limit is {limit}"
        if size > limit * TOLERANCE and not line.startswith(tuple(EXCEPTIONS)):
            offenders.append(line)
        elif size > limit:
            warnings.warn(line, stacklevel=2)
    _assert_none(offenders)


def _folder(dotted: Name) -> str:
    """Return the innermost folder with walls of its own that a module is in."""
    folders = ("/".join(dotted[:length]) for length in range(len(dotted), 1, -1))
    return next((folder for folder in folders if folder in MAY_IMPORT), dotted[0])


def _length(node: ast.FunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_package_of_the_design_is_looked_at(modules: list[Module]) -> None:
    folders = {_folder(module.dotted) for module in modules if module.dotted}
    assert folders == {*MAY_IMPORT, *VOCABULARY}
    assert len(modules) > 80


def test_imports_run_one_way(modules: list[Module]) -> None:
    offenders = []
    for module in (module for module in modules if module.dotted):
        own = _folder(module.dotted)
        below = MAY_IMPORT.get(own, set())
        walls = MAY_IMPORT.keys() - below - {own}
        allowed = ", ".join(sorted(below)) or "nothing"
        offenders += [
            f"{module.name}:{line} imports {'.'.join(target)}; {own} may import {allowed}"
            for line, target in module.imports
            if _folder(target) in walls
        ]
    _assert_none(offenders)


def test_the_kernel_knows_no_feature(modules: list[Module]) -> None:
    """Then nobody who changes the kernel has to read a feature, and a feature can be left out."""
    offenders = []
    for module in (module for module in modules if module.dotted[:1] != ("cli",)):
        own = "".join(module.dotted[1:2]) if module.dotted[:1] == ("features",) else ""
        for line, target in module.imports:
            if target[0] != "features" or (own and target[1] in (own, "registry")):
                continue
            if f"{own} -> {target[1]}" not in FEATURES_OF_FEATURES:
                offenders.append(f"{module.name}:{line} imports {'.'.join(target)}: a feature")
    _assert_none(offenders)


def _arrows(chain: tuple[Name, ...]) -> str:
    return " -> ".join(".".join(name) for name in chain)


def test_no_module_imports_itself_in_a_circle(graph: Graph) -> None:
    circles: list[str] = []
    done: set[Name] = set()

    def visit(name: Name, above: tuple[Name, ...]) -> None:
        if name in above:
            circles.append(_arrows((*above[above.index(name) :], name)))
        elif name not in done:
            for target in sorted(graph[name]):
                visit(target, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    _assert_none(circles)


def test_a_type_imports_the_contract_as_a_whole(modules: list[Module]) -> None:
    """A type does as plugins do, so the contract's files may change; only computing has a module."""
    contract = ("resources", "contract")
    _assert_none(
        [
            f"{module.name}:{line} imports {'.'.join(target)}"
            for module in modules
            if module.name.startswith(("resources/heat/", "resources/nested/", "resources/openstack/"))
            for line, target in module.imports
            if target[:2] == contract and len(target) > 3 and target[2] != "properties"
        ]
    )


def test_a_module_imports_few_others_on_the_mean(graph: Graph) -> None:
    """The longest chain alone would allow a house in which each module knows most of the others."""
    mean = sum(map(len, graph.values())) / len(graph)
    assert mean <= MEAN_IMPORTS, f"{mean:.2f}"


def test_few_folders_import_each_other(graph: Graph) -> None:
    pairs = {(name[0], target[0]) for name, targets in graph.items() for target in targets}
    arrows = sorted(f"{one} -> {other}" for one, other in pairs if one != other)
    assert len(arrows) <= MOST_ARROWS, "\n".join(arrows)


def test_a_module_imports_few_others(graph: Graph) -> None:
    _assert_bounded(
        (
            (
                f"{'/'.join(name)}.py:1 imported modules "
                f"({', '.join(sorted('.'.join(target) for target in targets))})",
                len(targets),
            )
            for name, targets in graph.items()
        ),
        MOST_IMPORTS,
    )


def test_a_public_class_name_is_one_class(modules: list[Module]) -> None:
    """So a reader, and a search, finds what a name means."""
    places: dict[str, list[str]] = collections.defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{module.name}:{node.lineno}")
    _assert_none([f"{name}: {', '.join(lines)}" for name, lines in places.items() if len(lines) > 1])


def test_a_pure_folder_reaches_no_database_and_no_network(modules: list[Module], graph: Graph) -> None:
    """Neither itself nor through others."""
    offenders = []
    for folder, of_db in PURE.items():
        ways: dict[Name, tuple[Name, ...]] = {
            name: (name,) for name in graph if f"{'/'.join(name)}/".startswith(f"{folder}/")
        }
        assert ways, f"{folder} has no module"
        waiting = collections.deque(ways)
        while waiting:
            name = waiting.popleft()
            for target in graph[name] - ways.keys():
                ways[target] = (*ways[name], target)
                waiting.append(target)
        offenders += [
            f"{folder} reaches db.{name[-1]}: {_arrows(way)}"
            for name, way in ways.items()
            if name[0] == "db" and name[-1] not in of_db
        ]
        offenders += [
            f"{module.name}:{line} imports {library}: {_arrows(ways[module.dotted])}"
            for module in modules
            if module.dotted in ways
            for line, library in module.libraries()
            if library.startswith(IMPURE)
        ]
    _assert_none(offenders)


def test_imports_are_at_the_top(modules: list[Module]) -> None:
    offenders = []
    for module in modules:
        late = [
            f"{module.name}:{node.lineno} imports inside of {function.name}"
            for node in (*module.nodes(ast.Import), *module.nodes(ast.ImportFrom))
            for function in module.nodes(ast.FunctionDef)
            if function.lineno <= node.lineno <= (function.end_lineno or 0)
        ]
        offenders += late[1:] if module.name in LATE_IMPORTS else late
    _assert_none(offenders)


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(ast.ClassDef, MOST_CLASS), (ast.FunctionDef, MOST_FUNCTION)],
    ids=["class", "function"],
)
def test_classes_and_functions_are_short(
    modules: list[Module], kind: type[ast.ClassDef | ast.FunctionDef], limit: int
) -> None:
    _assert_bounded(
        (
            (f"{module.name}:{node.lineno} lines of {node.name}", _length(node))
            for module in modules
            for node in module.nodes(kind)
        ),
        limit,
    )


def test_files_are_short(modules: list[Module]) -> None:
    _assert_bounded(((f"{module.name}:1 lines", module.lines) for module in modules), MOST_LINES)


def _parameters(function: ast.FunctionDef) -> int:
    """Count them; a constructor that is given its collaborators by keyword may take more."""
    arguments = function.args
    positional = [
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args)
        if argument.arg not in ("self", "cls")
    ]
    return len(positional) + (0 if function.name == "__init__" else len(arguments.kwonlyargs))


def test_functions_take_few_parameters(modules: list[Module]) -> None:
    _assert_bounded(
        (
            (f"{module.name}:{function.lineno} parameters of {function.name}", _parameters(function))
            for module in modules
            for function in module.nodes(ast.FunctionDef)
        ),
        MOST_PARAMETERS,
    )


def test_unit_tests_lie_in_the_folders_of_the_product() -> None:
    """So who changes a module finds its tests where it lies; the tests' own parts are in ``harness``."""
    here = pathlib.Path(__file__).parent
    folders = [path.relative_to(here) for path in here.rglob("*") if any(path.glob("test_*.py"))]
    assert len(folders) > 20
    own = pathlib.Path("harness")
    _assert_none(
        [f"tests/unit/{folder}" for folder in folders if folder != own and not (ROOT / folder).is_dir()]
    )


def test_configuration_is_read_in_cli_only(modules: list[Module]) -> None:
    offenders = []
    for module in modules:
        if not module.name.startswith("cli/"):
            sources = [(node.lineno, alias.name) for node in module.nodes(ast.Import) for alias in node.names]
            sources += [(node.lineno, node.module or "") for node in module.nodes(ast.ImportFrom)]
            offenders += [
                f"{module.name}:{line} imports {source}"
                for line, source in sources
                if source.startswith("oslo_config")
            ]
    _assert_none(offenders)


def test_a_step_writes_under_its_claim_only(modules: list[Module]) -> None:
    """Otherwise a step that comes late undoes what another attempt, a newer update or a deletion has done."""
    door = "conductor/steps/claimed_writes.py"
    offenders = []
    for module in modules:
        if not module.name.startswith("conductor/steps/") or module.name == door:
            continue
        offenders += [
            f"{module.name}:{node.lineno} takes a database that writes: {door} has one for steps"
            for node in module.nodes(ast.ImportFrom)
            if "Database" in {alias.name for alias in node.names}
        ]
        offenders += [
            f"{module.name}:{node.lineno} calls {ast.unparse(node.func)}: only ClaimedWrites writes"
            for node in module.nodes(ast.Call)
            if isinstance(node.func, ast.Attribute)
            and node.func.attr == "write"
            and not ast.unparse(node.func).endswith("_writes.write")
        ]
    _assert_none(offenders)


_OF_HEAT = {
    "features/moves/mapping/software.py": "of the row of Heat that is moved, which was read by project"
}
MADE_IDS = {
    "ConfigId": _OF_HEAT,
    "DeploymentId": _OF_HEAT,
    "StackId": {
        "api/handlers/events.py": "of the path whose stack was read and checked before",
        "api/handlers/stack_list.py": "a marker, which the list compares with the caller's project",
        "api/request.py": "of the path: whose it is is compared before anything else",
        "api/stack_names.py": "in the place of a name: whose it is is compared before anything else",
        "engine/parent_resource.py": "a new nested stack's, made of a key",
        "features/preview/updates.py": "of a stack that is not there",
        "engine/signal_urls.py": "of an address or a key whose signature was verified",
        "engine/stacks.py": "a new stack's",
        "features/diagnosis/inspections.py": "of the row of a task",
        "features/moves/outward/stoker_rows.py": "of rows below a root, by the column parent_id",
        "features/moves/inward/event_rows.py": "of the row of Heat that is moved",
        "features/moves/inward/resource_rows.py": "of the row of Heat that is moved",
        "features/moves/inward/snapshot_rows.py": "of the row of Heat that is moved",
        "features/moves/inward/stack_rows.py": "of the row of Heat that is moved",
        "keystone/delegations.py": "the key of a new delegation",
    },
}
"""Modules that may turn a text into an id of what lies in the own database, each with the reason.

Elsewhere ids come from rows, so that none that a document carries reaches what belongs to others."""


WRITERS = {
    "features/drift/rows.py": "the tables of drift",
    "features/moves/heat/reader.py": "Heat's database",
    "features/moves/outward/statements.py": "Heat's database",
}
"""Modules outside of db/ that make statements which write, with the rows that these write."""


def test_statements_are_made_in_db_and_in_the_rooms_of_features(modules: list[Module]) -> None:
    """Two that write one column differ some day: features write the kernel's rows by functions of db/."""
    offenders = []
    for module in (module for module in modules if not module.name.startswith("db/")):
        is_feature = module.name.startswith("features/")
        for node in module.nodes(ast.Attribute):
            owner = ast.unparse(node.value)
            verb = node.attr.partition("_")[0]
            writes = owner in ("sa", "bulk") and verb in ("insert", "insertion", "update", "delete")
            reads = (owner.endswith("conn") and verb == "execute") or (owner == "sa" and verb == "select")
            if (writes and module.name not in WRITERS) or (reads and not is_feature):
                offenders.append(f"{module.name}:{node.lineno} {owner}.{node.attr}")
        offenders += [
            f"{module.name}:{line} imports {'.'.join(target)}"
            for line, target in module.imports
            if target[:2] == ("db", "schema") and target[-1] == "tables" and not is_feature
        ]
    _assert_none(offenders)


def test_ids_of_what_is_ours_come_from_rows(modules: list[Module]) -> None:
    offenders = []
    for kind, reasons in MADE_IDS.items():
        makers = {
            module.name: node.lineno
            for module in modules
            for node in module.nodes(ast.Call)
            if isinstance(node.func, ast.Name) and node.func.id == kind
            if not module.name.startswith("db/")
        }
        offenders += [f"{name}:{makers[name]} makes a {kind}" for name in sorted(makers.keys() - reasons)]
        offenders += [f"{name} makes no {kind} any more" for name in sorted(reasons.keys() - makers)]
    _assert_none(offenders)


def test_budgets_come_from_the_request_or_the_step(modules: list[Module]) -> None:
    """A computation with a budget of its own would hold up all other threads of a conductor."""
    _assert_none(
        [
            f"{module.name}:{node.lineno} makes a budget: see template.budget.new_budget"
            for module in modules
            for node in module.nodes(ast.Call)
            if isinstance(node.func, ast.Name) and node.func.id == "Budget"
            if not module.name.startswith(BUDGETS)
        ]
    )


def test_everything_is_caught_only_at_the_top_of_a_thread(modules: list[Module]) -> None:
    offenders = []
    for module in modules:
        top = BROAD_EXCEPT.get(module.name)
        allowed = f"once, at the {top}" if top else "nowhere in this module"
        broad = [
            f"{module.name}:{node.lineno} catches everything, which is allowed {allowed}"
            for node in module.nodes(ast.ExceptHandler)
            if node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
        ]
        if len(broad) > (module.name in BROAD_EXCEPT):
            offenders += broad
    _assert_none(offenders)


def test_the_interpreter_judges_no_addresses(modules: list[Module]) -> None:
    """The tables of `ipaddress` are those of its patch release; `keystone/network_addresses` has Stoker's."""
    judgements = {"is_global", "is_private", "is_reserved", "is_loopback", "is_multicast"}
    judgements |= {"is_link_local", "is_site_local", "is_unspecified"}
    _assert_none(
        [
            f"{module.name}:{node.lineno} {node.attr}"
            for module in modules
            for node in module.nodes(ast.Attribute)
            if node.attr in judgements
        ]
    )


def test_only_one_module_writes_to_people(modules: list[Module]) -> None:
    """A terminal obeys what users name their stacks, unless all texts go through one door."""
    offenders = []
    for module in modules:
        if module.name in (TERMINAL, SCREEN):
            continue
        for call in module.nodes(ast.Call):
            function = ast.unparse(call.func)
            owner, _, name = function.rpartition(".")
            is_stream = owner.rpartition(".")[2].lstrip("_") in ("stdout", "stderr", "out", "err", "stream")
            is_console = function == "Console" and any("rich" in name for _, name in module.libraries())
            if function == "print" or is_console or (is_stream and name in ("write", "writelines")):
                offenders.append(
                    f"{module.name}:{call.lineno} calls {function}; {TERMINAL} and {SCREEN} write to people"
                )
        offenders += [
            f"{module.name}:{node.lineno} {node.name} has no HarmlessTable before its base"
            for node in module.nodes(ast.ClassDef)
            for bases in [[ast.unparse(base).rpartition(".")[2] for base in node.bases]]
            if bases[-1:] in (["Lister"], ["ShowOne"]) and bases[0] != "HarmlessTable"
        ]
    _assert_none(offenders)


def test_no_module_has_a_name_that_says_nothing(modules: list[Module]) -> None:
    empty = {"common", "utils", "util", "helpers", "misc"}
    _assert_none([module.name for module in modules if empty & set(module.dotted)])


def test_public_functions_say_what_they_promise(modules: list[Module]) -> None:
    """A method that overrides one need not repeat its promise: methods of classes with bases are exempt."""
    offenders = []
    for module in modules:
        owners: list[ast.Module | ast.ClassDef] = [module.tree]
        owners += [
            node
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not _overrides(node)
        ]
        for owner in owners:
            blocks = [node for node in owner.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            # One docstring serves all overloads of a function.
            documented = {node.name for node in blocks if ast.get_docstring(node)}
            offenders += [
                f"{module.name}:{node.lineno} {node.name} has no docstring"
                for node in blocks
                if not node.name.startswith("_") and node.name not in documented
            ]
    _assert_none(offenders)


def _overrides(node: ast.ClassDef) -> bool:
    """Return whether a class has bases whose methods it may override."""
    own = {"Protocol", "Generic", "NamedTuple", "TypedDict", "Exception"}
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
    return bool(bases - own)
