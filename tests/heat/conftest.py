"""Stacks that a real Heat has made on a cloud of their own, and a Stoker that has taken them over."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence

import pytest
import requests
from harness.cloud.access import Cloud
from harness.cloud.layout import PASSWORD
from harness.cloud.project import Project
from harness.cloud.server import GIVEN, CloudServer
from harness.cloud.stoker import stoker_on
from harness.guests.agents import Agents
from harness.heat.server import KEY, RealHeat
from harness.programs import BIN, run
from harness.waiting import wait_for
from heat.evening import Evening, commands
from heat.stacks import CHANGES, CREATED, STACKS
from heat.type_stacks import EXTERNAL, Change

Json = typing.Any
SERVICES = ("nova", "neutron", "cinder", "glance", "barbican", "octavia")
WITHIN = 300.0
OPTIONAL = ("barbican", "octavia", "swift")
"""Services that some of the stacks need, beside those of each cloud."""
ROLES = ("member", "heat_stack_owner", "creator")


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
class Reports:
    """Reports of the commands.

    :ivar by_api: the report of a dry run by Heat's API.
    """

    dry_run: Json
    moved: Json
    by_api: Json


@dataclasses.dataclass(frozen=True)
class Moved:
    """The stacks that Heat had, and Stoker, which has them now.

    :ivar paths: paths of the stacks by name.
    :ivar before: views of the stacks while Heat had them.
    :ivar after: their views by Stoker right after the import, for the tests run in any order.
    :ivar written: requests of the project that changed something during the import.
    :ivar answers: by the words of the proxy's map: statuses of the answers to a request that reads and one
        that writes.
    :ivar guest: agents of a server that poll and signal at Heat's addresses.
    """

    cloud: Cloud
    heat: RealHeat
    stoker: Orchestration
    paths: Mapping[str, str]
    before: Mapping[str, Json]
    after: Mapping[str, Json]
    written: Sequence[str]
    reports: Reports
    answers: Mapping[str, tuple[int, int]]
    guest: Agents

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
        project = cloud.make_project(ROLES)
        folder = tmp_path_factory.mktemp("stoker")
        try:
            heat_api = Orchestration(real_heat.api, project)
            paths, before, guest = stacks_in_heat(heat_api, cloud, folder / "guest")
        except AssertionError as error:
            error.add_note(real_heat.story())
            raise
        evening = stack.enter_context(evening_in(folder, cloud, real_heat, project))
        earlier = writes(cloud, project)
        by_api = read_by_api(folder, real_heat.api, cloud, project)
        dry_run = evening.run(commands("Before the evening"))
        report = evening.run(commands("The evening"))
        written = writes(cloud, project)[len(earlier) :]
        assert evening.stoker is not None
        stoker = Orchestration(f"{evening.stoker.url}/v1", project)
        after = {name: stoker.view(path) for name, path in paths.items()}
        reports = Reports(dry_run, report, by_api)
        yield Moved(cloud, real_heat, stoker, paths, before, after, written, reports, evening.answers, guest)


@contextlib.contextmanager
def heat_cloud() -> Iterator[Cloud]:
    """A cloud of their own, for Heat enters itself into the service catalog; or the one that is given."""
    with contextlib.ExitStack() as stack:
        running = os.environ.get(GIVEN)
        cloud = Cloud(pathlib.Path(running)) if running else stack.enter_context(CloudServer()).cloud
        for name in OPTIONAL:
            cloud.start(name)
        yield cloud


def evening_in(folder: pathlib.Path, cloud: Cloud, heat: RealHeat, project: Project) -> Evening:
    """The evening of a Heat, with an empty Stoker that does not run yet."""
    options = f"[guests]\nwaitcondition_url = {heat.cfn}\n"
    with stoker_on(cloud, folder, options):
        pass  # It makes its configuration and its database.
    (folder / "stoker.log").unlink()
    return Evening(
        folder,
        heat,
        project,
        lambda arguments: manage(folder, *arguments),
        lambda: stoker_on(cloud, folder, options),
    )


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


def stacks_in_heat(
    heat: Orchestration, cloud: Cloud, folder: pathlib.Path
) -> tuple[dict[str, str], dict[str, Json], Agents]:
    """Make the stacks, and bring them to their states; their paths, what Heat shows of them, and a guest.

    :param folder: the folder of the guest.
    """
    external = cloud.admin.network.find_network("public").id
    paths = {}
    for name, text in ((name, json.dumps(body)) for name, body in STACKS.items()):
        body = json.loads(text.replace(EXTERNAL, external))
        response = heat.call("POST", "/stacks", {"stack_name": name, "disable_rollback": True, **body})
        assert response.status_code == 201, response.text
        paths[name] = f"/stacks/{name}/{response.json()['stack']['id']}"
    _signal_handle(heat, f"{paths['wait']}/resources/h")
    _complete_deployment(heat, paths["soft"], y="yes", deploy_stdout="out")
    _complete_deployment(heat, paths["agents"], deploy_stdout="CREATE one\n")
    statuses = heat.settled(paths.values())
    expected = {path: CREATED.get(name, "CREATE_COMPLETE") for name, path in paths.items()}
    assert statuses == expected, [heat.stack(path) for path in paths.values()]
    for number in range(max(map(len, CHANGES.values()))):
        changes = {name: each[number] for name, each in CHANGES.items() if number < len(each)}
        _change(heat, paths, changes)
    guest = guest_of(heat, paths["agents"], folder)
    return paths, {name: heat.view(path) for name, path in paths.items()}, guest


def _change(heat: Orchestration, paths: Mapping[str, str], changes: Mapping[str, Change]) -> None:
    """Change stacks side by side."""
    for name, change in changes.items():
        heat.change(change.method, f"{paths[name]}{change.path}", change.body)
    for name, change in changes.items():
        wait_for(
            lambda name=name, change=change: heat.stack(paths[name])["stack_status"] == change.status,  # type: ignore[misc]
            WITHIN,
            lambda name=name: str(heat.stack(paths[name])),  # type: ignore[misc]
        )


def guest_of(heat: Orchestration, path: str, folder: pathlib.Path) -> Agents:
    """The agents of the stack's server, with the addresses and keys that Heat has given to it."""
    resource = heat.get(f"{path}/resources/server?with_attr=os_collect_config")["resource"]
    config = dict(resource["attributes"]["os_collect_config"])
    # There is no metadata service that answers as EC2's does.
    config["collectors"] = [name for name in config["collectors"] if name != "ec2"]
    return Agents(folder, config)


