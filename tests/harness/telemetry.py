"""Measures of servers at Gnocchi, as Ceilometer's agents write them."""

import datetime
import typing
from collections.abc import Collection

from harness.cloud.access import Cloud
from harness.cloud.project import Project

Json = typing.Any
RESOURCE_TYPE = "instance"
METRIC = "cpu"
ARCHIVE_POLICY = "high"
"""The policy of Gnocchi's own that keeps a value for each second."""


class Telemetry:
    """Writes how long the servers of a project have used their processors.  For one thread.

    It has the account of the services, as the agents have, so the project's users own no measure.

    :param cloud: the cloud; its Gnocchi runs.
    """

    def __init__(self, cloud: Cloud, project: Project) -> None:
        self._session = cloud.connect("service", "service").session
        self._url = f"{cloud.urls['gnocchi']}/v1"
        self._project = project
        self._used: dict[str, float] = {}
        attributes = {"server_group": {"type": "string", "required": False}}
        self._post("/resource_type", {"name": RESOURCE_TYPE, "attributes": attributes}, exists=409)

    def report(self, servers: Collection[str], group: str, nanoseconds: float) -> None:
        """Write that servers have used this much more of their processors until now.

        :param servers: their ids.
        :param group: value of their metadata ``metering.server_group``.
        """
        for server in set(servers).difference(self._used):
            owner = {"project_id": self._project.id, "user_id": self._project.user_id}
            self._post(f"/resource/{RESOURCE_TYPE}", {"id": server, "server_group": group, **owner})
            self._used[server] = 0.0
        now = datetime.datetime.now(datetime.UTC).isoformat()
        measures: Json = {}
        for server in servers:
            self._used[server] += nanoseconds
            value = {"timestamp": now, "value": self._used[server]}
            measures[server] = {METRIC: {"archive_policy_name": ARCHIVE_POLICY, "measures": [value]}}
        self._post("/batch/resources/metrics/measures?create_metrics=true", measures)

    def _post(self, path: str, body: Json, *, exists: int | None = None) -> None:
        answer = self._session.post(f"{self._url}{path}", json=body, raise_exc=False)
        assert answer.ok or answer.status_code == exists, answer.text
