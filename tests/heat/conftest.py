"""Stacks that a real Heat has made on a cloud of their own, and a Stoker that has taken them over."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import time
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence

import pytest
import requests
from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.layout import PASSWORD
from harness.cloud.project import Project
from harness.cloud.server import GIVEN, CloudServer
from harness.cloud.stoker import stoker_on
from harness.heat.server import KEY, RealHeat
from harness.programs import BIN, run
from harness.waiting import wait_for
from heat.stacks import HALF, STACKS

Json = typing.Any
SERVICES = ("nova", "neutron", "cinder", "glance")
WITHIN = 300.0


@dataclasses.dataclass(frozen=True)
class Orchestration:
    """The API of Heat, or of Stoker, for the user of a project.

    :ivar root: root of the API, with its version.
    """

    root: str
    project: Project

    def call(self, method: str, path: str, body: Json = None) -> requests.Response:
        url = f"{self.root}/{self.project.id}{path}"
        session = self.project.connection.session
        response: requests.Response = session.request(url, method, json=body, raise_exc=False)
        return response

    def get(self, path: str) -> Json:
        response = self.call("GET", path)
        assert response.status_code == 200, (path, response.text)
        return response.json()

    def change(self, method: str, path: str, body: Json = None) -> None:
        response = self.call(method, path, body)
        assert response.status_code < 300, (path, response.text)

    def stack(self, path: str) -> Json:
        return self.get(path)["stack"]

    def settled(self, paths: Collection[str]) -> dict[str, str]:
        """The statuses of stacks once no action is in progress, by their paths."""

        def statuses() -> dict[str, str]:
            return {path: self.stack(path)["stack_status"] for path in paths}

        wait_for(lambda: not any(text.endswith("PROGRESS") for text in statuses().values()), WITHIN, statuses)
        return statuses()

    def resources(self, path: str) -> list[Json]:
        """The resources of a stack with those of nested stacks, in an order that is the same for both."""
        rows: list[Json] = self.get(f"{path}/resources?nested_depth=5")["resources"]
        return sorted(rows, key=lambda row: (row.get("parent_resource") or "", row["resource_name"]))

    def view(self, path: str) -> Json:
        """All that is shown of a stack."""
        stack = self.stack(path)
        stack["outputs"] = {item["output_key"]: item for item in stack.get("outputs") or ()}
        events = self.get(f"{path}/events")["events"]
        return {"stack": stack, "resources": self.resources(path), "events": events}


@dataclasses.dataclass(frozen=True)
class Moved:
    """The stacks that Heat had, and Stoker, which has them now.

    :ivar paths: paths of the stacks by name.
    :ivar before: views of the stacks while Heat had them.
    :ivar after: their views by Stoker right after the import, for the tests run in any order.
    :ivar written: requests of the project that changed something during the import.
    :ivar report: the report of the import.
    :ivar by_api: the report of a dry run by Heat's API.
    """

    cloud: Cloud
    heat: RealHeat
    stoker: Orchestration
    paths: Mapping[str, str]
    before: Mapping[str, Json]
    after: Mapping[str, Json]
    written: Sequence[str]
    report: Json
    by_api: Json

    @property
    def project(self) -> Project:
        return self.stoker.project

    def send(self, method: str, url: str, **arguments: Json) -> requests.Response:
        """A request to an address that Heat has given away, as it arrives once that leads to Stoker."""
        parts = requests.utils.urlparse(url)
        to_stoker = url.replace(f"{parts.scheme}://{parts.netloc}", self.stoker.root.removesuffix("/v1"))
        headers = {"Host": parts.netloc, **arguments.pop("headers", {})}
        return requests.request(method, to_stoker, headers=headers, timeout=60, **arguments)


@pytest.fixture(scope="session")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    """The stacks, moved once for all tests."""
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(heat_cloud())
        real_heat = stack.enter_context(RealHeat(cloud))
        project = cloud.make_project(("member", "heat_stack_owner"))
        paths, before = stacks_in_heat(Orchestration(real_heat.api, project))
        folder = tmp_path_factory.mktemp("stoker")
        options = f"[guests]\nwaitcondition_url = {real_heat.cfn}\n"
        with stoker_on(cloud, folder, options):
            pass  # It makes its configuration and its database.
        (folder / "stoker.log").unlink()
        earlier = writes(cloud, project)
        by_api = read_by_api(folder, real_heat.api, cloud, project)
        real_heat.stop()
        report = imported(folder, real_heat.database)
        written = writes(cloud, project)[len(earlier) :]
        service: Service = stack.enter_context(stoker_on(cloud, folder, options))
        stoker = Orchestration(f"{service.url}/v1", project)
        after = {name: stoker.view(path) for name, path in paths.items()}
        yield Moved(cloud, real_heat, stoker, paths, before, after, written, report, by_api)


@contextlib.contextmanager
def heat_cloud() -> Iterator[Cloud]:
    """A cloud of their own, for Heat enters itself into the service catalog; or the one that is given."""
    if running := os.environ.get(GIVEN):
        yield Cloud(pathlib.Path(running))
        return
    with CloudServer() as server:
        yield server.cloud


def imported(folder: pathlib.Path, database: str, *arguments: str) -> Json:
    """Import into the Stoker of a folder; the report."""
    return manage(folder, "import-heat", "--database", database, "--verify", *arguments)


def manage(folder: pathlib.Path, *arguments: str | pathlib.Path) -> Json:
    """Run a command of `stoker-manage` with the Stoker of a folder; its report."""
    files = [
        option for name in ("data/stoker.conf", "cloud.conf") for option in ("--config-file", folder / name)
    ]
    done: subprocess.CompletedProcess[str] = run(
        [BIN / "stoker-manage", *files, *arguments, "--report", "json"],
        env={**os.environ, "HEAT_ENCRYPTION_KEY": KEY},
    )
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def read_by_api(folder: pathlib.Path, address: str, cloud: Cloud, project: Project) -> Json:
    """The report of a dry run by Heat's API, for the user of a project."""
    names = ("data/stoker.conf", "cloud.conf")
    files = [option for name in names for option in ("--config-file", folder / name)]
    options = ["--heat", address, "--dry-run", "--verify", "--report", "json"]
    credentials = {
        "OS_AUTH_URL": cloud.auth_url,
        "OS_USERNAME": project.name,
        "OS_PASSWORD": PASSWORD,
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_ID": project.id,
    }
    command = [BIN / "stoker-manage", *files, "import-heat", *options]
    done: subprocess.CompletedProcess[str] = run(command, env={**os.environ, **credentials})
    assert done.returncode == 2, done
    return json.loads(done.stdout)