def deployment_status(heat: Orchestration, path: str) -> str | None:
    """The status of the deployment of a stack; None: there is none yet."""
    response = heat.call("GET", f"{path}/resources/deployment")
    deployment_id = response.json().get("resource", {}).get("physical_resource_id")
    if not deployment_id:
        return None
    status: str = heat.get(f"/software_deployments/{deployment_id}")["software_deployment"]["status"]
    return status


def _signal_handle(heat: Orchestration, path: str) -> None:
    def attributes() -> Json:
        response = heat.call("GET", f"{path}?with_attr=curl_cli")
        return response.json()["resource"]["attributes"] if response.status_code == 200 else {}

    wait_for(lambda: bool(attributes().get("token")), WITHIN)
    values = attributes()
    signal = {"status": "SUCCESS", "data": "d1", "id": "i1"}
    headers = {"X-Auth-Token": values["token"]}
    assert requests.post(values["endpoint"], json=signal, headers=headers, timeout=60).status_code == 200


def _complete_deployment(heat: Orchestration, path: str, **outputs: Json) -> None:
    """Signal as the agents do once a deployment waits for them."""
    wait_for(lambda: deployment_status(heat, path) == "IN_PROGRESS", WITHIN)
    deployment = heat.get(f"{path}/resources/deployment")["resource"]["physical_resource_id"]
    body = {"status": "COMPLETE", "output_values": {"deploy_status_code": 0, **outputs}}
    heat.change("PUT", f"/software_deployments/{deployment}", body)
