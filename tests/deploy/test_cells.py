"""Two cells of Stoker behind the HAProxy of etc/haproxy: each project is in one of them, whole."""

import pathlib
import typing
from collections.abc import Iterator

import pytest
import requests
from harness.deployment import Deployment, Servers, call
from harness.etcd import Etcd
from harness.haproxy import HAProxy
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.templates import one, template
from harness.waiting import wait_for

Json = typing.Any
ETC = pathlib.Path(__file__).parents[2] / "etc" / "haproxy"
CELLS = {"red": "cell1", "blue": "cell2"}
"""The cell of each project; `green` is in no line of the map."""
WAITING = template(
    {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
        },
    },
    outputs={"curl": {"value": {"get_attr": ["handle", "curl_cli"]}}},
)


class Cells:
    """Two installations behind one address."""

    def __init__(self, first: Deployment, second: Deployment, proxy: HAProxy) -> None:
        self.first = first
        self.second = second
        self.proxy = proxy

    def create(self, project: str, name: str, body: Json) -> str:
        """Create a stack; its path."""
        document = {"stack_name": name, "template": body}
        status, answer = call(self.proxy.url, "POST", f"/v1/{project}/stacks", document)
        assert status == 201, answer
        return f"/v1/{project}/stacks/{name}/{answer['stack']['id']}"

    def show(self, path: str) -> Json:
        status, answer = call(self.proxy.url, "GET", path)
        assert status == 200, answer
        return answer["stack"]

    def wait_complete(self, path: str) -> Json:
        """Wait until the stack is no longer IN_PROGRESS, and complete; the stack."""
        wait_for(lambda: not self.show(path)["stack_status"].endswith("IN_PROGRESS"), 120)
        stack = self.show(path)
        assert stack["stack_status"] == "CREATE_COMPLETE", stack
        return stack


def names(deployment: Deployment, project: str) -> list[str]:
    """The stacks that a cell has of a project."""
    _, answer = call(deployment.url, "GET", f"/v1/{project}/stacks")
    return sorted(stack["stack_name"] for stack in answer["stacks"])


def is_up(proxy: HAProxy, project: str) -> bool:
    """Return whether the cell of a project answers."""
    return requests.get(f"{proxy.url}/v1/{project}/stacks", timeout=60).status_code == 200


@pytest.fixture(scope="module")
def cells(
    rabbitmq: RabbitMQ, postgresql: PostgreSQL, etcd: Etcd, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cells]:
    servers = Servers(rabbitmq, postgresql, etcd)
    folder = tmp_path_factory.mktemp("cells")
    rows = "".join(f"{project} {cell}\n" for project, cell in CELLS.items())
    (folder / "cells.map").write_text(rows)
    deployments = []
    for cell in ("cell1", "cell2"):
        (folder / cell).mkdir()
        deployments.append(servers.deployment(folder / cell))
    first, second = deployments
    replacements = {
        "127.0.0.1:8004": "FRONTEND",
        "127.0.0.1:8014": f"127.0.0.1:{first.port}",
        "127.0.0.1:8024": f"127.0.0.1:{second.port}",
        "/etc/haproxy/cells.map": str(folder / "cells.map"),
    }
    with HAProxy(ETC / "cells.cfg", replacements) as proxy:
        for deployment in deployments:
            config = deployment.config.read_text()
            public = f"public_url = {proxy.url}\nallowed_hosts = {proxy.url.removeprefix('http://')}"
            deployment.config.write_text(config.replace(f"public_url = {deployment.url}", public))
            deployment.start_api()
            deployment.start_conductors(deployment.directory.name)
        for project in CELLS:  # The proxy has seen that both are healthy.
            wait_for(lambda project=project: is_up(proxy, project), 60)  # type: ignore[misc]
        yield Cells(first, second, proxy)
        for deployment in deployments:
            deployment.stop()


def test_each_project_is_in_one_cell_whole(cells: Cells) -> None:
    stacks = {project: cells.create(project, "same", template({"r": one()})) for project in (*CELLS, "green")}
    for path in stacks.values():
        cells.wait_complete(path)
    assert [names(cells.first, project) for project in stacks] == [["same"], [], ["same"]]
    assert [names(cells.second, project) for project in stacks] == [[], ["same"], []]
    for path in stacks.values():
        links = {link["rel"]: link["href"] for link in cells.show(path)["links"]}
        assert links["self"] == cells.proxy.url + path


def test_signals_reach_the_cell_of_their_project(cells: Cells) -> None:
    paths = {project: cells.create(project, "signalled", WAITING) for project in CELLS}
    for path in paths.values():
        wait_for(lambda path=path: "http" in str(cells.show(path)["outputs"][0]["output_value"]), 60)  # type: ignore[misc]
        command = cells.show(path)["outputs"][0]["output_value"]
        address = next(part.strip("'\"") for part in command.split() if "http" in part)
        assert address.startswith(cells.proxy.url)
        answer = requests.post(address, json={"status": "SUCCESS"}, timeout=60)
        if answer.status_code == 405:
            answer = requests.put(address, json={"status": "SUCCESS"}, timeout=60)
        assert answer.ok, answer.text
    for path in paths.values():
        cells.wait_complete(path)


def test_a_cell_that_is_down_stops_its_own_projects_only(cells: Cells) -> None:
    cells.second.stop()
    wait_for(lambda: not is_up(cells.proxy, "blue"), 60)
    cells.wait_complete(cells.create("red", "goes-on", template({"r": one()})))