def writes(cloud: Cloud, project: Project) -> list[str]:
    """The requests of a project that may have changed something."""
    lines = [line for name in SERVICES for line in cloud.requests(name, project)]
    return [line for line in lines if not line.startswith(("GET ", "HEAD "))]


def stacks_in_heat(heat: Orchestration) -> tuple[dict[str, str], dict[str, Json]]:
    """Make the stacks, and bring them to their states; their paths, and what Heat shows of them."""
    paths = {}
    for name, body in STACKS.items():
        response = heat.call("POST", "/stacks", {"stack_name": name, "disable_rollback": True, **body})
        assert response.status_code == 201, response.text
        paths[name] = f"/stacks/{name}/{response.json()['stack']['id']}"
    _signal_handle(heat, f"{paths['wait']}/resources/h")
    _complete_deployment(heat)
    statuses = heat.settled(paths.values())
    failed = {path for path, status in statuses.items() if status != "CREATE_COMPLETE"}
    assert failed == {paths["failed"]}, statuses
    heat.change("PUT", paths["half"], {"template": HALF})
    heat.change("POST", f"{paths['asleep']}/actions", {"suspend": None})
    heat.change("POST", f"{paths['snap']}/snapshots", {"name": "s1"})
    began = time.monotonic()
    expected = {"half": "UPDATE_FAILED", "asleep": "SUSPEND_COMPLETE", "snap": "SNAPSHOT_COMPLETE"}
    for name, status in expected.items():
        wait_for(lambda name=name, status=status: heat.stack(paths[name])["stack_status"] == status, WITHIN)  # type: ignore[misc]
    assert time.monotonic() - began < WITHIN
    return paths, {name: heat.view(path) for name, path in paths.items()}


def _signal_handle(heat: Orchestration, path: str) -> None:
    def attributes() -> Json:
        response = heat.call("GET", f"{path}?with_attr=curl_cli")
        return response.json()["resource"]["attributes"] if response.status_code == 200 else {}

    wait_for(lambda: bool(attributes().get("token")), WITHIN)
    values = attributes()
    signal = {"status": "SUCCESS", "data": "d1", "id": "i1"}
    headers = {"X-Auth-Token": values["token"]}
    assert requests.post(values["endpoint"], json=signal, headers=headers, timeout=60).status_code == 200


def _complete_deployment(heat: Orchestration) -> None:
    def waiting() -> list[str]:
        deployments = heat.get("/software_deployments")["software_deployments"]
        return [item["id"] for item in deployments if item["status"] == "IN_PROGRESS"]

    wait_for(lambda: bool(waiting()), WITHIN)
    outputs = {"y": "yes", "deploy_status_code": 0, "deploy_stdout": "out"}
    [deployment] = waiting()
    body = {"status": "COMPLETE", "output_values": outputs}
    heat.change("PUT", f"/software_deployments/{deployment}", body)
