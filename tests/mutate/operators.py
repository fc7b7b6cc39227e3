"""The faults that are planted, one at a time: each changes one expression or statement of a module.

The usual ones (a comparison, a condition, a number, a statement that is left out), and those that tests of
logic do not know: a condition of a WHERE that is dropped, a lock that is not taken.
"""

import ast
import copy
import dataclasses
import hashlib
from collections.abc import Iterator

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
}  # fmt: skip
NAMES = {
    **{"any": "all", "all": "any", "min": "max", "max": "min"},
    **{"READER": "MEMBER", "MEMBER": "READER", "READER_OR_STACK_USER": "READER", "OPERATOR": "ADMIN"},
    "NOBODY": "READER",
}
"""Names that may be taken for each other: functions, and roles of the policy."""
CLAUSES = {"where", "filter", "having", "and_", "or_"}
"""Functions and methods of SQLAlchemy whose arguments are conditions."""
LINKS = {"with_for_update", "limit", "order_by", "distinct"}
"""Methods of a statement that may be left out."""
OF_STATEMENTS = {"clause", "lock", "membership", "term", "column"}
"""Kinds of faults in SQL."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
TEXTS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
"""Methods of a logger: what it writes is words."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A change of one place of a module's text."""

    path: str  #: from the root of the repository
    scope: str  #: the qualified name of the function or class around it; empty: the module
    line: int
    operator: str
    before: str
    after: str
    begin: int  #: in bytes of the text
    end: int
    is_loaded: bool  #: it lies in what runs when the module is loaded, not in a function
    count: int = 0  #: how many equal changes come before it in this scope

    @property
    def key(self) -> str:
        """The name under which it is known as long as its line is not rewritten, wherever that is."""
        text = f"{self.path}\n{self.scope}\n{self.operator}\n{self.before}\n{self.after}\n{self.count}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def fits(self, text: bytes) -> bool:
        """Return whether the module still has at that place what is to be changed."""
        return " ".join(text[self.begin : self.end].decode(errors="replace").split()) == self.before

    def apply(self, text: bytes) -> bytes:
        """Return the module's text with the fault."""
        return text[: self.begin] + self.after.encode() + text[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.scope or 'module'}: {self.before} -> {self.after}"


def mutants(path: str, text: str) -> list[Mutant]:
    """Return all faults that can be planted in a module."""
    numbered: list[Mutant] = []
    counts: dict[str, int] = {}
    for mutant in _Visitor(path, text).changes(ast.parse(text), ""):
        counts[mutant.key] = counts.get(mutant.key, -1) + 1
        numbered.append(dataclasses.replace(mutant, count=counts[mutant.key]))
    return numbered


class _Visitor:
    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = [0]
        for line in text.encode().split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._bytes = text.encode()

    def changes(self, node: ast.AST, scope: str) -> Iterator[Mutant]:
        """Yield the faults of a node and of all that it contains."""
        if isinstance(node, SCOPES):
            inner = f"{scope}.{node.name}" if scope else node.name
            body = inner + ".<locals>" if not isinstance(node, ast.ClassDef) else inner
            for child in node.body:
                yield from self.changes(child, body)
            return
        for operator, replaced, after in _replacements(node):
            yield self._mutant(scope, operator, replaced, after)
        for child in _children(node):
            yield from self.changes(child, scope)

    def _mutant(self, scope: str, operator: str, node: ast.expr | ast.stmt, after: str) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        before = " ".join(self._bytes[begin:end].decode().split())
        name = scope.removesuffix(".<locals>")
        is_loaded = "<locals>" not in scope
        return Mutant(self._path, name, node.lineno, operator, before, after, begin, end, is_loaded)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be changed within a node: no annotations, and no words for people."""
    if isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.value
        return
    if isinstance(node, ast.Call) and _name(node.func) in TEXTS:
        return
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        return
    yield from ast.iter_child_nodes(node)


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield the kinds of faults of this node itself, with what they replace, and by which text."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            changed = copy.copy(node)
            changed.ops = [COMPARISONS[type(operator)]()]
            yield "comparison", node, _text(changed)
        case ast.BoolOp(values=values):
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield "operand", node, _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        case ast.UnaryOp(op=ast.Not()):
            yield "negation", node, _text(node.operand)
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not _is_text(node):
            yield "arithmetic", node, _text(ast.BinOp(node.left, ARITHMETIC[type(operator)](), node.right))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield "term", node, _text(left)
            yield "term", node, _text(right)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            yield "term", node, _text(operand)
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "number", node, repr(value + 1)
        case ast.Constant(value=str() as value) if value.startswith("role:") and " and " in value:
            for role in value.split(" and "):
                yield "rule", node, repr(role)
        case ast.Name(id=name) if name in NAMES:
            yield "function", node, NAMES[name]
        case ast.Call():
            yield from _of_call(node)
        case ast.comprehension(ifs=ifs):
            for condition in ifs:
                yield "filter", condition, "True"
        case ast.stmt():
            yield from _of_statement(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and _is_plain(node.test):
        yield "condition", node.test, f"(not {_text(node.test)})"


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    name = _name(node.func)
    if name in CLAUSES:
        for index in range(len(node.args)):
            rest = node.args[:index] + node.args[index + 1 :]
            if rest:
                yield "clause", node, _text(ast.Call(node.func, rest, node.keywords))
            elif isinstance(node.func, ast.Attribute) and name not in {"and_", "or_"}:
                yield "clause", node, _text(node.func.value)
    if name in LINKS and isinstance(node.func, ast.Attribute):
        yield "lock" if name == "with_for_update" else "clause", node, _text(node.func.value)
        for index in range(len(node.keywords)):
            rest = node.keywords[:index] + node.keywords[index + 1 :]
            yield "lock", node, _text(ast.Call(node.func, node.args, rest))
    if name in {"in_", "not_in", "OneOf"}:
        yield "membership", node, "__import__('sqlalchemy').true()"
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="is_" | "is_not" as name), args=[argument]):
            other = ast.Attribute(value, "is_not" if name == "is_" else "is_")
            yield "term", node, _text(ast.Call(other, [argument], []))
        case ast.Call(func=ast.Attribute(attr="not_"), args=[argument]):
            yield "term", node, _text(argument)
        case ast.Call(func=ast.Attribute(attr="values" | "statement"), keywords=[_, _, *_] as columns):
            for index in range(len(columns)):
                rest = columns[:index] + columns[index + 1 :]
                yield "column", node, _text(ast.Call(node.func, node.args, rest))


def _of_statement(node: ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    match node:
        case ast.Expr(value=ast.Call(func=func)) if _name(func) not in TEXTS:
            yield "statement", node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "result", node, "return None"
        case ast.Raise():
            yield "statement", node, "pass"
        case ast.Continue():
            yield "jump", node, "break"
        case ast.Break():
            yield "jump", node, "continue"
        case ast.AugAssign(op=ast.BitOr()):
            yield "statement", node, "pass"
        case ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            changed = copy.copy(node)
            changed.op = ARITHMETIC[type(operator)]()
            yield "arithmetic", node, ast.unparse(changed)
        case ast.Delete():
            yield "statement", node, "pass"


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _is_plain(node: ast.expr) -> bool:
    """Return whether no other fault turns this condition around."""
    return not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )
