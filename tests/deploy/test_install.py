"""The walk through doc/install.md: its commands and its production configuration, as they are there, with
what is named in them replaced by servers of the test's own."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest
from harness.deployment import BIN
from harness.etcd import Etcd
from harness.keystone import PASSWORD, Keystone
from harness.keystone import REGION as MAIN_REGION
from harness.memcached import Memcached
from harness.ports import HOST, free_port
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for

TEXT = (pathlib.Path(__file__).parents[2] / "doc" / "install.md").read_text()
REGION = "Walk"
Json = typing.Any


def blocks(heading: str) -> list[str]:
    """The indented blocks below a heading."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert section, heading
    blocks_found = []
    lines = [*section.splitlines(), "end"]
    block: list[str] = []
    for line in lines:
        if line.startswith("    ") or (block and not line.strip()):
            block.append(line[4:])
        elif block:
            blocks_found.append("\n".join(block).strip() + "\n")
            block = []
    return blocks_found


def commands(heading: str, program: str) -> list[list[str]]:
    """Return the commands of a program that the text lets somebody run."""
    lines = [line for block in blocks(heading) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if re.match(rf"(\S*/)?{program} ", line)]


class Walk:
    """Somebody who does what the text says."""

    def __init__(self, folder: pathlib.Path, keystone: Keystone) -> None:
        self.folder = folder
        self.keystone = keystone
        self.port = free_port()
        self.config = folder / "stoker.conf"
        self.daemons: dict[str, Process] = {}
        self.env = {"PYTHONWARNINGS": "ignore"}

    def configure(self, rabbitmq: RabbitMQ, database: str, etcd: Etcd, memcached: Memcached) -> None:
        """The production configuration."""
        (text,) = [block for block in blocks("For production") if block.startswith("[DEFAULT]")]
        name = database.rsplit("/", 1)[1]
        db_port = database.rsplit(":", 1)[1].partition("/")[0]
        replaced = {
            **{f"mq{number}:5672": f"{HOST}:{rabbitmq.port}" for number in (1, 2, 3)},
            "stoker:DBPASS@db1,db2/stoker": f"stoker:DBPASS@{HOST},{HOST}/{name}",
            "etcd3+http://etcd.example.org:2379": etcd.url,
            "https://keystone.example.org/v3": self.keystone.url,
            "https://orchestration.example.org": f"http://{HOST}:{self.port}",
            "mc1:11211,mc2:11211": f"{HOST}:{memcached.port}",
            "/var/lib/stoker": str(self.folder),
            "key = KEY": f"key = {self.stoker('manage', 'key', 'generate').strip()}",
        }
        for old, new in replaced.items():
            assert old in text, old
            text = text.replace(old, new)
        sections = f"[api]\nbind_port = {self.port}\n[coordination]\ngroup = {self.folder.name}\n"
        self.config.write_text(text + sections)
        self.env["PGPORT"] = db_port  # One port in the URL would be that of the first host only.

    def run(self, command: typing.Sequence[object], **more: str) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **self.env, **more},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def stoker(self, program: str, *arguments: str) -> str:
        config = ["--config-file", self.config] if self.config.exists() else []
        return self.run([BIN / f"stoker-{program}", *config, *arguments])

    def openstack(self, user: str, project: str, *arguments: str) -> str:
        access = {
            "OS_AUTH_URL": self.keystone.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            # Other tests have a Stoker in the service catalog, too.
            "OS_REGION_NAME": MAIN_REGION if user == "admin" else REGION,
        }
        return self.run([pathlib.Path(sys.executable).parent / "openstack", *arguments], **access)

    def start(self, name: str, *command: object) -> None:
        program = [BIN / command[0], "--config-file", self.config, *command[1:]]  # type: ignore[operator]
        self.daemons[name] = Process(program, log=self.folder / f"{name}.log", env=self.env)

    def stop(self) -> None:
        codes = {name: daemon.stop() for name, daemon in self.daemons.items() if daemon.is_running}
        assert set(codes.values()) <= {0}, codes


@pytest.fixture
def walk(
    tmp_path: pathlib.Path,
    keystone: Keystone,
    rabbitmq: RabbitMQ,
    postgresql: PostgreSQL,
    etcd: Etcd,
    memcached: Memcached,
) -> Iterator[Walk]:
    configured = Walk(tmp_path, keystone)
    for arguments in commands("What must be there", "rabbitmqctl"):
        rabbitmq.control(*arguments)
    configured.configure(rabbitmq, postgresql.create_database(), etcd, memcached)
    yield configured
    configured.stop()


@pytest.mark.long
def test_the_installation_guide_gives_two_conductors_that_run_stacks(walk: Walk) -> None:
    walk.stoker("manage", "db", "sync")
    assert walk.stoker("manage", "config", "validate", "--connect").endswith("nothing is wrong\n")
    walk.stoker("status", "upgrade", "check")
    walk.keystone.make("region", id=REGION)
    requests = commands("Keystone", "openstack")
    assert len(requests) == 6
    for arguments in requests:
        line = [
            part.replace("RegionOne", REGION).replace("HOST:8004", f"{HOST}:{walk.port}")
            for part in arguments
        ]
        walk.openstack("admin", "admin", *line)
    project = walk.keystone.make("project", name="walker", domain_id="default")
    user = walk.keystone.make("user", name="walker", domain_id="default", password=PASSWORD)
    walk.keystone.grant(user, project, "member")

    walk.start("api", "stoker-api")
    for host in ("walk-1", "walk-2"):
        walk.start(host, "stoker-conductor", "--host", host)
    for host in ("walk-1", "walk-2"):
        walk.daemons[host].wait_for_text("is in the ring and serves", 60)
    walk.daemons["api"].wait_for_text("listens on", 60)

    def both() -> bool:
        ring = walk.stoker("manage", "ring", "show")
        return all(re.search(rf"{host} .* active .*True", ring) for host in ("walk-1", "walk-2"))

    wait_for(both, 180)
    (template,) = [block for block in blocks("The daemons") if block.startswith("heat_template_version")]
    (walk.folder / "first.yaml").write_text(template)
    create, show, delete = commands("The daemons", "openstack")
    assert "CREATE_COMPLETE" in walk.openstack("walker", "walker", *create)
    assert "output_value" in walk.openstack("walker", "walker", *show)
    walk.openstack("walker", "walker", *delete)
    walk.daemons["walk-1"].kill()
    again = [part.replace("first", "second") if part == "first" else part for part in create]
    assert "CREATE_COMPLETE" in walk.openstack("walker", "walker", *again)
