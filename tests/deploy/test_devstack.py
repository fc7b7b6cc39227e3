"""The devstack plugin: each phase on a recorded contract of devstack's functions.  Where DEVSTACK_DIR names a
checkout of devstack, they run on its own functions too."""

import configparser
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest
from stoker.db.schema import revisions

ROOT = pathlib.Path(__file__).parents[2]
RUN = pathlib.Path(__file__).parent / "devstack" / "run"
BIN = pathlib.Path(sys.executable).parent
CHECKOUT = os.environ.get("DEVSTACK_DIR")
LIBRARIES = ["contract", *([CHECKOUT] if CHECKOUT else [])]
SCRIPTS = ["devstack/plugin.sh", "devstack/settings", "tools/install-test-deps", "tests/deploy/boot"]
SCRIPTS += ["tools/fresh/run", "tools/fresh/machine", ".ci/run"]
SCRIPTS += ["tests/deploy/devstack/run", "tests/deploy/devstack/contract.sh"]
RECORDED = ["openstack", "systemctl", "a2ensite", "a2dissite", "apachectl", "systemd-tmpfiles"]
RECORDER = '#!/bin/sh\n(IFS="\t"; echo "$(basename "$0")\t$*" >> "$RECORD")\n'
# Nothing is written into the machine's own /etc.
SUDO = """#!/bin/sh
case "$*" in
    tee*/etc/*) exec cat > /dev/null ;;
    *" "/etc/*) exit 0 ;;
esac
exec "$@"
"""


