"""A test of the tier `test` may only use what `make test` installs, whatever else the machine has."""

import json
import os
import pathlib
import pickle
import subprocess
import sys

import pytest
from harness import debian, permitted
from harness.debian import ROOT, Package
from harness.permitted import MissingServer, NotOfThisTier
from harness.server import find_program

TESTS = ROOT / "tests"
_, OTHERS = debian.packages_of_profiles(permitted.PROFILES, (ROOT / "bindep.txt").read_text())
BEYOND = OTHERS - {"debian-archive-keyring", "util-linux"}
"""Packages of other tiers; the two are part of every Debian."""


@pytest.fixture
def restricted(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv(permitted.PERMITTED, str(tmp_path))


def test_the_other_tiers_have_programs_that_this_one_lacks() -> None:
    assert {"prometheus", "chromium", "haproxy", "redis-server", "zookeeper", "podman", "systemd"} <= BEYOND


@pytest.mark.parametrize("package", sorted(BEYOND))
@pytest.mark.usefixtures("restricted")
def test_a_program_of_another_tier_is_refused_wherever_it_is_installed(
    package: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / package).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotOfThisTier, match=f"does not install {package} .Debian package {package}."):
        find_program(package, package)


@pytest.mark.usefixtures("restricted")
def test_a_program_of_this_tier_that_is_missing_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingServer, match="etcd is not installed: run `make test-deps`"):
        find_program("etcd", "etcd-server")


@pytest.mark.parametrize("kind", [MissingServer, NotOfThisTier])
def test_the_process_that_starts_servers_can_say_what_is_missing(kind: type[MissingServer]) -> None:
    error = pickle.loads(pickle.dumps(kind("redis-server", "redis-server")))
    assert (type(error), str(error)) == (kind, str(kind("redis-server", "redis-server")))


INSTALLED = {
    package.name: package
    for package in (
        Package("libc", is_minimal=True),
        Package("perl-base", is_minimal=True, provides=("perl",)),
        Package("broker", requirements=(("erlang",), ("perl",), ("cron", "timer-sysv", "anacron"))),
        Package("erlang", requirements=(("libc",), ("gone", "erlang-base"))),
        Package("erlang-base"),
        Package("timer-sysv", requirements=(("timers",),)),
        Package("timers"),
        Package("anacron"),
        Package("browser"),
    )
}


def test_a_tier_has_the_packages_that_its_own_depend_on() -> None:
    needed = {"libc", "perl-base", "broker", "erlang", "erlang-base"}
    assert debian.closure(INSTALLED, ["broker", "absent"]) == needed | {"timer-sysv", "timers"}


def test_of_a_choice_no_package_counts_that_another_tier_has_brought() -> None:
    reached = debian.closure(INSTALLED, ["broker"], without=["timers"])
    assert not {"timers", "timer-sysv"} & reached
    assert "anacron" in reached


def test_the_database_of_dpkg_is_read() -> None:
    status = (
        "Package: aa\nStatus: install ok installed\nPriority: required\nPre-Depends: bb (>= 1)\n"
        "Depends: cc:any | dd, ee\n ff\nProvides: gg (= 1), hh\n\n"
        "Package: ii\nStatus: deinstall ok config-files\n\nPackage: jj\nStatus: install ok installed\n"
    )
    choices = (("bb",), ("cc", "dd"), ("ee",))
    assert debian.installed(status) == {
        "aa": Package("aa", is_minimal=True, requirements=choices, provides=("gg", "hh")),
        "jj": Package("jj"),
    }


