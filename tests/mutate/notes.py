"""Which tests run which lines, kept by file of tests: only a file that has changed is recorded again.

Lines are those of a module's text when they were recorded; where it has changed since then, a line is found
again by its text.
"""

import collections
import dataclasses
import difflib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from mutate.kernel import ROOT, sources

FOLDER = ROOT / "var" / "mutate"
TESTS = ("tests/unit", "tests/property", "tests/services/db", "tests/simulation")
"""Folders whose tests run in the process that has the fault; the others start daemons."""
TIER = ("--tier", "test", "--seeds", "4")
_FILES = FOLDER / "tests"
_TEXTS = FOLDER / "texts"


@dataclasses.dataclass
class Notes:
    """The lines that the recorded tests run."""

    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  #: test -> how long it takes
    lines: dict[str, dict[int, set[str]]] = dataclasses.field(default_factory=dict)
    """Module -> line, as the module is now -> tests."""

    def file_hash(self, test: str) -> str:
        """Return what changes with the file of a test."""
        return _hash_of(test.split("::")[0])


@functools.cache
def _hash_of(path: str) -> str:
    file = ROOT / path
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.exists() else ""


def record(folders: Sequence[str], processes: int) -> Notes:
    """Record what has changed, and return all."""
    _FILES.mkdir(parents=True, exist_ok=True)
    _TEXTS.mkdir(exist_ok=True)
    for folder in folders:
        files = [path for path in _tests_in(folder) if not _note_of(path).exists()]
        if files:
            print(f"Noting which lines {len(files)} files of {folder} run …", flush=True)
            with tempfile.TemporaryDirectory() as target:
                _run(files, pathlib.Path(target), processes)
                store(files, pathlib.Path(target))
    return read(folders)


def _tests_in(folder: str) -> Iterator[str]:
    root = ROOT / folder
    for path in sorted(root.rglob("test_*.py")) if root.is_dir() else [root]:
        yield str(path.relative_to(ROOT))


def _note_of(path: str) -> pathlib.Path:
    return _FILES / f"{path.replace('/', '+')}.{_hash_of(path)}.json"


def _run(files: Sequence[str], target: pathlib.Path, processes: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(processes), *TIER]
    with (FOLDER / "recording.log").open("w") as log:
        subprocess.run(
            [*command, "-p", "mutate.recording", "--mutate-folder", str(target), *files],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": "tests"},
            stdout=log,
            check=False,
        )


def store(files: Iterable[str], target: pathlib.Path) -> None:
    """Store what the processes of a run have recorded, by files of tests.

    A file of which a test has failed is not stored, so it is recorded again.
    """
    seconds: dict[str, dict[str, float]] = collections.defaultdict(dict)
    lines: dict[str, dict[str, dict[str, list[int]]]] = collections.defaultdict(dict)
    for document in (json.loads(file.read_text()) for file in target.glob("*.json")):
        for test, duration in document["seconds"].items():
            seconds[test.split("::")[0]][test] = duration
        for path, by_line in document["lines"].items():
            for line, tests in by_line.items():
                for test in tests:
                    of_file = lines[test.split("::")[0]].setdefault(path, {})
                    of_file.setdefault(test, []).append(int(line))
    texts = {path: _stored_text(path) for path in sources()}
    for path in files:
        if failed := [test for test, duration in seconds[path].items() if duration == float("inf")]:
            print(f"{failed[0]} failed; see {FOLDER.relative_to(ROOT)}/recording.log", flush=True)
            continue
        for former in _FILES.glob(f"{path.replace('/', '+')}.*.json"):
            former.unlink()
        note = {
            "seconds": seconds[path],
            "lines": lines[path],
            "texts": {each: texts[each] for each in lines[path]},
        }
        _note_of(path).write_text(json.dumps(note))


def _stored_text(path: str) -> str:
    name = _hash_of(path)
    shutil.copyfile(ROOT / path, _TEXTS / name)
    return name


def read(folders: Sequence[str]) -> Notes:
    """Return the notes of all files that are as they were when they were recorded."""
    notes = Notes()
    for path in (path for folder in folders for path in _tests_in(folder)):
        if not (file := _note_of(path)).exists():
            continue
        document = json.loads(file.read_text())
        notes.seconds |= document["seconds"]
        for module, by_test in document["lines"].items():
            if not (ROOT / module).exists():
                continue
            places = _places(document["texts"][module], module)
            of_module = notes.lines.setdefault(module, {})
            for test, lines in by_test.items():
                for now in {place for line in lines for place in places.get(line, ())}:
                    of_module.setdefault(now, set()).add(test)
    return notes


@functools.cache
def _places(name: str, path: str) -> dict[int, tuple[int, ...]]:
    """Return where the lines of a former text are now: replaced ones are where the new ones are."""
    now = (ROOT / path).read_text().splitlines()
    if name == _hash_of(path):
        return {line: (line,) for line in range(1, len(now) + 1)}
    former = (_TEXTS / name).read_text().splitlines()
    places: dict[int, tuple[int, ...]] = {}
    for tag, begin, end, new_begin, new_end in difflib.SequenceMatcher(
        None, former, now, False
    ).get_opcodes():
        for line in range(begin, end):
            if tag == "equal":
                places[line + 1] = (new_begin + line - begin + 1,)
            else:
                places[line + 1] = tuple(range(new_begin + 1, new_end + 1))
        # What was inserted is run by the tests that run the line before.
        if tag == "insert" and begin:
            places[begin] = (*places.get(begin, ()), *range(new_begin + 1, new_end + 1))
    return places
