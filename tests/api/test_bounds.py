"""Every list and every document of the API has a bound, whatever a project has stored."""

import urllib.parse
from collections.abc import Iterator

import pytest
from client.serving import Answer, Json, Service, fault, serving
from harness.templates import template
from harness.waiting import wait_for
from stoker.cli.wiring.routes import ROUTES

PAGE = 2
LONG = 100_000
"""Limit of entries, and the characters of each text that the project stores."""
READ = 5 * LONG + LONG // 2
"""Limit of what is read for an answer: a stack's row has five of the texts, its details three."""
MOST = 2 * READ
"""Bytes of an answer: the description of a stack is there twice."""
OPTIONS = f"""\
[api]
max_page = {PAGE}
max_read = {READ}
[stacks]
max_software_of_server = {2 * LONG}
"""
TEXT = "x" * LONG
FAT = template(
    {
        "r": {"type": "OS::Heat::TestResource", "metadata": {"text": TEXT}},
    },
    description=TEXT,
    parameters={name: {"type": "string", "default": TEXT} for name in "pq"},
    outputs={"o": {"value": {"get_param": "p"}, "description": TEXT}},
)
DETAILS = "/v1/{tenant_id}/stacks/detail"
PAGED = {
    "/v1/{tenant_id}/stacks",
    "/v1/{tenant_id}/software_configs",
    "/v1/{tenant_id}/software_deployments",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/events",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots",
}
"""Lists that have pages, and show of each entry a part that is small."""
UNPAGED = {
    DETAILS: "long texts: max_read ends it before max_page",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/resources": "max_resources",
    "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs": "max_template",
    "/v1/{tenant_id}/software_deployments/metadata/{server_id}": "max_software_of_server",
    "/v1/{tenant_id}/resource_types": "the installed types",
    "/v1/{tenant_id}/template_versions": "the versions of the language",
    "/v1/{tenant_id}/template_versions/{template_version}/functions": "the functions of the language",
    "/v1/{tenant_id}/services": "the conductors",
    "/v1/admin/stuck_stacks": "the limit of the query",
}
"""Other lists, and what bounds each."""
SIGNED = {"/v1", "/", "/healthcheck"}
"""Paths that show nothing of a project, or what the walk asks for under another path."""


class FatProject:
    """A project with three of everything, each thing with long texts."""

    def __init__(self, service: Service) -> None:
        self.service = service
        stacks = [self._stack(name) for name in "abc"]
        for _ in range(3):
            self._post(f"{stacks[0]}/snapshots", {})
            self._wait()
        for number in range(3):
            body = {"name": str(number), "config": TEXT, "inputs": [{"name": "i", "default": TEXT[:1000]}]}
            config = self._post("/v1/fat/software_configs", body)["software_config"]["id"]
            values = {"input_values": {"i": TEXT}, "server_id": f"s{number}", "config_id": config}
            deployment = self._post("/v1/fat/software_deployments", values)["software_deployment"]["id"]
        snapshot = service.get(f"{stacks[0]}/snapshots")["snapshots"][0]["id"]
        event = service.get(f"{stacks[0]}/resources/r/events?limit=1")["events"][0]["id"]
        self.names = {
            "tenant_id": "fat",
            "project_id": "fat",
            "stack_name": "a",
            "stack_id": stacks[0].rsplit("/", 1)[1],
            "resource_name": "r",
            "event_id": event,
            "snapshot_id": snapshot,
            "config_id": config,
            "deployment_id": deployment,
            "server_id": "s2",
            "output_key": "o",
            "type_name": "OS::Nova::Server",
            "template_version": "heat_template_version.2021-04-16",
            "host": service.get("/v1/fat/services")["services"][0]["host"],
        }

    def answer(self, route: str) -> Answer:
        """Return the answer to a GET."""
        names = {name: urllib.parse.quote(value, safe="") for name, value in self.names.items()}
        return self.service.call("GET", route.format(**names))

    def _stack(self, name: str) -> str:
        body = {"stack_name": name, "template": FAT, "files": {"f": TEXT}, "environment": {"parameters": {}}}
        stack_id = self._post("/v1/fat/stacks", body)["stack"]["id"]
        self._wait()
        return f"/v1/fat/stacks/{name}/{stack_id}"

    def _post(self, path: str, body: Json) -> Json:
        answer = self.service.call("POST", path, body)
        assert answer.status in (200, 201), answer
        return answer.body

    def _wait(self) -> None:
        wait_for(lambda: not self.service.get("/v1/fat/stacks?status=IN_PROGRESS")["stacks"], 200)


@pytest.fixture(scope="module")
def fat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FatProject]:
    with serving(tmp_path_factory.mktemp("bounds"), OPTIONS) as service:
        yield FatProject(service)


def _listed(body: Json) -> list[Json] | None:
    """Return the entries of a list; None: the answer is a document."""
    parts = [body[name] for name in body.keys() - {"links"}] if isinstance(body, dict) else []
    return parts[0] if len(parts) == 1 and isinstance(parts[0], list) else None


def test_every_answer_has_a_bound(fat: FatProject) -> None:
    offenders = []
    refused = []
    for route, methods in ROUTES.items():
        operation = methods.get("GET")
        if operation is None or operation.presigned or route in SIGNED:
            continue
        answer = fat.answer(route)
        size = int(answer.headers["Content-Length"])
        if answer.status == 400 and fault(answer) == (400, "RequestLimitExceeded"):
            refused.append(route)
        elif answer.status not in (200, 302):
            offenders.append(f"{route}: {answer.status} {answer.body}")
        if size > (LONG if route in PAGED else MOST):
            offenders.append(f"{route}: {size} bytes")
        entries = _listed(answer.body)
        if entries is not None and route not in PAGED | UNPAGED.keys():
            offenders.append(f"{route}: a list without a bound")
        if route in PAGED and (entries is None or len(entries) != PAGE):
            offenders.append(f"{route}: {entries}")
    assert not offenders, "\n".join(offenders)
    assert DETAILS in refused
    assert not PAGED & set(refused), "a list without long texts is never too long"
