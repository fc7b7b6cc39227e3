"""The guest of a server in chaos: it applies configs, and signals as agents do."""

import random
import typing
import urllib.parse
from collections.abc import Iterator

from chaos.goals import ANSWER, HANDLE, SERVER
from chaos.history import History, Kept, Outcome, Signal
from chaos.http import Answer, Http

Json = typing.Any


class Guest:
    """Signals to the handles and deployments of one user's stacks; an accepted signal is sent once.

    It records the signals, and what the API says to have of them.  For one thread.

    :param project: the path of the user's project.
    """

    def __init__(self, project: str, http: Http, history: History, chosen_by: random.Random) -> None:
        self._project = project
        self._http = http
        self._history = history
        self._random = chosen_by
        self._accepted: set[str] = set()
        self._count = 0

    def signal_handle(self, path: str) -> None:
        """Signal the handle of a stack, unless it has an accepted signal."""
        before = self._resource(path, HANDLE)
        handle = before.get("physical_resource_id")
        if not handle:
            return
        answer = self._http.request("GET", f"{path}/resources/{HANDLE}/metadata")
        # The metadata do not say whose they are: an update may replace the handle between two requests.
        is_same = self._resource(path, HANDLE).get("physical_resource_id") == handle
        if answer.status == 200 and is_same:
            self._keep(path, handle, list(answer.body["metadata"]), answer)
        if handle in self._accepted:
            return
        self._count += 1
        signal_id = f"{self._project}-{self._count}"
        is_amazons = before["resource_type"].startswith("AWS::")
        body = {"id": signal_id, "status": "SUCCESS", "reason": "chaos", "data": "x"}
        if is_amazons:
            body = {"UniqueId": signal_id, "Status": "SUCCESS", "Reason": "chaos", "Data": "x"}
        self._send(path, handle, signal_id, ("POST", f"{path}/resources/{HANDLE}/signal", body))

    def apply(self, path: str) -> None:
        """Apply the configs of a stack's server, and signal each once."""
        server = self._resource(path, SERVER)
        address = server.get("attributes", {}).get("os_collect_config", {}).get("request", {})
        if not address.get("metadata_url"):
            return
        document = self._http.request("GET", _path_of(address["metadata_url"]))
        if document.status != 200:
            return
        deployments = {view["config_id"]: view for view in self._deployments(server["physical_resource_id"])}
        for view in deployments.values():
            self._read(path, view)
        for config in document.body["deployments"]:
            if config["id"] not in self._accepted:
                self._signal(path, config, deployments.get(config["id"]))

    def _resource(self, path: str, name: str) -> Json:
        """Return the view of a resource; empty: there is no answer with one."""
        answer = self._http.request("GET", f"{path}/resources/{name}")
        return answer.body["resource"] if answer.status == 200 else {}

    def _deployments(self, server_id: str) -> Iterator[Json]:
        query = urllib.parse.urlencode({"server_id": server_id})
        answer = self._http.request("GET", f"{self._project}/software_deployments?{query}")
        if answer.status == 200:
            yield from answer.body["software_deployments"]

    def _read(self, path: str, view: Json) -> None:
        """Record the output that a deployment has."""
        answer = self._http.request("GET", f"{self._project}/software_deployments/{view['id']}")
        if answer.status != 200:
            return
        deployment = answer.body["software_deployment"]
        values = [deployment["output_values"].get(ANSWER)] if deployment["status"] == "COMPLETE" else []
        self._keep(path, deployment["config_id"], values, answer)

    def _signal(self, path: str, config: Json, deployment: Json | None) -> None:
        """Signal that a config is applied, at the address that it has, or by the API."""
        value = f"answer-{config['id']}"
        inputs = {item["name"]: item["value"] for item in config["inputs"]}
        if deployment is not None and self._random.random() < 0.4:
            address = f"{self._project}/software_deployments/{deployment['id']}"
            body: Json = {"status": "COMPLETE", "output_values": {ANSWER: value}}
            self._send(path, config["id"], value, ("PUT", address, body))
            return
        body = {ANSWER: value, "deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}
        address = _path_of(inputs["deploy_signal_id"])
        self._send(path, config["id"], value, (inputs["deploy_signal_verb"], address, body))

    def _send(self, path: str, target: str, value: str, request: tuple[str, str, Json]) -> None:
        answer = self._http.request(*request)
        if answer.outcome == Outcome.ACCEPTED:
            self._accepted.add(target)
        self._history.add(
            Signal(_stack_of(path), target, value, answer.began, answer.ended, answer.outcome, answer.status)
        )

    def _keep(self, path: str, target: str, values: list[str], answer: Answer) -> None:
        self._history.add(Kept(_stack_of(path), target, values, answer.began, answer.ended))


def _stack_of(path: str) -> str:
    return path.rpartition("/")[2]


def _path_of(url: str) -> str:
    """Return an address without its root: each process of the API takes it."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.path}?{parts.query}"
