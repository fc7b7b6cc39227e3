"""Contents of a wheel: the package stoker, and what an operator installs with it."""

import argparse
import configparser
import email.message
import email.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from harness.programs import BIN, run
from harness.wheel import build_wheel
from stoker.cli.commands.files import files_of
from stoker.cli.config import about
from stoker.cli.programs import manage

ROOT = pathlib.Path(__file__).parents[2]
DATA = ".data/data/"
"""The folder of a wheel whose files are installed below the prefix."""
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def test_a_wheel_holds_stoker_and_nothing_beside_it(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"stoker"}


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


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.parser.Parser().parsestr(wheel.read(name).decode())


def test_the_metadata_says_who_made_it_and_under_which_licence(metadata: email.message.Message) -> None:
    assert (metadata["Author"], metadata["License-Expression"]) == ("Stoker developers", "Apache-2.0")
    names = {url.partition(",")[0] for url in metadata.get_all("Project-URL", [])}
    assert names == {"Source", "Documentation", "Release notes"}
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_long_description_has_absolute_links_and_a_picture(metadata: email.message.Message) -> None:
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    pictures = re.findall(r'\bsrc(?:set)?="([^"]+)"', text)
    names = [re.fullmatch(r"https://\S+/raw/branch/main/(\S+)", picture) for picture in pictures]
    assert [name and name[1] for name in names] == [
        "doc/images/console-graph-dark.webp",
        "doc/images/console-graph.webp",
    ]
    assert [name[1] for name in names if name and not (ROOT / name[1]).is_file()] == []
    # Each leads to a file of the sources.
    paths = [match[1] for link in links if (match := re.search(r"/branch/main/([^#]+)", link))]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def data_files(wheel: zipfile.ZipFile) -> dict[str, str]:
    """Return the text of each file that is installed below the prefix, by its path there."""
    names = [name for name in wheel.namelist() if DATA in name]
    return {name.partition(DATA)[2]: wheel.read(name).decode() for name in names}


def test_a_wheel_holds_all_that_an_operator_installs(wheel: zipfile.ZipFile) -> None:
    sources = {"constraints.txt": ".", "etc/*.sample": ".", "examples/*.yaml": "examples"}
    sources |= {"etc/grafana/*": "grafana", "etc/haproxy/*": "haproxy", "systemd/*": "systemd"}
    sources |= {f"etc/older_types/{name}/*": f"older_types/{name}" for name in ("environment.d", "templates")}
    expected = {
        str(pathlib.PurePath("share/stoker", target, path.name)): path.read_text()
        for pattern, target in sources.items()
        for path in ROOT.glob(pattern)
    }
    held = data_files(wheel)
    assert {name: text for name, text in held.items() if name.startswith("share/stoker/")} == expected
    assert "stoker/py.typed" in wheel.namelist()


def test_the_command_for_files_lists_each_of_them(wheel: zipfile.ZipFile) -> None:
    paths = [pathlib.PurePath("/opt/stoker", name) for name in data_files(wheel)]
    assert {path for _, path in files_of(paths)} == {str(path) for path in paths}


@pytest.fixture
def helps(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The help text of each program, with those of its commands; no line breaks divide options."""
    monkeypatch.setenv("COLUMNS", "1000")
    texts = {}
    for words in (["stoker", "serve"], ["stoker-api"], ["stoker-conductor"], ["stoker-status"]):
        outcome = run([BIN / words[0], *words[1:], "--help"])
        assert outcome.returncode == 0, outcome.stderr
        texts[words[0]] = outcome.stdout
    app = manage.ManageApp()
    parsers = [point.load()(app, None, name).get_parser(name) for name, point in manage.COMMANDS.items()]
    assert all(isinstance(parser, argparse.ArgumentParser) for parser in parsers)
    texts["stoker-manage"] = "\n".join(parser.format_help() for parser in [app.parser, *parsers])
    return texts


def test_each_program_has_a_man_page_and_completions_with_all_its_options(
    wheel: zipfile.ZipFile, helps: dict[str, str]
) -> None:
    held = data_files(wheel)
    assert helps.keys() == about.PROGRAMS.keys()
    for program, text in helps.items():
        (page,) = [name for name in held if re.fullmatch(rf"share/man/man[18]/{program}\.[18]", name)]
        man = re.sub(r"\\f[BIR]", "", held[page]).replace(r"\-", "-")
        options = set(OPTION.findall(text)) - {"-h", "--help"}
        assert options, program
        bash = held[f"share/bash-completion/completions/{program}"]
        zsh = held[f"share/zsh/site-functions/_{program}"]
        assert f"#compdef {program}" in zsh
        for name, file in {"man": man, "bash": bash, "zsh": zsh}.items():
            assert options - set(OPTION.findall(file)) == set(), (program, name)
    commands = held["share/man/man8/stoker-manage.8"].replace(r"\-", "-")
    assert [name for name in manage.COMMANDS if f'.SS "{name}"' not in commands] == []


def test_the_completion_of_bash_offers_commands_of_a_group(
    wheel: zipfile.ZipFile, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "completion"
    script.write_text(data_files(wheel)["share/bash-completion/completions/stoker-manage"])
    complete = (
        f'source {script}; COMP_WORDS=(stoker-manage ring ""); COMP_CWORD=2; $(complete -p stoker-manage '
        '| sed "s/.*-F \\([^ ]*\\).*/\\1/") stoker-manage "" ring; echo "${COMPREPLY[*]}"'
    )
    outcome = subprocess.run(
        ["bash", "--norc", "-c", complete], capture_output=True, text=True, env={**os.environ}, check=True
    )
    assert {"drain", "plan", "rebalance", "show", "undrain"} <= set(outcome.stdout.split()), outcome.stderr


def test_the_commands_are_installed(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    text = wheel.read(name).decode()
    for command in ("stoker", "stoker-api", "stoker-conductor", "stoker-manage", "stoker-status"):
        assert f"\n{command} = stoker.cli." in text


def _option(name: str) -> str:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser["options"][name]
