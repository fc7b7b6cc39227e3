"""The packages that `make dist` builds, installed far from the sources, on each Python that is here."""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Sequence

import pytest
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = "postgresql,etcd"
PROGRAMS = ("stoker", "stoker-api", "stoker-conductor", "stoker-manage", "stoker-status")
pytestmark = pytest.mark.usefixtures("registries")


def interpreter(version: str) -> str | None:
    """Return the path of a Python of that version; None: there is none here."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    pyenv = sorted(pathlib.Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return str(pyenv[-1]) if pyenv else shutil.which(f"python{version}")


def output_of(command: Sequence[object], folder: pathlib.Path) -> str:
    """Run a command in a folder; return what it prints."""
    outcome = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert outcome.returncode == 0, (command, outcome.stdout, outcome.stderr)
    return outcome.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that `make dist` fills, in a clone with a tag."""
    clone = tmp_path_factory.mktemp("clone") / "stoker"
    output_of(["git", "clone", "-q", ROOT, clone], clone.parent)
    for name in output_of(["git", "ls-files", "-m", "-o", "--exclude-standard"], ROOT).split():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    output_of([*git, "add", "-A"], clone)
    output_of([*git, "commit", "-q", "--allow-empty", "-m", "release"], clone)
    output_of([*git, "tag", "7.8.9"], clone)
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    output_of(["make", "dist", "V=1"], clone)
    return clone / "dist"


def test_the_files_have_the_version_of_the_tag_and_their_checksums(dist: pathlib.Path) -> None:
    names = {"stoker-7.8.9-py3-none-any.whl", "stoker-7.8.9.tar.gz", "stoker-7.8.9.cdx.json"}
    assert {path.name for path in dist.iterdir()} == {*names, "SHA256SUMS"}
    sums = dict(reversed(line.split()) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in names}


def test_the_sbom_names_stoker_and_each_library_that_is_pinned(dist: pathlib.Path) -> None:
    document = json.loads((dist / "stoker-7.8.9.cdx.json").read_text())
    assert document["bomFormat"] == "CycloneDX"
    components = {re.sub(r"[-_.]+", "-", c["name"]).lower(): c["version"] for c in document["components"]}
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    assert components["stoker"] == "7.8.9"
    assert {name: components.get(name) for name in pins} == pins


def test_the_readme_installs_the_wheel_with_its_drivers(dist: pathlib.Path, tmp_path: pathlib.Path) -> None:
    section = (ROOT / "README.md").read_text().partition("## Install it\n")[2].partition("\n## ")[0]
    first, *others = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    assert first == "make dist"
    commands = "\n".join(others).replace("/opt/stoker", str(tmp_path / "opt"))
    output_of(["bash", "-euc", commands], dist.parent)
    drivers = "import stoker, psycopg, etcd3gw; print(stoker.__file__)"
    assert str(tmp_path) in output_of([tmp_path / "opt" / "bin" / "python", "-c", drivers], tmp_path)


class Prefix:
    """An environment with nothing in it but Stoker.

    :param python: the interpreter that makes it.
    """

    def __init__(self, folder: pathlib.Path, python: str, wheel: pathlib.Path) -> None:
        self.folder = folder
        self.bin = folder / "opt" / "bin"
        output_of([python, "-m", "venv", folder / "opt"], folder)
        constraints = ["-c", ROOT / "constraints.txt"]
        output_of([self.bin / "pip", "install", "-q", *constraints, f"{wheel}[{EXTRAS}]"], folder)

    def run(self, program: str, *arguments: object) -> str:
        """Run a program; return what it prints."""
        return output_of([self.bin / program, *arguments], self.folder)


@pytest.fixture(scope="module", params=VERSIONS)
def prefix(
    request: pytest.FixtureRequest, dist: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Prefix:
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"Python {request.param} is not installed")
    return Prefix(tmp_path_factory.mktemp("prefix"), python, dist / "stoker-7.8.9-py3-none-any.whl")


def test_the_installation_is_consistent_and_its_programs_say_what_they_are(prefix: Prefix) -> None:
    assert prefix.run("pip", "check") == "No broken requirements found.\n"
    for program in PROGRAMS:
        assert f"usage: {program}" in prefix.run(program, "--help")
    assert "7.8.9" in prefix.run("stoker", "--version")


def test_the_installed_files_are_where_the_command_says(prefix: Prefix) -> None:
    rows = json.loads(prefix.run("stoker-manage", "files", "-f", "json"))
    paths = {pathlib.Path(row["File"]) for row in rows}
    assert all(path.is_file() and path.is_relative_to(prefix.folder.resolve()) for path in paths)
    expected = {"stoker-api.service", "stoker.sysusers", "stoker.conf.sample", "policy.yaml.sample"}
    expected |= {"stoker.json", "first_stack.yaml", "stoker-manage.8", "_stoker-manage"}
    assert expected <= {path.name for path in paths}
    assert re.search(r"STOKER-MANAGE.*8", output_of(["man", "-l", manual_of(paths)], prefix.folder))


def manual_of(paths: set[pathlib.Path]) -> pathlib.Path:
    (page,) = [path for path in paths if path.name == "stoker-manage.8"]
    return page


@pytest.fixture
def service(prefix: Prefix) -> Iterator[str]:
    """A service of the installed program; its address."""
    port = free_port()
    command = [prefix.bin / "stoker", "serve", "--data-dir", prefix.folder / "data", "--port", str(port)]
    process = Process([*command, "--conductors", "1"], log=prefix.folder / "log", env={"PYTHONPATH": ""})
    process.wait_for_text("Stoker serves at", 120)
    yield f"http://{HOST}:{port}"
    assert process.stop() == 0


def answer(url: str, body: object = None) -> dict[str, dict[str, str]]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_it_sets_up_a_database_and_its_first_template_becomes_a_stack(prefix: Prefix, service: str) -> None:
    config = prefix.folder / f"{uuid.uuid4()}.conf"
    config.write_text(f"[database]\nconnection = sqlite:///{prefix.folder}/other.sqlite\n")
    prefix.run("stoker-manage", "--config-file", config, "db", "sync")
    (row,) = json.loads(prefix.run("stoker-manage", "files", "first_stack", "-f", "json"))
    body = {"stack_name": "first", "template": pathlib.Path(row["File"]).read_text()}
    stack = answer(f"{service}/v1/demo/stacks", body)["stack"]
    address = f"{service}/v1/demo/stacks/first/{stack['id']}"

    def status() -> str:
        return answer(address)["stack"]["stack_status"]

    wait_for(lambda: status() != "CREATE_IN_PROGRESS", 120)
    assert status() == "CREATE_COMPLETE"
