"""The agents of a cloud's servers, which run nothing: they get what cloud-init would have found."""

import base64
import email
import json
import pathlib
import typing
from collections.abc import Iterable

from harness.cloud.project import Project
from harness.guests.agents import Agents

Json = typing.Any


class PlayedServers:
    """The agents of the servers of a project, each in a directory of its own.

    :param groups: the tools of configs; they are not run, but report that they were, with all outputs.
    """

    def __init__(self, directory: pathlib.Path, project: Project, groups: Iterable[str]) -> None:
        self._directory = directory
        self._project = project
        self._groups = tuple(groups)
        self._agents: dict[str, Agents] = {}

    def poll(self, server_id: str) -> str:
        """Let the agent of a server poll once, and apply what is new; return what it has said."""
        if server_id not in self._agents:
            init_data = json.loads(user_data_parts(self._project, server_id)["cfn-init-data"])
            config = dict(init_data["os-collect-config"])
            # There is no metadata service that answers as EC2's does.
            config["collectors"] = [name for name in config["collectors"] if name != "ec2"]
            self._agents[server_id] = Agents(self._directory / server_id, config, reporting=self._groups)
        return self._agents[server_id].run()


def user_data_parts(project: Project, server_id: str) -> dict[str | None, str]:
    """Return the parts of user_data that cloud-init would find in a server, by their names."""
    user_data = base64.b64decode(project.admin.compute.get_server(server_id).user_data).decode()
    parts: Json = email.message_from_string(user_data).get_payload()
    return {part.get_filename(): part.get_payload(decode=True).decode() for part in parts}
