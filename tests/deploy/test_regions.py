"""OS::Heat::Stack in another region or cloud: a real Keystone, a real Barbican, and two Stokers."""

import json
import pathlib
import typing
from collections.abc import Iterator

import pytest
import requests
from client.serving import Answer, Service
from harness.barbican import Barbican
from harness.holding_proxy import HoldingProxy
from harness.keystone import PASSWORD, Keystone
from harness.waiting import wait_for

Json = typing.Any
REMOTE = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string}
  held: {type: boolean, default: false}
  fails: {type: boolean, default: false}
  secret: {type: string, hidden: true, default: none}
conditions:
  is_held: {get_param: held}
resources:
  inside:
    type: OS::Heat::TestResource
    properties: {value: {get_param: text}, fail: {get_param: fails}}
  handle:
    type: OS::Heat::WaitConditionHandle
    condition: is_held
  wait:
    type: OS::Heat::WaitCondition
    condition: is_held
    properties: {handle: {get_resource: handle}, count: 1, timeout: 3600}
outputs:
  told: {value: {get_attr: [inside, output]}}
  file: {value: {get_file: note.txt}}
  length: {value: {str_split: [",", {get_param: secret}]}}
"""
CONFIG = """
[api]
auth_strategy = keystone
[stacks]
allow_trusts_redelegation = true
remote_cloud_hosts = 127.0.0.1
[clients]
region_name = {region}
[keystone_authtoken]
auth_type = password
auth_url = {auth_url}
username = regions-stoker
password = {password}
project_name = regions-services
user_domain_id = default
project_domain_id = default
"""


def a_template(context: Json, parameters: Json, **properties: Json) -> Json:
    fields = {"template": {"get_file": "remote.yaml"}, "context": context, "parameters": parameters}
    return {
        "heat_template_version": "2018-08-31",
        "parameters": {"hush": {"type": "string", "hidden": True, "default": "hush-hush"}},
        "resources": {"away": {"type": "OS::Heat::Stack", "properties": {**fields, **properties}}},
        "outputs": {
            "told": {"value": {"get_attr": ["away", "told"]}},
            "file": {"value": {"get_attr": ["away", "outputs", "file"]}},
            "name": {"value": {"get_attr": ["away", "stack_name"]}},
        },
    }


class Regions:
    """A Keystone with the regions north and south, and a Stoker in each."""

    def __init__(self, keystone: Keystone, folder: pathlib.Path) -> None:
        self.keystone = keystone
        self.folder = folder
        self.project = keystone.make("project", name="regions", domain_id="default")
        self.user = keystone.make("user", name="rover", domain_id="default", password=PASSWORD)
        # Barbican's default policy has roles of its own.
        for role in ("member", "admin"):
            keystone.grant(self.user, self.project, role)
        services = keystone.make("project", name="regions-services", domain_id="default")
        account = keystone.make("user", name="regions-stoker", domain_id="default", password=PASSWORD)
        keystone.grant(account, services, "service")
        for region in ("north", "south"):
            keystone.make("region", id=region)
        self.south = self._started("south")
        self.proxy = HoldingProxy(self.south.url, held="/stacks")
        self.service = keystone.make("service", name="stoker", type="orchestration")
        address = f"{self.proxy.url}/v1/%(tenant_id)s"
        keystone.make("endpoint", service_id=self.service, interface="public", region_id="south", url=address)
        self.north = self._started("north")

    def restart_north(self) -> None:
        """Start it again, on the data that it had."""
        (self.folder / "north" / "stoker.log").rename(self.folder / "north" / "before.log")
        self.north = self._started("north")

    def ask(self, stoker: Service, method: str, path: str, body: Json = None) -> Answer:
        headers = {"X-Auth-Token": self.keystone.token("rover", "regions")}
        return stoker.call(method, path.format(own=self.project), body, headers=headers)

    def create(self, name: str, template: Json) -> str:
        body = {"stack_name": name, "template": template}
        files = {"remote.yaml": REMOTE, "note.txt": "a note"}
        answer = self.ask(self.north, "POST", "/v1/{own}/stacks", {**body, "files": files})
        assert answer.status == 201, answer
        return f"/v1/{self.project}/stacks/{name}/{answer.body['stack']['id']}"

    def update(self, path: str, template: Json) -> None:
        files = {"remote.yaml": REMOTE, "note.txt": "a note"}
        answer = self.ask(self.north, "PUT", path, {"template": template, "files": files})
        assert answer.status == 202, answer

    def wait(self, path: str, status: str) -> Json:
        def now() -> Json:
            return self.ask(self.north, "GET", path).body["stack"]

        wait_for(lambda: not now()["stack_status"].endswith("IN_PROGRESS"), 180, now)
        stack = now()
        assert stack["stack_status"] == status, stack["stack_status_reason"]
        return {item["output_key"]: item["output_value"] for item in stack["outputs"]}

    def away(self, query: str = "") -> list[Json]:
        """The stacks of the project in the region south."""
        stacks: list[Json] = self.ask(self.south, "GET", f"/v1/{{own}}/stacks?{query}").body["stacks"]
        return stacks

    def release(self, stack: Json) -> None:
        """Send the signal for which a stack in the region south waits."""
        path = f"/v1/{{own}}/stacks/{stack['stack_name']}/{stack['id']}/resources/handle/signal"
        signal = {"status": "SUCCESS"}
        wait_for(lambda: self.ask(self.south, "POST", path, signal).status == 200, 120)

    def reason(self, path: str) -> str:
        return str(self.ask(self.north, "GET", path).body["stack"]["stack_status_reason"])

    def resource(self, path: str) -> Json:
        return self.ask(self.north, "GET", f"{path}/resources/away").body["resource"]

    def delete(self, path: str) -> None:
        assert self.ask(self.north, "DELETE", path).status == 204

        def is_gone() -> bool:
            answer = self.ask(self.north, "GET", path)
            return answer.status == 404 or answer.body["stack"]["stack_status"] == "DELETE_COMPLETE"

        wait_for(is_gone, 180, lambda: self.ask(self.north, "GET", path))

    def _started(self, region: str) -> Service:
        folder = self.folder / region
        folder.mkdir(exist_ok=True)
        config = folder / "extra.conf"
        values = {"region": region, "auth_url": self.keystone.url, "password": PASSWORD}
        config.write_text(CONFIG.format(**values))
        return Service(folder, config=config)


@pytest.fixture(scope="module")
def regions(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    started = Regions(keystone, tmp_path_factory.mktemp("regions"))
    yield started
    started.north.stop()
    started.south.stop()
    started.proxy.close()
    keystone.remove("service", started.service)  # Other tests have the same catalog.


def test_a_stack_lives_in_another_region(regions: Regions) -> None:
    place = {"region_name": "south"}
    path = regions.create("far", a_template(place, {"text": "one", "secret": {"get_param": "hush"}}))
    outputs = regions.wait(path, "CREATE_COMPLETE")
    [stack] = regions.away()
    assert outputs == {"told": "one", "file": "a note", "name": stack["stack_name"]}
    resource = regions.resource(path)
    assert (resource["resource_type"], resource["physical_resource_id"]) == ("OS::Heat::Stack", stack["id"])
    assert regions.ask(regions.north, "GET", f"{path}/resources?nested_depth=2").body["resources"][1:] == []

    regions.update(path, a_template(place, {"text": "two"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "two"
    [updated] = regions.away()
    assert (updated["id"], updated["stack_status"]) == (stack["id"], "UPDATE_COMPLETE")

    for action in ("suspend", "resume", "check"):
        assert regions.ask(regions.north, "POST", f"{path}/actions", {action: None}).status in (200, 201, 202)
        regions.wait(path, f"{action.upper()}_COMPLETE")
        assert [item["stack_status"] for item in regions.away()] == [f"{action.upper()}_COMPLETE"]

    regions.delete(path)
    assert regions.away() == []


def test_a_remote_failure_is_the_reason_and_an_update_repairs_the_same_stack(
    regions: Regions,
) -> None:
    place = {"region_name": "south"}
    path = regions.create("failing", a_template(place, {"text": "one", "fails": True}))
    regions.wait(path, "CREATE_FAILED")
    [stack] = regions.away()
    assert 'resources.away: Went to status CREATE_FAILED due to "' in regions.reason(path)
    assert stack["stack_status_reason"] in regions.reason(path)
    regions.update(path, a_template(place, {"text": "one"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "one"
    assert [item["id"] for item in regions.away()] == [stack["id"]]
    regions.delete(path)


def test_the_region_refuses_a_template_in_its_own_words(regions: Regions) -> None:
    path = regions.create("wrong", a_template({"region_name": "south"}, {"no": "such"}))
    regions.wait(path, "CREATE_FAILED")
    beginning = 'Failed validating stack template using Heat endpoint at region "south" due to "'
    assert beginning in regions.reason(path)
    assert "The Parameter (no) was not defined in template" in regions.reason(path)
    assert regions.away() == []
    regions.delete(path)


def test_a_stack_moves_between_regions_by_a_replacement(regions: Regions) -> None:
    path = regions.create("moving", a_template({"region_name": "north"}, {"text": "one"}))
    regions.wait(path, "CREATE_COMPLETE")
    assert regions.away() == []
    before = regions.resource(path)["physical_resource_id"]
    regions.update(path, a_template({"region_name": "south"}, {"text": "two"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "two"
    [stack] = regions.away()
    assert regions.resource(path)["physical_resource_id"] == stack["id"] != before
    regions.update(path, a_template({"region_name": "north"}, {"text": "three"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "three"
    assert regions.away() == []
    regions.delete(path)


def test_a_killed_stoker_makes_nothing_twice(regions: Regions) -> None:
    regions.proxy.holds.set()
    try:
        path = regions.create("killed", a_template({"region_name": "south"}, {"text": "one"}))
        assert regions.proxy.answered.wait(120)
        regions.north.process.kill()
    finally:
        regions.proxy.holds.clear()
    assert len(regions.away()) == 1  # Made, and nobody knows of it.
    regions.restart_north()
    assert regions.wait(path, "CREATE_COMPLETE")["told"] == "one"
    [stack] = regions.away()
    assert regions.resource(path)["physical_resource_id"] == stack["id"]

    regions.update(path, a_template({"region_name": "south"}, {"text": "two", "held": True}))
    wait_for(lambda: regions.away()[0]["stack_status"] == "UPDATE_IN_PROGRESS", 120, regions.away)
    regions.north.process.kill()
    regions.restart_north()
    regions.release(stack)
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "two"
    assert [item["id"] for item in regions.away()] == [stack["id"]]
    regions.delete(path)
    assert regions.away() == []


def credential(regions: Regions, **changes: Json) -> str:
    """The document of the user's own credential for the region south, as that of another cloud."""
    auth = {
        "auth_url": regions.keystone.url,
        "username": "rover",
        "password": PASSWORD,
        "project_name": "regions",
        "user_domain_id": "default",
        "project_domain_id": "default",
        **changes,
    }
    return json.dumps({"auth_type": "v3password", "auth": auth})


