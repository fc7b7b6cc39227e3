"""The Ansible role: on a machine with a systemd of the test's own, and at a real Keystone."""

import configparser
import json
import os
import pathlib
import re
import subprocess
import sys
import typing
import uuid
from collections.abc import Iterator

import pytest
from deploy.machine import ROOT, Machine
from harness import templates
from harness.deployment import call
from harness.etcd import Etcd
from harness.keystone import PASSWORD, Keystone
from harness.keystone import REGION as MAIN_REGION
from harness.ports import HOST, free_port
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.server import MissingServer
from harness.waiting import wait_for
from harness.wheel import build_wheel
from stoker.sealing.sealer import Sealer

Json = typing.Any
HOME = pathlib.Path(sys.prefix) / "ansible"
FOLDER = ROOT / "deploy" / "ansible"
UNITS = ("stoker-conductor@1", "stoker-conductor@2", "stoker-api")
MANAGE = ("/opt/stoker/bin/stoker-manage", "--config-file", "/etc/stoker/stoker.conf")
REGION = "Playbook"
pytestmark = [pytest.mark.needs("ansible"), pytest.mark.usefixtures("registries")]


def playbook(folder: pathlib.Path, path: pathlib.Path, variables: Json) -> list[str]:
    """Return the command that runs a playbook on this host.

    :param folder: gets the inventory, and all that Ansible stores.
    """
    if not (HOME / "bin" / "ansible-playbook").exists():
        pytest.fail(f"{HOME} is missing: run `make .venv/ansible.stamp`", pytrace=False)
    host = {"ansible_connection": "local", "ansible_python_interpreter": str(HOME / "bin" / "python")}
    inventory = folder / "inventory.json"  # JSON is YAML.
    inventory.write_text(json.dumps({"stoker": {"hosts": {"localhost": host}, "vars": variables}}))
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": HOME / "collections",
        "ANSIBLE_HOME": folder / "home",
        "ANSIBLE_ROLES_PATH": FOLDER / "roles",
        "LC_ALL": "C.UTF-8",
        "PYTHONWARNINGS": "ignore",
    }
    settings = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *settings, str(HOME / "bin" / "ansible-playbook"), "-i", str(inventory), str(path)]


def changes_of(output: str) -> int:
    """Return how many tasks of a playbook have changed something."""
    (count,) = re.findall(r"^localhost +:.* changed=(\d+) ", output, re.MULTILINE)
    return int(count)


class Host:
    """A machine on which the playbook installs Stoker, and nobody else has.

    :ivar config: the sections of stoker.conf.
    :ivar machine: its systemd.
    """

    def __init__(self, folder: pathlib.Path, wheel: pathlib.Path, config: Json) -> None:
        self.config = config
        self.url = config["api"]["public_url"]
        self._folder = folder
        self._wheel = wheel
        self.machine = Machine(folder, config="", watchdog=60)
        self._forget_the_installation()

    def _forget_the_installation(self) -> None:
        """Remove what the harness has installed in the ways of doc/install.md."""
        units = [f"/etc/systemd/system/{unit.name}" for unit in (ROOT / "systemd").glob("*.service")]
        self.machine.run("umount", "/opt/stoker")
        self.machine.run("rmdir", "/opt/stoker")
        self.machine.run("userdel", "stoker")
        self.machine.run("rm", "-r", "/etc/stoker", "/etc/sysusers.d/stoker.conf", *units)
        # Where Ansible stores its files: /tmp of the real machine is not there.
        self.machine.run("mkdir", "-p", str(self._folder))
        self.machine.systemctl("daemon-reload")

    def play(self) -> str:
        """Run the playbook of the whole installation; return its output."""
        variables = {"stoker_wheel": str(self._wheel), "stoker_python": sys.executable}
        command = playbook(self._folder, FOLDER / "site.yml", {**variables, "stoker_config": self.config})
        inventory = self._folder / "inventory.json"
        self.machine.path(str(inventory)).write_text(inventory.read_text())
        self.machine.path(str(self._wheel.parent)).mkdir(parents=True, exist_ok=True)
        self.machine.path(str(self._wheel)).write_bytes(self._wheel.read_bytes())
        return self.machine.run(*command, within=800)

    def processes(self) -> dict[str, str]:
        """Return the main process of each unit, all of which must be active."""
        assert {self.machine.show(unit, "ActiveState") for unit in UNITS} == {"active"}
        return {unit: self.machine.show(unit, "MainPID") for unit in UNITS}

    def ring(self) -> dict[str, str]:
        """Return the state of each conductor."""
        rows = json.loads(self.machine.run(*MANAGE, "ring", "show", "-f", "json"))
        return {row["Host"]: row["State"] for row in rows}