class Stack:
    """A host on which nothing but the plugin's own work is done."""

    def __init__(self, folder: pathlib.Path, library: str) -> None:
        self.folder = folder
        self.library = library
        self.record = folder / "record"
        self.conf = folder / "etc" / "stoker.conf"
        commands = folder / "bin"
        commands.mkdir()
        for name in RECORDED:
            self.command(name, RECORDER)
        self.command("sudo", SUDO)
        self.command("uwsgi", "#!/bin/sh\n")
        for name in ("stoker-manage", "stoker-status"):
            (commands / name).symlink_to(BIN / name)

    def command(self, name: str, text: str) -> None:
        """A program on the path."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *phase: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """One phase; the calls that it made are in `calls` afterwards."""
        self.record.write_text("")
        settings = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "BIN": str(self.folder / "bin"),
            "PYTHON": sys.executable,
            "LIBRARY": self.library,
            "PLUGIN": str(ROOT),
            "RECORD": str(self.record),
            "WORK": str(self.folder),
            "DEST": str(self.folder),
            "DATA_DIR": str(self.folder / "data"),
            "SERVICE_HOST": "192.0.2.7",
            "STOKER_CONF_DIR": str(self.conf.parent),
            "DATABASE_URL": f"sqlite:///{self.folder}/stoker.sqlite",
            **variables,
        }
        return subprocess.run(
            [RUN, *phase],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def must(self, *phase: str, **variables: str) -> list[list[str]]:
        """A phase that must succeed; its calls."""
        done = self.run(*phase, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.calls()

    def calls(self) -> list[list[str]]:
        return [line.split("\t") for line in self.record.read_text().splitlines()]

    def options(self) -> configparser.RawConfigParser:
        parser = configparser.RawConfigParser(default_section="none")
        parser.read(self.conf)
        return parser


@pytest.fixture(params=LIBRARIES)
def stack(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Stack:
    return Stack(tmp_path, request.param)


@pytest.fixture
def recorded(tmp_path: pathlib.Path) -> Stack:
    return Stack(tmp_path, "contract")


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script: str) -> None:
    program = shutil.which("shellcheck")
    assert program, "shellcheck is not installed: run `make test-deps`"
    done = subprocess.run([program, "-x", ROOT / script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("phase", ["stack install", "stack post-config", "stack extra", "unstack", "clean"])
def test_nothing_happens_where_stoker_is_switched_off(recorded: Stack, phase: str) -> None:
    assert recorded.must(*phase.split(), DISABLED="1") == [["define_plugin", "stoker"]]


def test_the_program_comes_with_the_driver_of_the_database(stack: Stack) -> None:
    path = str(stack.folder / "stoker")
    assert ["setup_develop", path, "mysql,etcd,client"] in stack.must("stack", "install")
    calls = stack.must("stack", "install", ENABLED_SERVICES="postgresql")
    assert ["setup_develop", path, "postgresql,etcd,client"] in calls


@pytest.mark.commit
def test_post_config_writes_a_configuration_that_works(recorded: Stack) -> None:
    calls = recorded.must("stack", "post-config")
    uwsgi = str(recorded.conf.parent / "stoker-api-uwsgi.ini")
    assert ["recreate_database", "stoker"] in calls
    assert ["iniset_rpc_backend", "stoker", str(recorded.conf)] in calls
    assert ["configure_keystone_authtoken_middleware", str(recorded.conf), "stoker"] in calls
    assert [
        "write_uwsgi_config",
        uwsgi,
        "stoker.cli.wsgi:application",
        "/orchestration",
        "",
        "stoker-api",
    ] in calls
    assert ["create_service_user", "stoker", "admin"] in calls
    assert ["get_or_create_service", "stoker", "orchestration", "Stoker Orchestration Service"] in calls
    url = "http://192.0.2.7/orchestration/v1/$(project_id)s"
    assert ["get_or_create_endpoint", "orchestration", "RegionOne", url] in calls
    options = recorded.options()
    assert options["coordination"]["backend_url"] == "etcd3+http://192.0.2.7:2379"
    assert options["api"]["public_url"] == "http://192.0.2.7/orchestration"
    assert options["api"]["auth_strategy"] == "keystone"
    command = [BIN / "stoker-manage", "--config-file", recorded.conf, "db", "version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True)
    assert version.stdout.strip() == revisions.NEWEST, "the database was set up"


def test_the_configuration_is_for_its_owner_only_and_keeps_its_key(recorded: Stack) -> None:
    recorded.must("call", "configure_stoker")
    first = recorded.options()["secrets"]["key"]
    assert stat.S_IMODE(recorded.conf.stat().st_mode) == 0o600
    assert stat.S_IMODE((recorded.folder / "data" / "stoker" / "secret-key").stat().st_mode) == 0o600
    recorded.must("call", "configure_stoker")
    assert recorded.options()["secrets"]["key"] == first
    recorded.must("call", "configure_stoker", STOKER_SECRET_KEY=first[::-1])
    assert recorded.options()["secrets"]["key"] == first[::-1]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql+pymysql://u:p@h/stoker?charset=utf8", "mysql+pymysql://u:p@h/stoker?charset=utf8mb4"),
        ("mysql+pymysql://u:p@h/s?charset=utf8&plugin=x", "mysql+pymysql://u:p@h/s?charset=utf8mb4&plugin=x"),
        ("mysql+pymysql://u:p@h/s?charset=utf8mb4", "mysql+pymysql://u:p@h/s?charset=utf8mb4"),
        ("postgresql://u:p@h/s?client_encoding=utf8", "postgresql+psycopg://u:p@h/s?client_encoding=utf8"),
    ],
)
def test_the_database_is_reached_by_our_driver_with_all_of_unicode(
    recorded: Stack, url: str, expected: str
) -> None:
    done = recorded.run("call", "stoker_database_url", DATABASE_URL=url)
    assert done.stdout.strip() == expected


def test_every_conductor_is_a_process_of_its_own(stack: Stack) -> None:
    stack.must("stack", "extra", STOKER_CONDUCTORS="3")
    units = stack.record.read_text()
    if stack.library != "contract":
        units += "".join(path.read_text() for path in (stack.folder / "systemd").glob("*.service"))
    host = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
    for number in (1, 2, 3):
        assert f"/stoker-conductor --config-file {stack.conf} --host {host}-{number}" in units
    assert f"--ini {stack.conf.parent}/stoker-api-uwsgi.ini" in units


def test_unstack_stops_all_of_them_the_api_first(recorded: Stack) -> None:
    stopped = [command[1] for command in recorded.must("unstack") if command[0] == "stop_process"]
    assert stopped == ["stoker-api", "stoker-conductor-1", "stoker-conductor-2"]


def test_clean_removes_the_configuration_and_the_data(recorded: Stack) -> None:
    recorded.must("call", "configure_stoker")
    assert recorded.conf.exists()
    uwsgi = str(recorded.conf.parent / "stoker-api-uwsgi.ini")
    assert ["remove_uwsgi_config", uwsgi, "stoker-api"] in recorded.must("clean")
    assert not recorded.conf.parent.exists()
    assert not (recorded.folder / "data" / "stoker").exists()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ENABLED_SERVICES": "mysql,h-api"}, "disable one of them"),
        ({"STOKER_CONDUCTORS": "many"}, "STOKER_CONDUCTORS must be a whole number"),
        ({"STOKER_CONDUCTORS": "0"}, "STOKER_CONDUCTORS must be a whole number"),
    ],
)
def test_wrong_settings_are_refused_first(stack: Stack, variables: dict[str, str], message: str) -> None:
    done = stack.run("stack", "pre-install", **variables)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


@pytest.mark.skipif(CHECKOUT is None, reason="DEVSTACK_DIR names no checkout of devstack")
def test_devstack_itself_configures_it(tmp_path: pathlib.Path) -> None:
    stack = Stack(tmp_path, str(CHECKOUT))
    # There is no MySQL.
    (tmp_path / "bin" / "stoker-manage").unlink()
    stack.command("stoker-manage", f'#!/bin/sh\n[ "$1" != key ] || exec {BIN}/stoker-manage "$@"\n')
    calls = stack.must("stack", "post-config")
    options = stack.options()
    assert options["database"]["connection"] == "mysql+pymysql://root:pw@127.0.0.1/stoker?charset=utf8mb4"
    assert options["DEFAULT"]["transport_url"] == "rabbit://stackrabbit:pw@127.0.0.1:5672/"
    assert options["keystone_authtoken"]["username"] == "stoker"
    uwsgi = configparser.RawConfigParser()
    uwsgi.read(stack.conf.parent / "stoker-api-uwsgi.ini")
    assert uwsgi["uwsgi"]["module"] == "stoker.cli.wsgi:application"
    assert uwsgi["uwsgi"]["lazy-apps"].strip() == "true"
    requests = [" ".join(command) for command in calls if command[0] == "openstack"]
    assert any("service" in line and "orchestration" in line for line in requests)
    assert any("endpoint" in line and "orchestration/v1/$(project_id)s" in line for line in requests)