@pytest.fixture(scope="module")
def vault(regions: Regions, barbican: Barbican) -> Iterator[Barbican]:
    service = regions.keystone.make("service", name="barbican", type="key-manager")
    for region in ("north", "south"):
        regions.keystone.make(
            "endpoint", service_id=service, interface="public", region_id=region, url=barbican.url
        )
    yield barbican
    regions.keystone.remove("service", service)


def test_a_stack_lives_in_another_cloud(regions: Regions, vault: Barbican) -> None:
    def store(text: str) -> str:
        return vault.store(regions.keystone.token("rover", "regions"), text)

    secret = store(credential(regions))
    place = {"credential_secret_id": secret.rpartition("/")[2], "region_name": "south"}
    path = regions.create("cloudy", a_template(place, {"text": "one"}))
    assert regions.wait(path, "CREATE_COMPLETE")["told"] == "one"
    [stack] = regions.away()

    # A new secret for the same project: the same stack.
    again = {**place, "credential_secret_id": store(credential(regions))}
    regions.update(path, a_template(again, {"text": "two"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "two"
    assert [item["id"] for item in regions.away()] == [stack["id"]]

    # One for another project: another stack there, and this one is deleted.
    second_project = regions.keystone.make("project", name="elsewhere", domain_id="default")
    regions.keystone.grant(regions.user, second_project, "member")
    moved = {**place, "credential_secret_id": store(credential(regions, project_name="elsewhere"))}
    regions.update(path, a_template(moved, {"text": "three"}))
    assert regions.wait(path, "UPDATE_COMPLETE")["told"] == "three"
    assert regions.away() == []
    regions.delete(path)

    for folder in ("north", "south"):
        written = [file.read_bytes() for file in (regions.folder / folder).rglob("*") if file.is_file()]
        # The service's own password is the same, and only in its configuration.
        assert [text for text in written if PASSWORD.encode() in text and b"auth_url" not in text] == []


def test_a_wrong_credential_names_the_property(regions: Regions, vault: Barbican) -> None:
    token = regions.keystone.token("rover", "regions")
    nowhere = "00000000-0000-0000-0000-000000000000"
    cases = {
        nowhere: "there is no secret",
        "nonsense": "must be the id of a secret",
        vault.store(token, "not JSON: hush-hush"): "is not JSON",
        vault.store(token, '{"auth_type": "v3oidcpassword", "auth": {}}'): "its auth_type must be one of",
        vault.store(token, credential(regions, password="wrong-hush")): "Keystone refuses it",
        vault.store(token, credential(regions, auth_url="http://169.254.169.254/v3")): "is not allowed",
    }
    for number, (secret, expected) in enumerate(cases.items()):
        place = {"credential_secret_id": secret, "region_name": "south"}
        path = regions.create(f"wrong-{number}", a_template(place, {"text": "one"}))
        regions.wait(path, "CREATE_FAILED")
        reason = regions.reason(path)
        assert 'Cannot establish connection to Heat endpoint at remote cloud due to "context.cred' in reason
        assert expected in reason
        assert "hush" not in reason
        regions.delete(path)
    assert regions.away() == []
    assert requests.get(vault.url, timeout=30).status_code == 300
