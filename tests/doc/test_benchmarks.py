"""The benchmarks run, on little.  Whether a measurement is good a benchmark says itself, by its exit code."""

import json
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
    "crowded": ["--stacks", "2000", "--runs", "30"],
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
    "scaling": ["--resources", "40", "--seconds", "0.05", "--conductors", "1,2"],
    "stages": ["--requests", "5"],
    "sizing": ["--stacks", "4", "--clients", "2"],
    "timeouts": ["--stacks", "60", "--within", "10"],
}
"""Arguments that make each quick."""
PARTS = {"api_floor", "canary_stack", "floor", "own_installation", "processes"}
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


TEMPLATES = {
    "bad/length.yaml": """\
heat_template_version: 2018-08-31
resources: {a: {type: OS::Heat::RandomString, properties: {length: long}}}
""",
    "bad/lists.yaml": "heat_template_version: 2018-08-31\nparameters: [a]\nresources: [1]",
    "bad/sections.json": '{"AWSTemplateFormatVersion": "2010-09-09", "Parameters": [1], "Resources": [1]}',
    "broken.yaml": "heat_template_version: 2018-08-31\nresources: {a: [",
    "cfn.template": """\
{"AWSTemplateFormatVersion": "2010-09-09", "Parameters": {"Size": {"Type": "Number"}},
 "Resources": {"a": {"Type": "AWS::RDS::DBInstance"}}}
""",
    "good.json": """\
{"heat_template_version": "2018-08-31", "resources": {"a": {"type": "OS::Heat::RandomString"}}}
""",
    "needs.yaml": """\
heat_template_version: 2018-08-31
parameters: {length: {type: number, constraints: [{range: {min: 3}}]}}
resources: {a: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}}
""",
    "values.yaml": "size: 3",
}
RESULTS = {
    "bad/length.yaml": "refused",
    "bad/lists.yaml": "refused",
    "bad/sections.json": "refused",
    "broken.yaml": "unreadable",
    "cfn.template": "lacks types",
    "good.json": "would run",
    "needs.yaml": "would run",
}


def coverage(*arguments: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", BENCHMARKS / "coverage.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)


@pytest.mark.long
def test_templates_of_a_folder_are_judged_one_by_one(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "f"
    for name, text in TEMPLATES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "nowhere.yaml").symlink_to("nothing")
    done = coverage(folder, "--json", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    results = {item["name"]: item for item in json.loads((tmp_path / "results").read_text())}
    assert {name: item["result"] for name, item in results.items()} == {
        f"f/{name}": result for name, result in RESULTS.items()
    }
    assert results["f/cfn.template"]["lacks"] == ["AWS::RDS::DBInstance"]
    assert done.stdout.startswith(
        "7 templates; 2 would run (28.6 %)\n1 lacks types, 3 refused, 1 unreadable\n"
    )


def test_a_folder_that_does_not_exist_is_named(tmp_path: pathlib.Path) -> None:
    done = coverage(tmp_path / "none")
    assert (done.returncode, f"{tmp_path}/none is no directory" in done.stderr) == (2, True)
