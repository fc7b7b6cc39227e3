"""The benchmarks run, on little.  Whether a measurement is good a benchmark says itself, by its exit code."""

import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SMALL = {
    "api": [
        *("--clients", "4", "--requests", "60", "--stacks", "2000", "--resources", "100", "--reads", "5"),
    ],
    "cloud": ["--repeat", "1", "--servers", "2"],
    "breakpoints": ["--stacks", "60", "--seconds", "3"],
    "cancel": ["--steps", "10", "--runs", "5", "--blocked", "3"],
    "coverage": ["examples", "tests/cloud/templates"],
    "drift": ["--resources", "40"],
    "end_to_end": ["--flat", "10", "--chain", "5", "--repeat", "1"],
    "expressions": ["--calls", "50"],
    "guests": ["--guests", "20", "--every", "1", "--seconds", "4", "--changed", "5"],
    "check": [],
    "import_heat": ["--stacks", "50"],
    "idle": ["--few", "10", "--stacks", "1000", "--seconds", "3"],
    "nested": ["--children", "20", "--depth", "2", "--width", "2", "--wakes", "5"],
    "ring": [],
    "timeouts": ["--stacks", "60", "--within", "10"],
}
"""Arguments that make each quick."""
PARTS = {"api_floor", "canary_stack", "floor"}
"""Modules that other benchmarks import."""
TRIED_ELSEWHERE = {"canary"}
"""Programs that work on an installation which is there: tests/client/test_canary.py."""


def test_each_benchmark_is_tried_here() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} - PARTS - TRIED_ELSEWHERE == set(SMALL)


def test_the_documentation_names_only_benchmarks_that_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "doc").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text())}
    assert named
    assert named <= {*SMALL, *TRIED_ELSEWHERE}


@pytest.mark.long
@pytest.mark.parametrize(("name", "arguments"), SMALL.items(), ids=SMALL)
def test_a_benchmark_runs(name: str, arguments: Sequence[str]) -> None:
    command = [sys.executable, "-W", "ignore", BENCHMARKS / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d", done.stdout), done.stdout
