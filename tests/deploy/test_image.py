"""The image that `make image` builds, and the services of compose.yaml on the tests' own servers."""

import json
import pathlib
import re
import shutil
import subprocess
import typing
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import yaml
from harness.deployment import call
from harness.etcd import Etcd
from harness.podman import BASE, Podman
from harness.ports import HOST, free_port
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.rabbitmq import RabbitMQ
from harness.templates import template
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("registries")
Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
IMAGE = "localhost/stoker"
LARGEST = 150_000_000
"""Bytes that the image may have more than its base."""
CONDUCTORS = ("conductor-1", "conductor-2", "conductor-3")
COMPOSE = ROOT / "compose.yaml"
SAMPLE = ROOT / "etc" / "containers" / "env.sample"
WAITING = template(
    {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
        },
        "word": {"type": "OS::Heat::RandomString", "depends_on": "wait"},
    }
)


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Podman with the image, built of packages of what is in the checkout."""
    folder = tmp_path_factory.mktemp("podman")
    context = tmp_path_factory.mktemp("context")
    for name in ("Containerfile", ".containerignore", "constraints.txt"):
        shutil.copy(ROOT / name, context)
    subprocess.run(["make", "dist"], cwd=ROOT, check=True, capture_output=True, timeout=900)
    (context / "dist").mkdir()
    for wheel in (ROOT / "dist").glob("*.whl"):
        shutil.copy(wheel, context / "dist")
    podman = Podman(folder)
    try:
        podman.make_base()
        podman.build(context, IMAGE)
        yield podman
    finally:
        podman.close()


def substituted(text: str, variables: dict[str, str]) -> str:
    """Return a Compose file's text with its variables, by their defaults where they are not set."""

    def value_of(match: re.Match[str]) -> str:
        name, sign, rest = match.groups()
        value = variables.get(name) or ("" if sign == ":?" else rest or "")
        assert value or sign != ":?", f"{name}: {rest}"
        return value

    return re.sub(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", value_of, text)


def options_of(service: Json) -> list[str]:
    """Return the options of `podman run` for what a service of a Compose file is allowed."""
    options = [f"--tmpfs={folder}" for folder in service["tmpfs"]]
    options += [f"--cap-drop={name}" for name in service["cap_drop"]]
    options += [f"--security-opt={option.replace(':true', '')}" for option in service["security_opt"]]
    return [*options, *(["--read-only"] if service["read_only"] else [])]


class Installation:
    """The services of compose.yaml, with the addresses of servers that run already.

    :param secrets: the file that compose.yaml calls the secret stoker.conf.
    """

    def __init__(
        self, podman: Podman, secrets: pathlib.Path, servers: tuple[RabbitMQ, PostgreSQL, Etcd]
    ) -> None:
        rabbitmq, postgresql, etcd = servers
        self._podman = podman
        self._secrets = secrets
        variables = {"DB_PASSWORD": "db", "MQ_PASSWORD": "mq", "AUTH_STRATEGY": "none"}
        self.services: dict[str, Json] = yaml.safe_load(substituted(COMPOSE.read_text(), variables))[
            "services"
        ]
        self._addresses = {
            "OS_DEFAULT__TRANSPORT_URL": rabbitmq.create_vhost(),
            "OS_DATABASE__CONNECTION": postgresql.create_database(),
            "OS_COORDINATION__BACKEND_URL": etcd.url,
        }
        self.processes: dict[str, Process] = {}
        self.ports = {name: free_port() for name in ("api", *CONDUCTORS)}
        self.url = f"http://{HOST}:{self.ports['api']}"

    def start(self, name: str) -> Process:
        """Start the container of a service; return its process."""
        service = self.services[name]
        port = str(self.ports.get(name, 0))
        environment = {**service["environment"], **self._addresses, "OS_API__PUBLIC_URL": self.url}
        environment |= {"OS_METRICS__PORT": port} if name in CONDUCTORS else {"OS_API__BIND_PORT": port}
        environment["HEALTH_URL"] = f"http://{HOST}:{port}/healthcheck"
        options = [*options_of(service), f"--volume={self._secrets}:/run/secrets/stoker.conf:ro"]
        self.processes[name] = self._podman.start(
            name, IMAGE, service["command"], options=options, environment=environment
        )
        return self.processes[name]

    def is_healthy(self, name: str) -> bool:
        """Return whether a service answers to the health check of compose.yaml, run in its container."""
        check = self.services[name]["healthcheck"]["test"]
        assert check[0] == "CMD"
        try:
            self._podman.run("exec", name, *check[1:])
        except AssertionError:
            return False
        return True

    def status_of(self, path: str) -> str:
        """Return the status of a stack, by its path."""
        status, answer = call(self.url, "GET", path)
        assert status == 200, answer
        return str(answer["stack"]["stack_status"])

    def wait_serves(self, name: str) -> None:
        """Wait until a service says on its port that it serves."""

        def serves() -> bool:
            try:
                address = f"http://{HOST}:{self.ports[name]}/healthcheck"
                return bool(urllib.request.urlopen(address, timeout=10).status == 200)
            except (urllib.error.URLError, OSError):
                return False

        wait_for(serves, 120, self.processes[name].tail)


@pytest.fixture(scope="module")
def installation(
    podman: Podman,
    rabbitmq: RabbitMQ,
    postgresql: PostgreSQL,
    etcd: Etcd,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installation:
    """All services of Stoker, started in the order that compose.yaml says."""
    generator = podman.start("key", IMAGE, ["stoker-manage", "key", "generate"])
    wait_for(lambda: not generator.is_running, 60)
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.conf"
    secrets.write_text(f"[secrets]\nkey = {generator.text().strip()}\n")
    # As install.md says: containers run as another user than the one who wrote it.
    secrets.chmod(0o444)
    secrets.parent.chmod(0o755)
    installation = Installation(podman, secrets, (rabbitmq, postgresql, etcd))
    schema = installation.start("schema")
    wait_for(lambda: not schema.is_running, 120, schema.tail)
    assert schema.exit_code == 0, schema.tail()
    for name in ("api", *CONDUCTORS):
        installation.start(name)
    for name in ("api", *CONDUCTORS):
        installation.wait_serves(name)
    return installation


@pytest.mark.long
def test_the_image_is_small_and_runs_as_nobody_of_the_host(podman: Podman) -> None:
    image, base = (json.loads(podman.run("image", "inspect", name))[0] for name in (IMAGE, BASE))
    assert image["Size"] - base["Size"] <= LARGEST
    assert image["Config"]["User"] == "1000:1000"
    assert image["Healthcheck"]["Test"][0] == "CMD"


@pytest.mark.long
def test_a_stack_continues_on_another_container_after_a_kill(
    installation: Installation, podman: Podman
) -> None:
    for name in ("api", *CONDUCTORS):
        assert installation.is_healthy(name)
    document = {"stack_name": "first", "template": WAITING}
    status, answer = call(installation.url, "POST", "/v1/demo/stacks", document)
    assert status == 201, answer
    path = f"/v1/demo/stacks/first/{answer['stack']['id']}"
    wait_for(
        lambda: (
            call(installation.url, "GET", f"{path}/resources/wait")[1]["resource"]["resource_status"]
            == "CREATE_IN_PROGRESS"
        ),
        60,
    )
    for name in CONDUCTORS[:2]:
        podman.run("kill", "-s", "KILL", name)
        wait_for(lambda name=name: not installation.processes[name].is_running, 60)
    document = {"status": "SUCCESS", "reason": "", "data": "", "id": "1"}
    status, answer = call(installation.url, "POST", f"{path}/resources/handle/signal", document)
    assert status == 200, answer
    wait_for(lambda: installation.status_of(path) == "CREATE_COMPLETE", 120)
    assert call(installation.url, "DELETE", path)[0] == 204
    wait_for(
        lambda: call(installation.url, "GET", path)[1]["stack"]["stack_status"] == "DELETE_COMPLETE", 120
    )


@pytest.mark.long
def test_a_terminated_container_ends_in_order(installation: Installation, podman: Podman) -> None:
    name = CONDUCTORS[2]
    podman.run("kill", "-s", "TERM", name)
    wait_for(lambda: not installation.processes[name].is_running, 120, installation.processes[name].tail)
    assert installation.processes[name].exit_code == 0


@pytest.mark.commit
def test_the_sample_names_each_variable_of_the_compose_file() -> None:
    variables = set(re.findall(r"\$\{(\w+)", COMPOSE.read_text())) - {"STOKER_SECRETS"}
    assert set(re.findall(r"^#? ?(\w+)=", SAMPLE.read_text(), re.MULTILINE)) == variables


@pytest.mark.commit
def test_each_server_keeps_its_data_and_each_daemon_waits_until_it_is_healthy() -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    services = document["services"]
    servers = {
        name: service for name, service in services.items() if "command" not in service or name == "etcd"
    }
    assert servers.keys() == {"postgresql", "rabbitmq", "etcd"}
    for server in servers.values():
        assert server["healthcheck"]["test"][0].startswith("CMD")
        assert {volume.partition(":")[0] for volume in server["volumes"]} <= document["volumes"].keys()
    healthy = {"condition": "service_healthy"}
    waits = {"schema": {"condition": "service_completed_successfully"}, "rabbitmq": healthy, "etcd": healthy}
    assert [services[name]["depends_on"] for name in ("api", *CONDUCTORS)] == [waits] * 4
    assert services["schema"]["depends_on"] == {"postgresql": healthy}
