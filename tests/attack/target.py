"""The installation that is attacked: two projects, a stack of each, and the ways to send something."""

import contextlib
import dataclasses
import http.client
import json
import socket
import time
import typing
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import requests
from fuzz.laws import CANARY

Json = typing.Any
PATIENCE = 180.0
"""Seconds in which a stack must end."""
ANSWERS_WITHIN = 60.0
"""Seconds after which a request counts as one without an answer."""
SKIPPED = "skipped"
LAST_STATUS = "SNAPSHOT_COMPLETE"
"""Status of the victim's stack, of which a snapshot was taken."""


class Unexpected(Exception):
    """An answer is not the one that must come."""


class Skip(Exception):
    """The case does not apply to this installation."""


@dataclasses.dataclass(frozen=True)
class Party:
    """A user of a project.

    :ivar token: function that returns a token; None: the installation has no Keystone.
    """

    project: str
    token: Callable[[], str] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers that identify the user."""
        return {} if self.token is None else {"X-Auth-Token": self.token()}


class RoleCallers(typing.Protocol):
    """The users of all roles; see callers.py."""

    @property
    def of_roles(self) -> Mapping[str, Party]: ...
    @property
    def unscoped(self) -> Mapping[str, Party]: ...


TEMPLATE: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"text": {"type": "string"}, "secret": {"type": "string", "hidden": True}},
    "resources": {
        "value": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"get_param": "secret"}},
            "metadata": {"text": {"get_param": "text"}},
        },
        "server": {
            "type": "OS::Heat::DeployedServer",
            "properties": {"software_config_transport": "POLL_SERVER_CFN"},
            "metadata": {"text": {"get_param": "text"}},
        },
        "polled": {
            "type": "OS::Heat::DeployedServer",
            "properties": {"software_config_transport": "POLL_TEMP_URL"},
            "metadata": {"text": {"get_param": "text"}},
        },
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
    },
    "outputs": {
        "text": {"value": {"get_param": "text"}, "description": {"get_param": "text"}},
        "server": {"value": {"get_attr": ["server", "os_collect_config"]}},
        "polled": {"value": {"get_attr": ["polled", "os_collect_config"]}},
        "endpoint": {"value": {"get_attr": ["handle", "endpoint"]}},
        "token": {"value": {"get_attr": ["handle", "token"]}},
    },
}


@dataclasses.dataclass
class Target:
    """The installation.

    :ivar root: address of the API without version and project, without a slash at the end.
    :ivar names: values of the variables of paths that are the victim's.
    :ivar callers: users of all roles; None: only the two parties are known.
    """

    root: str
    attacker: Party
    victim: Party
    run: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex[:8])
    names: dict[str, str] = dataclasses.field(default_factory=dict)
    stacks: dict[str, str] = dataclasses.field(default_factory=dict)
    outputs: dict[str, Json] = dataclasses.field(default_factory=dict)
    session: requests.Session = dataclasses.field(default_factory=requests.Session)
    callers: RoleCallers | None = None

    def needs_callers(self) -> RoleCallers:
        """Return the users of all roles.

        :raises Skip: they are not known.
        """
        if self.callers is None:
            raise Skip("only the users of an installation of its own have all roles")
        return self.callers

    @property
    def has_keystone(self) -> bool:
        """Return whether users need a token."""
        return self.attacker.token is not None

    def needs_keystone(self) -> None:
        """Skip a case where users need no token.

        :raises Skip: they do not.
        """
        if not self.has_keystone:
            raise Skip("the installation has no Keystone")

    # -- sending -----------------------------------------------------------------------------------

    def send(
        self, method: str, path: str, body: Json = None, party: Party | None = None, **more: typing.Any
    ) -> requests.Response:
        """Send a request of a party, by default of the attacker; redirects are not followed.

        :param more: ``headers`` besides those of the party, ``data`` in place of the body, ``params``.
        """
        headers = {**(party or self.attacker).headers, **more.pop("headers", {})}
        if body is not None:
            more["data"] = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        url = path if path.startswith("http") else f"{self.root}{path}"
        return self.session.request(
            method, url, headers=headers, allow_redirects=False, timeout=ANSWERS_WITHIN, **more
        )

    def raw(self, data: bytes | Sequence[bytes], pause: float = 0.0) -> bytes:
        """Send bytes over a connection of their own, and return the reply."""
        url = urllib.parse.urlsplit(self.root)
        port = url.port or 80
        reply = b""
        try:
            with socket.create_connection((url.hostname or "", port), timeout=10.0) as client:
                for part in [data] if isinstance(data, bytes) else data:
                    client.sendall(part)
                    time.sleep(pause)
                while piece := client.recv(65536):
                    reply += piece
        except OSError:
            pass  # It was closed, or stays open without an answer: what has come counts.
        return reply

    def needs_plain(self) -> None:
        """Skip a case that speaks HTTP itself where that is inside of TLS.

        :raises Skip: the address begins with https.
        """
        if not self.root.startswith("http://"):
            raise Skip("the address is not a plain one")

    def path(self, party: Party, *parts: str) -> str:
        """Return a path in a party's project."""
        return "/".join(["/v1", party.project, *parts])

    # -- what is there -----------------------------------------------------------------------------

    def set_up(self) -> None:
        """Create a stack of each project, and wait until both are complete.

        :raises Unexpected: that fails.
        """
        for name, party, text in (("mine", self.attacker, "plain"), ("theirs", self.victim, CANARY)):
            stack_name = f"attack-{name}-{self.run}"
            body = {
                "stack_name": stack_name,
                "template": TEMPLATE,
                "parameters": {"text": text, "secret": text},
            }
            answer = self.send("POST", self.path(party, "stacks"), body, party)
            expect(answer, 201)
            stack_id = answer.json()["stack"]["id"]
            self.stacks[name] = self.path(party, "stacks", stack_name, stack_id)
            self.outputs[name] = self._settled(self.stacks[name], party)
        self._fill()

    def ended(self, path: str, party: Party | None = None) -> Json:
        """Wait until the action of a stack has ended, and return the stack.

        :raises Unexpected: it does not end.
        """
        end = time.monotonic() + PATIENCE
        while True:
            stack = self.send("GET", path, party=party).json()["stack"]
            if not stack["stack_status"].endswith("IN_PROGRESS"):
                return stack
            if time.monotonic() > end:
                raise Unexpected(f"{path} does not end: {stack['stack_status']}")
            time.sleep(0.2)

    @contextlib.contextmanager
    def attackers_stack(self, body: Json) -> Iterator[str]:
        """Create a stack of the attacker, and yield its path once its action has ended; then delete it."""
        name = f"attack-stack-{self.run}"
        answer = self.send("POST", self.path(self.attacker, "stacks"), {"stack_name": name, **body})
        expect(answer, 201)
        path = self.path(self.attacker, "stacks", name, answer.json()["stack"]["id"])
        try:
            self.ended(path)
            yield path
        finally:
            self.send("DELETE", path)
            self.ended(path)

    def check_victim(self) -> None:
        """Check that nothing has changed the victim's stack.

        :raises Unexpected: something has.
        """
        stack = self.send("GET", self.stacks["theirs"], party=self.victim).json()["stack"]
        if stack["stack_status"] != LAST_STATUS:
            raise Unexpected(f"the victim's stack is {stack['stack_status']}")

    def own_names(self) -> dict[str, str]:
        """Return values of the variables of paths: the attacker's, or the victim's where they have none."""
        _, _, project, _, name, stack_id = self.stacks["mine"].split("/")
        return {**self.names, "tenant_id": project, "stack_name": name, "stack_id": stack_id}

    def _settled(self, path: str, party: Party, status: str = "CREATE_COMPLETE") -> Json:
        stack = self.ended(path, party)
        if stack["stack_status"] != status:
            raise Unexpected(f"{path}: {stack['stack_status_reason']}")
        return {output["output_key"]: output["output_value"] for output in stack["outputs"]}

    def _fill(self) -> None:
        """Create what the victim has besides, and note the names of all."""
        _, _, project, _, name, stack_id = self.stacks["theirs"].split("/")
        victim = self.victim
        config = self.send(
            "POST", self.path(victim, "software_configs"), {"name": CANARY, "config": CANARY}, victim
        ).json()["software_config"]
        values = {"config_id": config["id"], "server_id": str(uuid.uuid4()), "input_values": {"a": CANARY}}
        deployment = self.send("POST", self.path(victim, "software_deployments"), values, victim).json()
        events = self.send("GET", f"{self.stacks['theirs']}/events", party=victim).json()["events"]
        snapshot = self.send("POST", f"{self.stacks['theirs']}/snapshots", {}, victim).json()
        self._settled(self.stacks["theirs"], victim, LAST_STATUS)
        self.names = {
            "stack_name": name,
            "stack_id": stack_id,
            "resource_name": "server",
            "config_id": config["id"],
            "deployment_id": deployment["software_deployment"]["id"],
            "server_id": values["server_id"],
            "event_id": events[0]["id"],
            "snapshot_id": snapshot["id"],
            "output_key": "text",
            "project_id": project,
            "arn": f"arn:openstack:heat::{project}:stacks/{name}/{stack_id}/resources/server",
            "row": "1",
            "host": "localhost",
            "type_name": "OS::Heat::Value",
            "template_version": "heat_template_version.2021-04-16",
        }

    def clean(self) -> list[str]:
        """Delete all that was created, and return what is left."""
        victim = self.victim
        if self.names:
            for kind, key in (("software_deployments", "deployment_id"), ("software_configs", "config_id")):
                self.send("DELETE", self.path(victim, kind, self.names[key]), party=victim)
        parties = {"mine": self.attacker, "theirs": self.victim}
        for name, path in self.stacks.items():
            self.send("DELETE", path, party=parties[name])
        end = time.monotonic() + PATIENCE
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def _left(self) -> list[str]:
        stacks: list[str] = []
        for party in (self.attacker, self.victim):
            listed = self.send("GET", self.path(party, "stacks"), party=party).json()["stacks"]
            stacks += [stack["stack_name"] for stack in listed if self.run in stack["stack_name"]]
        return stacks


def expect(answer: requests.Response, *statuses: int) -> None:
    """Check the status of an answer, and that it has nothing of the victim.

    :raises Unexpected: it is another one.
    """
    if CANARY in answer.text or CANARY in str(answer.headers):
        raise Unexpected(f"it has the victim's data: {answer.text[:200]}")
    if answer.status_code not in statuses:
        raise Unexpected(f"{answer.status_code}: {answer.text[:200]}")


def status_of(reply: bytes) -> int:
    """Return the status of a reply in bytes; 0: there is none."""
    first = reply.split(b"\r\n", 1)[0].split()
    return int(first[1]) if len(first) > 1 and first[1].isdigit() else 0


def host_of(target: Target) -> bytes:
    """Return the header Host of requests in bytes."""
    return b"Host: " + urllib.parse.urlsplit(target.root).netloc.encode() + b"\r\n"


CLOSED = (0, *sorted(status for status in http.client.responses if 400 <= status < 500), 501, 505)
"""Statuses of a refusal of what is no request; 0: the connection is closed without one."""