RUN = """
import json, os, pathlib, subprocess, sys, traceback
from harness import debian
debian.DPKG = pathlib.Path(sys.argv[1])
from harness import permitted
permitted.restrict()
permitted.watch()
results = []
for planted in json.load(sys.stdin):
    try:
        results.append(str(eval(planted)))
    except Exception as error:
        results.append(type(error).__name__)
print(json.dumps(results))
"""
"""Runs what is planted as a process of pytest would."""
PLANTED = {
    "subprocess.call(['true'])": "0",
    "subprocess.call(['/bin/true'])": "0",
    "subprocess.call([sys.executable, '-c', ''])": "0",
    "subprocess.call(['sh', '-c', 'true && /usr/bin/true'])": "0",
    "subprocess.call(['sleep', '0'])": "FileNotFoundError",
    "subprocess.call(['/usr/bin/sleep', '0'])": "NotOfThisTier",
    "subprocess.call(['sleep', '0'], env={})": "NotOfThisTier",
    "subprocess.call(['sleep', '0'], env={'PATH': '/else:/bin'})": "NotOfThisTier",
    "subprocess.call(['sh', '-c', 'sleep 0'])": "127",
    "subprocess.call(['sh', '-c', 'exec /bin/sleep 0'])": "NotOfThisTier",
    "os.system('/bin/sleep 0')": "NotOfThisTier",
    "os.posix_spawn('/bin/sleep', ['sleep', '0'], {})": "NotOfThisTier",
    f"subprocess.call([{str(ROOT / '.venv/cloud/bin/python')!r}])": "NotOfThisTier",
    f"open({str(ROOT / '.venv/heat/pyvenv.cfg')!r})": "NotOfThisTier",
    "open('.venv/guests/installed.stamp')": "NotOfThisTier",
    "open('/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf')": "NotOfThisTier",
    "open('README.md').name": "README.md",
    "__import__('foreign.part')": "NotOfThisTier",
    "__import__('yaml').__name__": "yaml",
}


def test_a_run_refuses_what_it_does_not_install(tmp_path: pathlib.Path) -> None:
    """The machine is one whose sleep belongs to no package of the tier, and which has a foreign library."""
    dpkg = tmp_path / "dpkg"
    (dpkg / "info").mkdir(parents=True)
    status = "Status: install ok installed"
    (dpkg / "status").write_text(f"Package: base\nEssential: yes\n{status}\n\nPackage: browser\n{status}\n")
    shell = os.path.realpath("/bin/sh")
    (dpkg / "info" / "base.list").write_text(f"/usr/bin/true\n/bin/sh\n{shell}\n")
    (dpkg / "info" / "browser:amd64.list").write_text("/usr/bin/sleep\n")
    site = tmp_path / "site"
    (site / "foreign").mkdir(parents=True)
    (site / "foreign" / "__init__.py").touch()
    (site / "foreign" / "part.py").touch()
    information = site / "foreign-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1\n")
    (information / "top_level.txt").write_text("foreign\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, dpkg],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{site}"},
        input=json.dumps(list(PLANTED)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert dict(zip(PLANTED, json.loads(done.stdout), strict=True)) == PLANTED


@pytest.mark.parametrize(
    ("root", "path", "is_refused"),
    [
        ("/home/a/stoker", "/home/a/heat-templates/hot/a.yaml", True),
        ("/home/a/stoker", "/home/a/stoker-2/README.md", True),
        ("/home/a/stoker", "/home/a/stoker/README.md", False),
        ("/home/a/stoker", "/home/a/.pyenv/versions/3.11.7/lib/python3.11/os.py", False),
        ("/home/a/stoker", "/home/a/python3.12/lib/python3.12/os.py", False),
        ("/home/a/stoker", "/usr/share/zoneinfo/UTC", False),
        ("/home/a/stoker", "/tmp/x/a.yaml", False),
        ("/tmp/clone/stoker", "/tmp/clone/heat-templates/a.yaml", True),
        ("/tmp/clone/stoker", "/tmp/x/a.yaml", False),
        ("/tmp/stoker", "/tmp/x/a.yaml", False),
        ("/stoker", "/etc/hosts", False),
    ],
)
def test_files_of_other_projects_are_refused(root: str, path: str, is_refused: bool) -> None:
    assert permitted.is_of_a_neighbour(path, root, ("/tmp", "/home/a/python3.12")) == is_refused


def test_this_run_uses_the_programs_of_its_tier(pytestconfig: pytest.Config) -> None:
    assert permitted.is_restricted() == (pytestconfig.option.tier == "test")