@pytest.fixture(scope="module")
def host(
    tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL, rabbitmq: RabbitMQ, etcd: Etcd
) -> Iterator[Host]:
    port = free_port()
    config = {
        "DEFAULT": {"transport_url": rabbitmq.create_vhost()},
        "database": {"connection": postgresql.create_database()},
        "coordination": {"backend_url": etcd.url, "group": str(uuid.uuid4())},
        "api": {
            "bind_port": port,
            "public_url": f"http://{HOST}:{port}",
            "auth_strategy": "none",
            "workers": 1,
        },
        "secrets": {"key": [Sealer.generate_key(), Sealer.generate_key()]},
    }
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    try:
        installed = Host(tmp_path_factory.mktemp("ansible"), wheel, config)
    except MissingServer as error:
        pytest.fail(str(error), pytrace=False)
    try:
        installed.play()
        yield installed
    finally:
        installed.machine.close()


@pytest.mark.long
def test_the_playbook_installs_a_stoker_that_runs_stacks(host: Host) -> None:
    wait_for(lambda: host.ring() == {"boiler-1": "active", "boiler-2": "active"}, 60)
    document = {"stack_name": "first", "template": templates.template({"one": {"type": "OS::Heat::None"}})}
    status, answer = call(host.url, "POST", "/v1/demo/stacks", document)
    assert status == 201, answer
    path = f"/v1/demo/stacks/first/{answer['stack']['id']}"
    wait_for(
        lambda: call(host.url, "GET", path)[1]["stack"]["stack_status"] == "CREATE_COMPLETE",
        120,
        lambda: host.machine.log(UNITS[0])[-3000:],
    )
    mode = host.machine.run("stat", "-c", "%U %G %a", "/etc/stoker/stoker.conf")
    assert mode == "root stoker 640\n"


@pytest.mark.long
def test_a_second_run_changes_nothing(host: Host) -> None:
    before = host.processes()
    assert changes_of(host.play()) == 0
    assert host.processes() == before


@pytest.mark.long
def test_a_changed_option_restarts_all_and_leaves_drained_what_an_operator_has_drained(host: Host) -> None:
    before = host.processes()
    host.machine.run(*MANAGE, "ring", "drain", "boiler-2", "--wait", "--reason", "a new kernel")
    host.config["conductor"] = {"threads": 7}
    host.play()
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read_string(host.machine.run("cat", "/etc/stoker/stoker.conf"))
    assert parser["conductor"]["threads"] == "7"
    assert not set(before.values()) & set(host.processes().values())
    assert host.ring() == {"boiler-1": "active", "boiler-2": "draining"}
    host.machine.run(*MANAGE, "ring", "undrain", "boiler-2", "--wait")
    host.config["conductor"]["threads"] = 8
    output = host.play()
    assert output.count("Move its slice to the others") == 2, output
    assert host.ring() == {"boiler-1": "active", "boiler-2": "active"}


@pytest.mark.long
def test_a_wrong_option_ends_the_playbook_before_anything_is_written(host: Host) -> None:
    written = host.machine.run("cat", "/etc/stoker/stoker.conf")
    before = host.processes()
    host.config["api"]["bind_prot"] = 1
    try:
        with pytest.raises(AssertionError, match="bind_prot: there is no such option"):
            host.play()
    finally:
        del host.config["api"]["bind_prot"]
    assert host.machine.run("cat", "/etc/stoker/stoker.conf") == written
    assert host.processes() == before


def run(command: list[str], environment: dict[str, str]) -> str:
    """Run a command, which must succeed; return its output."""
    outcome = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_the_role_enters_the_account_and_the_endpoints_once(
    tmp_path: pathlib.Path, keystone: Keystone
) -> None:
    keystone.make("region", id=REGION)
    account = {
        "username": "stoker-of-ansible",
        "password": PASSWORD,
        "project_name": "services-of-ansible",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    config = {"keystone_authtoken": account, "api": {"public_url": "https://orchestration.example.org"}}
    variables = {"stoker_config": config, "stoker_keystone_cloud": "admin", "stoker_keystone_region": REGION}
    admin = {"auth_url": keystone.url, "username": "admin", "password": PASSWORD, "project_name": "admin"}
    admin |= {"user_domain_id": "default", "project_domain_id": "default"}
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text(json.dumps({"clouds": {"admin": {"auth": admin, "region_name": MAIN_REGION}}}))
    tasks = [{"ansible.builtin.import_role": {"name": "stoker", "tasks_from": "keystone"}}]
    play = tmp_path / "play.json"
    play.write_text(json.dumps([{"hosts": "stoker", "gather_facts": False, "tasks": tasks}]))
    command = playbook(tmp_path, play, variables)
    environment = {"OS_CLIENT_CONFIG_FILE": str(clouds)}
    assert changes_of(run(command, environment)) == 5
    assert changes_of(run(command, environment)) == 0
    endpoints = keystone.endpoints(REGION)
    assert endpoints == {
        "public": "https://orchestration.example.org/v1/%(project_id)s",
        "internal": "https://orchestration.example.org/v1/%(project_id)s",
    }
    assert keystone.roles("stoker-of-ansible", "services-of-ansible") == {"service"}
