"""The outcome of each fault, also in runs that were stopped: a line of a file for each."""

import ast
import collections
import functools
import hashlib
import json
import pathlib
import threading
from collections.abc import Sequence

from mutate.kernel import ROOT
from mutate.notes import Notes
from mutate.operators import Mutant
from mutate.verdicts import Outcome, Verdict

DEFINITE = (Outcome.NOTICED, Outcome.ENDLESS)


class Results:
    """A fault that was noticed is so until its function changes; one that lives, until a test does, too.

    :param again: forget the results of earlier runs.
    """

    def __init__(self, path: pathlib.Path, notes: Notes, *, again: bool) -> None:
        self._path = path
        self._notes = notes
        self._lock = threading.Lock()
        self._verdicts: dict[tuple[str, str], tuple[Verdict, str]] = {}
        self._killers: dict[str, collections.Counter[str]] = {}
        if again:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                verdict = Verdict(Outcome(row["outcome"]), row["seconds"], row["test"])
                self._verdicts[row["key"], row["text"]] = verdict, row["tests"]
                self._count(row["fault"].split(":")[0], verdict)

    def outcome(self, mutant: Mutant, tests: Sequence[str]) -> Outcome | None:
        """Return what became of a fault; None: it was not tried with these tests."""
        verdict, tried = self._verdicts.get((mutant.key, _text(mutant)), (None, ""))
        if verdict is None or (verdict.outcome not in DEFINITE and tried != self._name(tests)):
            return None
        return verdict.outcome

    def add(self, mutant: Mutant, tests: Sequence[str], verdict: Verdict) -> None:
        """Store a result at once."""
        text, tried = _text(mutant), self._name(tests)
        row = {"key": mutant.key, "text": text, "tests": tried, "fault": str(mutant)}
        row |= {"outcome": verdict.outcome, "seconds": round(verdict.seconds, 2), "test": verdict.test}
        with self._lock, self._path.open("a") as file:
            self._verdicts[mutant.key, text] = verdict, tried
            self._count(mutant.path, verdict)
            file.write(json.dumps(row) + "\n")

    def _count(self, path: str, verdict: Verdict) -> None:
        if verdict.test:
            self._killers.setdefault(path, collections.Counter())[verdict.test] += 1

    def killers(self, path: str) -> list[str]:
        """Return the tests that have noticed faults of a module, those of the most faults first."""
        with self._lock:
            return [test for test, _ in self._killers.get(path, collections.Counter()).most_common()]

    def _name(self, tests: Sequence[str]) -> str:
        names = sorted(f"{test} {self._notes.file_hash(test)}" for test in tests)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]


def _text(mutant: Mutant) -> str:
    return _texts(mutant.path).get(mutant.line, "")


@functools.cache
def _texts(path: str) -> dict[int, str]:
    """Return line -> a hash of the statement of the module, for example the function, that has it."""
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    hashes: dict[int, str] = {}
    for statement in _functions(ast.parse(text)):
        numbers = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        own = "\n".join(lines[number - 1] for number in numbers)
        hashes |= dict.fromkeys(numbers, hashlib.sha256(own.encode()).hexdigest()[:12])
    return hashes


def _functions(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements of a module; each method comes after its class."""
    statements: list[ast.stmt] = []
    for each in tree.body:
        statements.append(each)
        if isinstance(each, ast.ClassDef):
            statements += each.body
    return statements
