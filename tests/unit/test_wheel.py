"""Contents of a wheel: the package stoker and nothing else."""

import configparser
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "var", "__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built from a copy: a build leaves files behind."""
    base = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, base / "source", ignore=LEFT_OUT)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(base), str(base / "source")], check=True)
    (path,) = base.glob("*.whl")
    return zipfile.ZipFile(path)


def test_a_wheel_holds_stoker_and_nothing_beside_it(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"stoker"}


def test_a_wheel_holds_every_module_of_every_package(wheel: zipfile.ZipFile) -> None:
    packages = [line.strip() for line in _option("packages").split() if line.strip()]
    expected = set()
    for package in packages:
        folder = ROOT.joinpath(*package.split(".")[1:])
        expected |= {f"{package.replace('.', '/')}/{path.name}" for path in folder.glob("*.py")}
    held = {name for name in wheel.namelist() if name.endswith(".py")}
    assert held == expected - {name for name in expected if name.endswith("/conftest.py")}


def test_every_folder_with_modules_is_a_package_that_is_named_or_stays_at_home() -> None:
    named = {name.partition(".")[2].replace(".", "/") for name in _option("packages").split()}
    at_home = {"tests", "benchmarks", "examples", "doc", "tools", "build", "releasenotes"}
    for path in ROOT.rglob("__init__.py"):
        folder = path.parent.relative_to(ROOT)
        if folder.parts and (folder.parts[0] in at_home or folder.parts[0].startswith(".")):
            continue
        assert folder.as_posix().replace(".", "") in named, f"setup.cfg does not name {folder}"


def version_of(source: pathlib.Path) -> str:
    """Return the version that a build of the source would have."""
    program = "import setuptools_scm; print(setuptools_scm.get_version())"
    command = [sys.executable, "-W", "ignore", "-c", program]
    outcome = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return outcome.stdout.strip()


def test_the_version_of_a_tree_is_that_of_its_tag(tmp_path: pathlib.Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    assert version_of(tmp_path).startswith("0.1.dev1+g")
    subprocess.run([*git, "tag", "0.1.0"], check=True)
    assert version_of(tmp_path) == "0.1.0"
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "second"], check=True)
    assert version_of(tmp_path).startswith("0.1.1.dev1+g")


def test_a_tree_without_git_has_the_development_version(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name} == {
        "stoker-0.1.0.dev0.dist-info"
    }


def test_the_commands_are_installed(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    text = wheel.read(name).decode()
    for command in ("stoker", "stoker-api", "stoker-conductor", "stoker-manage", "stoker-status"):
        assert f"\n{command} = stoker.cli." in text


def _option(name: str) -> str:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser["options"][name]
