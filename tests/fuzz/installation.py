"""An installation in this process with two projects: the one of the requests, and another with a canary."""

import contextlib
import pathlib
import sqlite3
import typing

import falcon.testing
import sqlalchemy as sa
from fuzz.laws import CANARY, Broken
from harness.heat_schemas import REGISTRY
from simulation.console import Caller, Callers, console_of, report_all
from simulation.test_life import ADDRESSES
from simulation.world import World
from stoker.db import resources
from stoker.db.ids import ResourceId, StackId
from stoker.db.schema import tables
from stoker.resources.contract.views import StackFacts

Json = typing.Any
PROJECT = "tenant"
OTHER = "other"
ROUNDS = 300
"""Rounds of a conductor after which its work must be done."""
SERVER = "11111111-2222-4333-8444-555555555555"
VERSION = "2021-04-16"
CHILD = "heat_template_version: 2021-04-16\nresources: {leaf: {type: OS::Heat::RandomString}}\n"


def _template(text: str, *, name: str = "r") -> Json:
    """Return a template that says the text in each place that the API shows."""
    return {
        "heat_template_version": VERSION,
        "description": text,
        "parameters": {
            "p": {"type": "string", "default": text, "description": text},
            "h": {"type": "string", "default": text, "hidden": True},
        },
        "resources": {
            name: {
                "type": "OS::Heat::TestResource",
                "properties": {"value": {"get_param": "h"}},
                "metadata": {"text": text},
            },
            "server": {"type": "OS::Heat::DeployedServer", "metadata": {"text": text}},
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "child": {"type": "child.yaml"},
            "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": text, "group": "script"}},
        },
        "outputs": {"o": {"description": text, "value": {"get_attr": [name, "output"]}}},
    }


class Installation:
    """API, database and one conductor, as tests/simulation has them.

    :ivar names: values for the placeholders of requests, such as ``$mine.stack_id``.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._database = folder / "sim.sqlite"
        self._copy = folder / "new.sqlite"
        types = {name: type(REGISTRY.get(name)) for name in REGISTRY.names()}
        self.world = World(folder, hosts=1, types=types)
        self.world.set_now = 0.0
        report_all(self.world)
        callers = Callers(self.world, console_of(self.world))
        self.api: falcon.testing.TestClient = callers.owner._api
        self.callers = {
            "member": callers.owner,
            "reader": Caller(self.api, PROJECT, "reader"),
            "guest": Caller(self.api, PROJECT, "heat_stack_user"),
            "operator": callers.operator,
            "nobody": Caller(self.api, ""),
        }
        self.names: dict[str, str] = {"$nil": "00000000-0000-4000-8000-000000000000", "$server": SERVER}
        self._fill("mine", callers.owner, PROJECT, "plain")
        self._fill("victim", Caller(self.api, OTHER, "reader", "member"), OTHER, CANARY)
        self.quiet()
        _copy(self._database, self._copy)

    def _fill(self, name: str, caller: Caller, project: str, text: str) -> None:
        """Create one of everything in a project."""
        base = f"/v1/{project}"

        def made(path: str, body: Json, *keys: str) -> str:
            value = caller.call("POST", f"{base}{path}", body).json
            for key in keys:
                value = value[key]
            return str(value)

        body = {
            "stack_name": name,
            "template": _template(text),
            "files": {"child.yaml": CHILD},
            "tags": [text],
        }
        stack_id = made("/stacks", body, "stack", "id")
        self.quiet()
        path = f"/stacks/{name}/{stack_id}"
        config_id = made("/software_configs", {"name": text, "config": text}, "software_config", "id")
        deployment = {
            "server_id": SERVER,
            "config_id": config_id,
            "input_values": {"i": text},
            "status": "COMPLETE",
        }
        event = caller.get(f"{base}{path}/events")["events"][0]["id"]
        names = {
            "stack_id": stack_id,
            "config_id": config_id,
            "deployment_id": made("/software_deployments", deployment, "software_deployment", "id"),
            "snapshot_id": made(f"{path}/snapshots", {"name": text}, "id"),
            "event_id": event,
            "tenant_id": project,
            "arn": f"arn:openstack:heat::{project}:stacks/{name}/{stack_id}",
        }
        self.quiet()
        for resource in ("server", "handle"):
            names |= self._keys(StackFacts(StackId(stack_id), name, project), resource)
        self.names |= {f"${name}.{key}": value for key, value in names.items()}

    def _keys(self, stack: StackFacts, resource: str) -> dict[str, str]:
        """Return the keys of a resource, and the signatures of its addresses."""
        row = self.world.database.read(lambda conn: resources.by_name(conn, StackId(stack.id), resource).id)
        access = ADDRESSES.guest_access(stack, resource, ResourceId(row))
        return {
            f"{resource}.key": access.access_key,
            f"{resource}.secret": access.secret_key,
            f"{resource}.row": str(row),
            f"{resource}.metadata": access.presigned.signature,
            f"{resource}.signal": ADDRESSES.presigned(stack, resource, ResourceId(row)).signature,
        }

    def quiet(self) -> None:
        """Let the conductor do what is to be done.

        :raises Broken: an error has reached its top.
        """
        self.world.look_all()
        for _ in range(ROUNDS):
            is_busy = self.world.calm_once()
            if self.world.broken:
                raise Broken(
                    "conductor", self.world.broken[0], self.world.broken[0].strip().rpartition("\n")[2]
                )
            if not is_busy:
                return
        raise Broken("conductor", f"it is not done after {ROUNDS} rounds", "rounds")

    def restore(self) -> None:
        """Let the rows be as in the beginning, for a conductor that has seen no others.

        That takes a small part of the time of a new installation.
        """
        world = self.world
        world.broken.clear()
        world.bus.hints.clear()
        for host in list(world.conductors):
            world.kill(host)
        _copy(self._copy, self._database)
        world.start("host0")
        world.look_all()

    @property
    def is_whole(self) -> bool:
        """Return whether the stack of the requests' project is as it was."""
        stack = tables.stack
        query = sa.select(stack.c.name).where(
            stack.c.id == self.names["$mine.stack_id"], stack.c.deleted_at.is_(None)
        )
        return self.world.database.read(lambda conn: conn.execute(query).scalar()) is not None

    def filled(self, value: Json) -> Json:
        """Return a value with the placeholders filled."""
        if isinstance(value, str):
            return self.names.get(value, value) if value.startswith("$") else value
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        return {key: self.filled(item) for key, item in value.items()} if isinstance(value, dict) else value

    def close(self) -> None:
        """Disconnect."""
        self.world.database.close()


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a database, which others may have open."""
    with (
        contextlib.closing(sqlite3.connect(source)) as original,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)


class Renewed:
    """Keeps an installation, and restores it where requests have changed it too much.

    :param folder: an empty folder.
    """

    MOST = 3000
    """Inputs that an installation takes."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._installation: Installation | None = None
        self._used = 0

    def get(self) -> Installation:
        """Return the installation for the next input."""
        self._used += 1
        if self._installation is None:
            self._installation = Installation(self._folder)
            self._used = 0
        elif self._used > self.MOST:
            self.restore()
        return self._installation

    def restore(self) -> None:
        """Let the next input find all as in the beginning."""
        if self._installation is not None:
            self._installation.restore()
        self._used = 0

    def drop(self) -> None:
        """Let the next input have a new one: this one has broken the law, and may be damaged."""
        if self._installation is not None:
            self._installation.close()
        self._installation = None
