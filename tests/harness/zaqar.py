"""Zaqar, with its messages in a Redis of its own, for the users of the tests' cloud."""

import contextlib
import typing
import uuid
from collections.abc import Sequence

import requests
from harness.cloud.access import Cloud
from harness.cloud.layout import BIN, PASSWORD, rendered, serving
from harness.cloud.project import Project
from harness.redis import Redis
from harness.server import MissingServer, Server

Json = typing.Any
TYPE = "messaging"
"""Its type in the service catalog."""


class Zaqar(Server):
    """A server of version 2 of the API.

    :param cloud: the one whose tokens it accepts.
    """

    name = "Zaqar"
    start_within = 120.0

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self._cloud = cloud
        self._redis = Redis()

    @property
    def url(self) -> str:
        """The root of the API."""
        return f"http://127.0.0.1:{self.port}"

    def messages(self, project: Project, queue: str) -> list[Json]:
        """The bodies of the messages that a queue of the project has, in their order."""
        headers = {"X-Auth-Token": project.token, "Client-ID": str(uuid.uuid4())}
        bodies: list[Json] = []
        path = f"/v2/queues/{queue}/messages?limit=20"
        while True:
            answer = requests.get(f"{self.url}{path}", headers=headers, timeout=120)
            assert answer.status_code == 200, answer.text
            page = answer.json()
            if not page["messages"]:
                return bodies
            bodies += [message["body"] for message in page["messages"]]
            path = next(link["href"] for link in page["links"] if link["rel"] == "next")

    def close(self) -> None:
        """End it with its Redis."""
        super().close()
        self._redis.close()

    def _prepare(self) -> None:
        if not (BIN / "zaqar-server").exists():
            raise MissingServer("zaqar-server", "none: it comes from PyPI")
        self._redis.start()
        home = self.directory / ".zaqar"  # The only place that its application reads without arguments.
        home.mkdir()
        store = {"uri": self._redis.url}
        account = {
            "auth_type": "password",
            "auth_url": self._cloud.auth_url,
            "www_authenticate_uri": self._cloud.auth_url,
            "username": "service",
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
        }
        (home / "zaqar.conf").write_text(
            rendered(
                {
                    "DEFAULT": {"auth_strategy": "keystone", "unreliable": True, "use_stderr": False},
                    "drivers": {"message_store": "redis", "management_store": "redis"},
                    "drivers:message_store:redis": store,
                    "drivers:management_store:redis": store,
                    "keystone_authtoken": account,
                    "trustee": account,
                    "signed_url": {"secret_key": PASSWORD},
                }
            )
        )

    def _command(self) -> Sequence[str]:
        return serving("zaqar", "zaqar.transport.wsgi.app", self.port, self.directory / "requests")

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.directory)}

    def _answers(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.url}/", timeout=5).status_code == 300
        return False
