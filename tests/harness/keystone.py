"""Keystone alone, from the virtual environment of the cloud."""

import contextlib
import grp
import os
import pwd
import typing
from collections.abc import Iterator

import requests
from harness.cloud.layout import BIN, HOME, PASSWORD, REGION, serving
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.server import MissingServer, Server

Json = typing.Any
CONFIG = """\
[database]
connection = sqlite:///{directory}/keystone.sqlite?timeout=120
[fernet_tokens]
key_repository = {directory}/fernet
[fernet_receipts]
key_repository = {directory}/fernet
[credential]
key_repository = {directory}/credential
[resource]
admin_project_domain_name = Default
admin_project_name = admin
[identity]
password_hash_rounds = 4
[token]
expiration = {expiration}
"""


class Keystone(Server):
    """Keystone on SQLite, with the user ``admin`` of the project ``admin``."""

    name = "Keystone"

    @property
    def url(self) -> str:
        """Its v3 root."""
        return f"http://{HOST}:{self.port}/v3"

    def _prepare(self) -> None:
        if not (BIN / "keystone-manage").exists():
            raise MissingServer(f"Keystone in {HOME}", "none: it comes from PyPI")
        self._configure("keystone.conf", 3600)
        manage = [BIN / "keystone-manage", "--config-file", self.directory / "keystone.conf"]
        self._run(*manage, "db_sync")
        user = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrgid(os.getegid()).gr_name
        self._run(*manage, "fernet_setup", "--keystone-user", user, "--keystone-group", group)
        urls = [
            part for kind in ("admin", "internal", "public") for part in (f"--bootstrap-{kind}-url", self.url)
        ]
        self._run(
            *manage, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION, *urls
        )

    def _configure(self, name: str, expiration: int) -> None:
        text = CONFIG.format(directory=self.directory, expiration=expiration)
        (self.directory / name).write_text(text)

    def _command(self) -> list[str]:
        return self._serving(self.port)

    def _serving(self, port: int) -> list[str]:
        return serving("keystone", "keystone.wsgi.api", port, self.directory / "requests")

    def _environment(self) -> dict[str, str]:
        return self._configured("keystone.conf")

    def _configured(self, config: str) -> dict[str, str]:
        return {"OS_KEYSTONE_CONFIG_FILES": str(self.directory / config), "ONE_AT_A_TIME": "1"}

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def options(self) -> str:
        """Return the options by which a Stoker validates tokens here."""
        return (
            "[api]\nauth_strategy = keystone\n"
            f"[keystone_authtoken]\nauth_type = password\nauth_url = {self.url}\nusername = admin\n"
            f"password = {PASSWORD}\nproject_name = admin\n"
            "user_domain_id = default\nproject_domain_id = default\n"
            f"www_authenticate_uri = {self.url}\n"
        )

    @contextlib.contextmanager
    def hasty(self, seconds: int) -> Iterator[str]:
        """A second Keystone on the same data whose tokens live so many seconds; its v3 root."""
        self._configure("hasty.conf", seconds)
        port = free_port()
        process = Process(
            self._serving(port), log=self.directory / "hasty.log", env=self._configured("hasty.conf")
        )
        try:
            process.wait_for_port(port)
            yield f"http://{HOST}:{port}/v3"
        finally:
            process.kill()

    def token(self, user: str, project: str | None, url: str | None = None) -> str:
        """A token of the user, for a project; None: for the system."""
        scope: Json = {"system": {"all": True}}
        if project is not None:
            scope = {"project": {"name": project, "domain": {"id": "default"}}}
        return self.scoped_token(user, scope, url)

    def scoped_token(self, user: str, scope: Json, url: str | None = None) -> str:
        """A token of the user, for a scope as Keystone's API describes it."""
        default = {"id": "default"}
        password = {"user": {"name": user, "domain": default, "password": PASSWORD}}
        body = {"auth": {"identity": {"methods": ["password"], "password": password}, "scope": scope}}
        answer = requests.post(f"{url or self.url}/auth/tokens", json=body, timeout=120)
        assert answer.status_code == 201, answer.text
        return answer.headers["X-Subject-Token"]

    def make(self, kind: str, **fields: Json) -> str:
        """Make a project, user, service, endpoint or role; its id."""
        answer = self._admin("POST", f"/{kind}s", {kind: fields})
        object_id: str = answer[kind]["id"]
        return object_id

    def remove(self, kind: str, item: str) -> None:
        """Delete what `make` has made; a service goes with its endpoints."""
        self._admin("DELETE", f"/{kind}s/{item}")

    def grant(self, user: str, project: str, role: str) -> None:
        """Give a user a role in a project, by their ids and the role's name."""
        (role_row,) = self._admin("GET", f"/roles?name={role}")["roles"]
        self._admin("PUT", f"/projects/{project}/users/{user}/roles/{role_row['id']}")

    def grant_in_domain(self, user: str, role: str) -> None:
        """Give a user a role in the default domain, by the user's id and the role's name."""
        (role_row,) = self._admin("GET", f"/roles?name={role}")["roles"]
        self._admin("PUT", f"/domains/default/users/{user}/roles/{role_row['id']}")

    def endpoints(self, region: str) -> dict[str, str]:
        """Return the URLs of a region's endpoints, by interface."""
        rows = self._admin("GET", f"/endpoints?region_id={region}")["endpoints"]
        return {row["interface"]: row["url"] for row in rows}

    def roles(self, user: str, project: str) -> set[str]:
        """Return the names of a user's roles in a project, by the names of both."""
        query = f"user.id={self.id_of('user', user)}&scope.project.id={self.id_of('project', project)}"
        rows = self._admin("GET", f"/role_assignments?include_names&{query}")["role_assignments"]
        return {row["role"]["name"] for row in rows}

    def roles_of_all(self) -> list[Json]:
        """Return all roles that there are."""
        roles: list[Json] = self._admin("GET", "/roles")["roles"]
        return roles

    def id_of(self, kind: str, name: str) -> str:
        """The id of the project or user of this name."""
        (entry,) = self._admin("GET", f"/{kind}s?name={name}")[f"{kind}s"]
        object_id: str = entry["id"]
        return object_id

    def _admin(self, method: str, path: str, body: Json = None) -> Json:
        headers = {"X-Auth-Token": self.token("admin", "admin")}
        answer = requests.request(method, self.url + path, json=body, headers=headers, timeout=120)
        assert answer.ok, (method, path, answer.text)
        return answer.json() if answer.content else None
