"""The diffs of doc/development.md are applied to a copy of the tree; fresh processes show that they work."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.processes import Process

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "doc" / "development.md").read_text()
DOORS = dict(re.findall(r"^### (A .*)\n(?:(?!^#).*\n)*?```diff\n((?:(?!```).*\n)*)```$", PAGE, re.MULTILINE))
NOT_COPIED = ("tests", "doc", "build", "benchmarks", "examples", "releasenotes", "etc", "var")
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {"dice": {"type": "OS::Heat::Dice", "properties": {"sides": 1}}},
    "outputs": {
        "number": {"value": {"get_attr": ["dice", "number"]}},
        "list": {"value": {"list_reverse": ["a", {"get_attr": ["dice", "number"]}, "c"]}},
    },
}
SIMULATION = """
import logging, pathlib, sys
import stoker.conductor.duties.ready_tasks as duty
from simulation.world import World

class Warnings(logging.Handler):
    def emit(self, record):
        found.append(record.getMessage())

found = []
duty.MANY = -1
duty.LOG.addHandler(Warnings())
world = World(pathlib.Path(sys.argv[1]), hosts=2)
assert world.settle(lambda: bool(found), within=200)
print(duty.__file__, found[0])
"""


def apply(diff: str, tree: pathlib.Path) -> None:
    """Apply a diff to a copy of the tree."""
    # Not as a part of a repository that the directory may lie in.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(
        ["git", "apply", "-"], input=diff, cwd=tree, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def copy(parent: pathlib.Path) -> pathlib.Path:
    """Return a copy of the product, in a new folder."""
    tree = parent / "stoker"
    tree.mkdir()
    shutil.copy(ROOT / "__init__.py", tree)
    for package in ROOT.glob("*/__init__.py"):
        folder = package.parent
        if folder.name not in NOT_COPIED:
            shutil.copytree(folder, tree / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy of the product with all diffs."""
    tree = copy(tmp_path_factory.mktemp("doors"))
    for diff in DOORS.values():
        apply(diff, tree)
    return tree


@pytest.fixture(scope="module")
def service(tree: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    env = {"PYTHONPATH": str(tree.parent)}
    running = Service(tmp_path_factory.mktemp("service"), conductors=1, env=env, kind=Process)
    yield running
    running.stop()


def test_the_page_has_every_door() -> None:
    assert set(DOORS) == {"A duty", "A resource type", "A route", "A template function"}


@pytest.mark.parametrize("name", DOORS)
def test_a_door_takes_one_new_file_and_two_lines(name: str, tmp_path: pathlib.Path) -> None:
    files = re.split(r"^diff --git .*\n", DOORS[name], flags=re.MULTILINE)[1:]
    new = [part for part in files if part.startswith("new file mode ")]
    assert len(new) == 1
    added = [line for part in files for line in part.splitlines() if re.match(r"\+(?!\+\+ )", line)]
    assert len(added) - len(re.findall(r"^\+(?!\+\+ )", new[0], re.MULTILINE)) <= 2
    apply(DOORS[name], copy(tmp_path))


@pytest.mark.full
def test_the_resource_type_creates_and_the_function_evaluates(service: Service) -> None:
    path = service.created("t", "s", TEMPLATE)
    outputs = {item["output_key"]: item["output_value"] for item in service.get(path)["stack"]["outputs"]}
    assert outputs == {"number": 1, "list": ["c", 1, "a"]}
    schema = service.get("/v1/t/resource_types/OS::Heat::Dice")
    assert schema["properties"]["sides"]["type"] == "integer"


def test_the_route_answers(service: Service) -> None:
    assert service.get("/v1/t/caller") == {"user": None, "roles": []}


@pytest.mark.full
def test_the_simulation_runs_the_duty(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{tree.parent}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-W", "ignore", "-c", SIMULATION, tmp_path]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{tree}/conductor/duties/ready_tasks.py 0 tasks are ready" in done.stdout
