"""The files of etc/kolla, by the rules of Kolla's images, on the tests' own servers.

The rules are those of kolla_set_configs and kolla_start, as Kolla 22 (2026.2) has them: files are copied with
an owner and a mode, and the words of the command are run as they are, without a shell.
"""

import json
import pathlib
import stat
import typing
import uuid

import pytest
from harness import templates
from harness.deployment import call
from harness.etcd import Etcd
from harness.ports import HOST, free_port
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.programs import BIN, Program
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from stoker.sealing.sealer import Sealer

Json = typing.Any
FOLDER = pathlib.Path(__file__).parents[2] / "etc" / "kolla"
MOUNTED = "/var/lib/kolla/config_files/"
"""The folder with config.json and the operator's files, in each container."""
ACCOUNTS = {"root", "stoker", "kolla"}
"""Users and groups of an image: those of Kolla, and the service's own."""
KEYS = {"source", "dest", "owner", "perm", "optional", "preserve_properties", "merge"}
SERVICES = sorted(path.parent.name for path in FOLDER.glob("*/config.json"))


def config_of(service: str) -> Json:
    """Return the content of a service's config.json."""
    return json.loads((FOLDER / service / "config.json").read_text())


class Container:
    """A folder in the place of a container's file system.

    :param files: the operator's files, by name.
    """

    def __init__(self, root: pathlib.Path, service: str, files: dict[str, str]) -> None:
        self._root = root
        self._config = config_of(service)
        mounted = root / MOUNTED.strip("/")
        mounted.mkdir(parents=True)
        for name, text in files.items():
            (mounted / name).write_text(text)

    def copy_files(self) -> None:
        """Copy the files that config.json names, as kolla_set_configs does.

        :raises FileNotFoundError: one is missing that is not optional.
        """
        for entry in self._config["config_files"]:
            assert entry.keys() <= KEYS
            source, target = (self._root / entry[key].lstrip("/") for key in ("source", "dest"))
            if entry.get("optional") and not source.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(int(entry["perm"], 8))

    def start(self) -> Process:
        """Start the command; the paths of the container are those of the folder."""
        program, *arguments = self._config["command"].split()
        words = [str(self._root / word.lstrip("/")) if word.startswith("/") else word for word in arguments]
        return Program([BIN / program, *words], log=self._root / "log", env={"PYTHONWARNINGS": "ignore"})


@pytest.fixture
def config(postgresql: PostgreSQL, rabbitmq: RabbitMQ, etcd: Etcd) -> str:
    """The text of a stoker.conf."""
    port = free_port()
    return (
        f"[DEFAULT]\ntransport_url = {rabbitmq.create_vhost()}\nhost = kolla-1\n"
        f"[database]\nconnection = {postgresql.create_database()}\n"
        f"[coordination]\nbackend_url = {etcd.url}\ngroup = {uuid.uuid4()}\n"
        f"[api]\nbind_port = {port}\npublic_url = http://{HOST}:{port}\nauth_strategy = none\nworkers = 1\n"
        f"[secrets]\nkey = {Sealer.generate_key()}\n"
    )


@pytest.mark.commit
@pytest.mark.parametrize("service", SERVICES)
def test_accounts_modes_and_paths_are_those_of_an_image(service: str) -> None:
    config = config_of(service)
    owners = [entry["owner"] for entry in (*config["config_files"], *config["permissions"])]
    assert {name for owner in owners for name in owner.split(":")} <= ACCOUNTS
    for entry in config["config_files"]:
        assert entry["source"].startswith(MOUNTED)
        assert entry["source"].endswith("/stoker.conf") != entry.get("optional", False)
        # The configuration has passwords and keys.
        assert stat.S_IMODE(int(entry["perm"], 8)) & 0o077 == 0


def test_the_three_containers_run_a_stack(tmp_path: pathlib.Path, config: str) -> None:
    assert SERVICES == ["stoker-api", "stoker-bootstrap", "stoker-conductor"]
    containers = {}
    for service in SERVICES:
        containers[service] = Container(tmp_path / service, service, {"stoker.conf": config})
        containers[service].copy_files()
    bootstrap = containers["stoker-bootstrap"].start()
    wait_for(lambda: not bootstrap.is_running, 120, bootstrap.tail)
    assert bootstrap.exit_code == 0, bootstrap.tail()
    daemons = [containers[service].start() for service in ("stoker-api", "stoker-conductor")]
    try:
        daemons[0].wait_for_text("listens on")
        daemons[1].wait_for_text("kolla-1 is in the ring and serves")
        url = next(line for line in config.splitlines() if line.startswith("public_url")).split()[-1]
        document = {
            "stack_name": "first",
            "template": templates.template({"one": {"type": "OS::Heat::None"}}),
        }
        status, answer = call(url, "POST", "/v1/demo/stacks", document)
        assert status == 201, answer
        path = f"/v1/demo/stacks/first/{answer['stack']['id']}"
        wait_for(
            lambda: call(url, "GET", path)[1]["stack"]["stack_status"] == "CREATE_COMPLETE",
            120,
            lambda: "\n".join(daemon.tail() for daemon in daemons),
        )
    finally:
        for daemon in daemons:
            daemon.kill()
