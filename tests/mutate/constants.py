"""The consequences of a constant: other constants of its module, and functions that read them."""

import ast
import typing
from collections.abc import Iterator

IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Dependents(typing.NamedTuple):
    """All that a statement of a module decides."""

    statements: tuple[ast.stmt, ...]  #: it, and those that are to run again after it, in their order
    names: frozenset[str]  #: constants that these assign
    lines: frozenset[int]  #: of the functions that read one of them

    @property
    def public(self) -> frozenset[str]:
        """Names that other modules may import."""
        return frozenset(name for name in self.names if not name.startswith("_"))


def dependents(text: str, line: int) -> Dependents | None:
    """Return what depends on the statement at a line; None: more than constants, for example a class."""
    tree = ast.parse(text)
    first = next((each for each in tree.body if _has(each, line)), None)
    names: set[str] = set()
    statements: list[ast.stmt] = []
    readers: set[str] = set()
    lines: set[int] = set()
    match first:
        case ast.Assign() | ast.AnnAssign():
            names.update(_targets(first))
            statements.append(first)
        # Functions and methods may be called when the module is loaded.
        case ast.FunctionDef(name=name):
            readers.add(name)
            lines.update(_lines(first))
        case ast.ClassDef(body=body) if method := next((each for each in body if _has(each, line)), None):
            if not isinstance(method, ast.FunctionDef):
                return None
            readers.add(first.name if method.name.startswith("__") else method.name)
            lines.update(_lines(method))
        case _:
            return None
    for _ in range(len(tree.body)):
        size = len(readers), len(statements)
        # Functions first: a later statement may call one when the module is loaded.
        for each in tree.body:
            if isinstance(each, (*FUNCTIONS, ast.ClassDef)) and _names(each) & (names | readers):
                if _loaded(each) & (names | readers):
                    return None
                readers.add(each.name)
                lines.update(_lines(each))
        for each in tree.body:
            if isinstance(each, (*FUNCTIONS, ast.ClassDef)) or each in statements:
                continue
            if not isinstance(each, IMPORTS) and _names(each) & (names | readers):
                statements.append(each)
                names.update(_targets(each))
        if size == (len(readers), len(statements)):
            break
    order = {id(each): index for index, each in enumerate(tree.body)}
    statements.sort(key=lambda each: order[id(each)])
    return Dependents(tuple(statements), frozenset(names), frozenset(lines))


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def loaded_names(text: str) -> set[str]:
    """Return the names that a module reads when it is loaded, also in functions that it calls then."""
    body = ast.parse(text).body
    names = set[str]().union(*(_loaded(each) for each in body))
    functions = {each.name: _names(each) for each in body if isinstance(each, FUNCTIONS)}
    while called := functions.keys() & names:
        names |= set[str]().union(*(functions.pop(name) for name in called))
    return names


def _has(statement: ast.stmt, line: int) -> bool:
    return line in _lines(statement)


def _targets(statement: ast.stmt) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name):
                yield node.id


def _names(node: ast.AST) -> set[str]:
    """Return the names and attributes that a node mentions."""
    nodes = list(ast.walk(node))
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    return names | {each.attr for each in nodes if isinstance(each, ast.Attribute)}


def _loaded(statement: ast.stmt) -> set[str]:
    """Return the names that a statement reads when the module is loaded."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    if isinstance(statement, FUNCTIONS):
        parts: list[ast.AST] = [*statement.decorator_list, *statement.args.defaults]
        parts += [each for each in statement.args.kw_defaults if each is not None]
        return set().union(*map(_names, parts))
    if isinstance(statement, ast.ClassDef):
        return _body(statement)
    return _names(statement)


def _body(statement: ast.ClassDef) -> set[str]:
    outside = [*statement.bases, *statement.decorator_list, *(each.value for each in statement.keywords)]
    inside = (_loaded(each) for each in statement.body)
    return set().union(*map(_names, outside), *inside)
