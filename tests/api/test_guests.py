"""The addresses for guests: who may read what, and what they get."""

import email.utils
import json
import re
import urllib.parse
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest
import requests
from client.serving import Json, Service
from harness.waiting import wait_for
from keystoneclient.contrib.ec2.utils import Ec2Signer

SERVER = {
    "type": "OS::Heat::DeployedServer",
    "metadata": {"colour": "red", "os-collect-config": {"polling_interval": 5}},
}


def template(transport: str = "POLL_SERVER_CFN", metadata: Json = None) -> Json:
    server = {**SERVER, "properties": {"software_config_transport": transport}}
    return {
        "heat_template_version": "2018-08-31",
        "resources": {"server": server if metadata is None else {**server, "metadata": metadata}},
        "outputs": {
            "id": {"value": {"get_resource": "server"}},
            "config": {"value": {"get_attr": ["server", "os_collect_config"]}},
        },
    }


class Guest:
    """The guest of a stack's server: its keys and addresses, and its requests."""

    def __init__(self, service: Service, path: str) -> None:
        self.service = service
        self.path = path
        stack = service.get(path)["stack"]
        outputs = {output["output_key"]: output["output_value"] for output in stack["outputs"]}
        self.server_id = outputs["id"]
        self.config = outputs["config"]
        self.project = path.split("/")[2]
        self.stack_name = stack["stack_name"]

    def signed(self, method: str = "GET", path: str = "/v1/", **changes: str) -> requests.Response:
        """A request as os-collect-config signs it; changes are of the parameters, and of the secret."""
        keys = self.config["cfn"]
        secret = changes.pop("secret", keys["secret_access_key"])
        params = {
            "Action": "DescribeStackResource",
            "StackName": keys["stack_name"],
            "LogicalResourceId": "server",
            "AWSAccessKeyId": keys["access_key_id"],
            "SignatureVersion": "2",
            **changes,
        }
        url = urllib.parse.urlsplit(self.service.url)
        signed = {"params": params, "verb": method, "host": url.netloc, "path": path}
        params["Signature"] = Ec2Signer(secret).generate(signed)
        where = f"{self.service.url}{urllib.parse.quote(path)}"
        if method == "POST" and path == "/v1/":
            return requests.request(method, where, data=params, timeout=120)
        return requests.request(method, where, params=params, timeout=120)

    def read(self, **changes: str) -> Json:
        """The metadata by a signed request."""
        return json.loads(metadata_of(self.signed(**changes)))

    def deploy(self, script: str) -> Json:
        """Deploy a config to the server, over the API."""
        body = {
            "name": "c",
            "group": "script",
            "config": script,
            "inputs": [{"name": "deploy_x", "value": "y"}],
        }
        config = self.call("POST", "software_configs", body)["software_config"]
        properties = {"config_id": config["id"], "server_id": self.server_id}
        self.call("POST", "software_deployments", properties)
        return config

    def call(self, method: str, path: str, body: Json) -> Json:
        answer = self.service.call(method, f"/v1/{self.project}/{path}", body)
        assert answer.status == 200, answer
        return answer.body


def metadata_of(answer: requests.Response) -> str:
    """The metadata, found where os-collect-config reads it."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/xml"
    detail = ElementTree.fromstring(answer.text).find("DescribeStackResourceResult/StackResourceDetail")
    assert detail is not None
    return str(detail.findtext("Metadata"))


def error_of(answer: requests.Response) -> tuple[int, str]:
    """Status and code of an error in Amazon's shape."""
    root = ElementTree.fromstring(answer.text)
    assert root.findtext("RequestId") == answer.headers["X-Openstack-Request-Id"]
    return answer.status_code, str(root.findtext("Error/Code"))


@pytest.fixture
def guest(service: Service, tenant: str) -> Guest:
    return Guest(service, service.created(tenant, "guarded", template()))


@pytest.fixture
def polled(service: Service, tenant: str) -> Guest:
    return Guest(service, service.created(tenant, "polled", template("POLL_TEMP_URL")))


def test_a_guest_reads_the_metadata_and_the_deployments_of_its_server(guest: Guest) -> None:
    config = guest.deploy("#!/bin/sh\nécho ∞ <&>\n")
    view = guest.read()
    assert view["colour"] == "red"
    assert view["os-collect-config"] == {"polling_interval": 5, **guest.config}
    [deployed] = view["deployments"]
    assert deployed == {**config, "inputs": [{"name": "deploy_x", "type": "String", "value": "y"}]}
    assert guest.config["collectors"] == ["cfn", "local"]
    metadata = guest.service.get(f"{guest.path}/resources/server/metadata")["metadata"]
    assert metadata == {name: view[name] for name in ("colour", "deployments")} | {
        "os-collect-config": {"polling_interval": 5}
    }


def test_a_form_and_json_are_other_ways_of_the_same(guest: Guest) -> None:
    assert json.loads(metadata_of(guest.signed("POST"))) == guest.read()
    detail = guest.signed(ContentType="JSON").json()["DescribeStackResourceResponse"]
    inner = detail["DescribeStackResourceResult"]["StackResourceDetail"]
    assert inner["Metadata"] == guest.read()
    assert (inner["ResourceStatus"], inner["PhysicalResourceId"]) == ("CREATE_COMPLETE", guest.server_id)
    assert inner["StackId"].startswith(f"arn:openstack:heat::{guest.project}:stacks/guarded/")
    for name in (inner["StackId"], guest.path.rpartition("/")[2]):
        assert guest.read(StackName=name) == guest.read()


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"secret": "0" * 64}, 403, "SignatureDoesNotMatch"),
        # No key of a guest's: without Keystone it names a project, which has no such stack.
        ({"AWSAccessKeyId": "AKIAIOSFODNN7EXAMPLE"}, 400, "InvalidParameterValue"),
        ({"StackName": "other"}, 403, "AccessDenied"),
        ({"LogicalResourceId": "other"}, 403, "AccessDenied"),
        ({"LogicalResourceId": ""}, 400, "MissingParameter"),
        ({"Action": "DeleteStack"}, 400, "InvalidAction"),
        ({"Timestamp": "2001-01-01T00:00:00Z"}, 400, "RequestExpired"),
        ({"SignatureVersion": "2", "Expires": "soon"}, 400, "IncompleteSignature"),
    ],
)
def test_a_wrong_request_is_refused(guest: Guest, changes: Mapping[str, str], status: int, code: str) -> None:
    assert error_of(guest.signed(**changes)) == (status, code)
    answer = guest.signed(ContentType="JSON", **changes)
    assert answer.json()["ErrorResponse"]["Error"]["Code"] == code


def test_a_request_without_a_signature_is_refused_and_one_without_an_action_shows_the_versions(
    guest: Guest,
) -> None:
    url = f"{guest.service.url}/v1/"
    assert error_of(requests.get(f"{url}?Action=x", timeout=120)) == (403, "MissingAuthenticationToken")
    assert error_of(requests.post(url, timeout=120)) == (403, "MissingAuthenticationToken")
    assert requests.get(url, timeout=120).status_code == 300


def test_the_keys_of_another_project_or_stack_are_no_good(guest: Guest, service: Service) -> None:
    stranger = Guest(service, service.created(f"{guest.project}x", "guarded", template()))
    keys = stranger.config["cfn"]
    assert keys["access_key_id"] != guest.config["cfn"]["access_key_id"]
    mixed = {"AWSAccessKeyId": keys["access_key_id"]}
    assert error_of(guest.signed(**mixed)) == (403, "SignatureDoesNotMatch")
    foreign = {**mixed, "secret": keys["secret_access_key"], "StackName": guest.path.rpartition("/")[2]}
    assert error_of(guest.signed(**foreign)) == (403, "AccessDenied")


def test_keys_are_invalid_when_their_row_is_deleted(guest: Guest, polled: Guest) -> None:
    url = polled.config["request"]["metadata_url"]
    assert guest.read()
    assert requests.get(url, timeout=120).status_code == 200
    for each in (guest, polled):
        assert each.service.call("DELETE", each.path).status == 204
        each.service.settled(each.path)
    assert error_of(guest.signed()) == (403, "InvalidClientTokenId")
    assert requests.get(url, timeout=120).status_code == 403


def test_an_address_gives_the_same_metadata_and_answers_304_when_unchanged(polled: Guest) -> None:
    url = polled.config["request"]["metadata_url"]
    config = polled.deploy("one")
    first = requests.get(url, timeout=120)
    assert [item["id"] for item in first.json()["deployments"]] == [config["id"]]
    assert first.json()["os-collect-config"]["request"] == {"metadata_url": url}
    tag = first.headers["ETag"]
    changed = first.headers["Last-Modified"]
    for etag in (tag, f'"x", W/{tag}', "*"):
        same = requests.get(url, headers={"If-None-Match": etag}, timeout=120)
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
    later = email.utils.formatdate(email.utils.parsedate_to_datetime(changed).timestamp() + 100, usegmt=True)
    assert requests.get(url, headers={"If-Modified-Since": later}, timeout=120).status_code == 304
    for wrong in ("yesterday", "Mon, 99 Jan 99999 00:00:00 GMT"):
        assert requests.get(url, headers={"If-Modified-Since": wrong}, timeout=120).status_code == 200
    head = requests.head(url, timeout=120)
    assert (head.status_code, head.content, head.headers["ETag"]) == (200, b"", tag)

    polled.deploy("two")
    second = requests.get(url, headers={"If-None-Match": tag}, timeout=120)
    assert (second.status_code, len(second.json()["deployments"])) == (200, 2)


def test_a_change_of_the_metadata_reaches_the_guest(polled: Guest) -> None:
    url = polled.config["request"]["metadata_url"]
    tag = requests.get(url, timeout=120).headers["ETag"]
    changed = {"template": template("POLL_TEMP_URL", {"colour": "blue"})}
    assert polled.service.call("PUT", polled.path, changed).status == 202
    assert polled.service.settled(polled.path)["stack_status"] == "UPDATE_COMPLETE"
    answer = requests.get(url, headers={"If-None-Match": tag}, timeout=120)
    assert (answer.status_code, answer.json()["colour"]) == (200, "blue")


def test_a_guest_learns_its_new_transport_by_the_old_one(guest: Guest) -> None:
    changed = {"template": template("POLL_TEMP_URL")}
    assert guest.service.call("PUT", guest.path, changed).status == 202
    assert guest.service.settled(guest.path)["stack_status"] == "UPDATE_COMPLETE"
    collect = guest.read()["os-collect-config"]
    assert collect["collectors"] == ["request", "local"]
    assert requests.get(collect["request"]["metadata_url"], timeout=120).status_code == 200
    assert "cfn" not in Guest(guest.service, guest.path).config


def test_the_keys_of_the_old_transport_are_invalid_when_the_guest_has_used_the_new_one(guest: Guest) -> None:
    def change(transport: str) -> str:
        changed = {"template": template(transport)}
        assert guest.service.call("PUT", guest.path, changed).status == 202
        assert guest.service.settled(guest.path)["stack_status"] == "UPDATE_COMPLETE"
        return transport

    change("POLL_TEMP_URL")
    url = guest.read()["os-collect-config"]["request"]["metadata_url"]
    assert requests.get(url, timeout=120).status_code == 200
    assert error_of(guest.signed()) == (403, "InvalidClientTokenId")
    names = f"{guest.project}:stacks/{guest.stack_name}/{guest.path.rpartition('/')[2]}"
    signal = guest.signed("POST", f"/v1/signal/arn:openstack:heat::{names}/resources/server")
    assert error_of(signal) == (403, "InvalidClientTokenId")
    change("POLL_SERVER_HEAT")
    assert error_of(guest.signed()) == (403, "InvalidClientTokenId")
    change("POLL_SERVER_CFN")
    collect = requests.get(url, timeout=120).json()["os-collect-config"]
    assert collect["cfn"] == guest.config["cfn"]
    assert guest.read()["colour"] == "red"
    assert requests.get(url, timeout=120).status_code == 403


def test_the_reason_of_a_waiting_deployment_is_the_last_action_of_its_server(guest: Guest) -> None:
    service = guest.service
    body = template()
    server = {"get_resource": "server"}
    body["resources"] |= {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "x"}},
        "apply": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {"config": {"get_resource": "config"}, "server": server},
        },
    }
    assert service.call("PUT", guest.path, {"template": body}).status == 202

    def reason() -> str:
        return str(service.get(f"{guest.path}/resources/apply")["resource"]["resource_status_reason"])

    wait_for(lambda: service.call("GET", f"{guest.path}/resources/apply").status == 200)
    wait_for(lambda: "has never asked for its metadata" in reason())
    assert reason().startswith(f"waits for a signal; server {guest.server_id} has never asked")
    [listed] = service.get(f"{guest.path}/resources?name=apply")["resources"]
    assert listed["resource_status_reason"] == reason()
    wait_for(lambda: guest.read()["deployments"])
    wait_for(lambda: guest.read() and "and has all of its deployments" in reason())
    assert re.search(r"last asked for its metadata at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, and", reason())
    assert service.call("POST", f"{guest.path}/resources/apply/signal", {"said": "x"}).status == 200
    assert service.settled(guest.path)["stack_status"] == "UPDATE_COMPLETE"
    assert "waits" not in reason()


class HeatGuest:
    """The part of os-collect-config and heat-config-notify that asks Keystone, and then Heat's API."""

    def __init__(self, account: Json) -> None:
        self.account = account
        self.token = ""
        self.endpoint = ""

    def log_in(self, **changes: str) -> int:
        """Get a token and the endpoint; return the status."""
        account = {**self.account, **changes}
        user = {"id": account["user_id"], "password": account["password"]}
        scope = {"project": {"id": account["project_id"]}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        answer = requests.post(f"{account['auth_url']}/auth/tokens", json=body, timeout=120)
        if answer.status_code == 201:
            self.token = answer.headers["X-Subject-Token"]
            [service] = answer.json()["token"]["catalog"]
            assert service["type"] == "orchestration"
            self.endpoint = service["endpoints"][0]["url"]
        return answer.status_code

    def call(self, method: str, stack_id: str, path: str, body: Json = None) -> requests.Response:
        url = f"{self.endpoint}/stacks/{stack_id}/resources/{path}"
        return requests.request(method, url, json=body, headers={"X-Auth-Token": self.token}, timeout=120)


def test_an_account_of_a_server_reads_its_metadata_and_nothing_else(service: Service, tenant: str) -> None:
    path = service.created(tenant, "polled", template("POLL_SERVER_HEAT", {"mine": 1}))
    account = Guest(service, path).config["heat"]
    assert set(account) == {"auth_url", "user_id", "password", "project_id", "stack_id", "resource_name"}
    version = requests.get(account["auth_url"], timeout=120).json()["version"]
    assert version["id"].startswith("v3.")
    guest = HeatGuest(account)
    for change in ({"password": "0" * 64}, {"user_id": "nobody"}, {"user_id": account["user_id"] + "1"}):
        assert guest.log_in(**change) == 401
    assert guest.log_in() == 201
    answer = guest.call("GET", account["stack_id"], "server/metadata")
    assert answer.json()["metadata"]["mine"] == 1
    assert answer.json()["metadata"]["os-collect-config"]["heat"] == account
    assert guest.call("GET", account["stack_id"], "other/metadata").status_code == 403
    assert guest.call("POST", account["stack_id"], "server/signal", {}).status_code == 403
    assert guest.call("GET", "x/00000000-0000-0000-0000-000000000000", "server/metadata").status_code == 403
    other_guest = HeatGuest(
        Guest(service, service.created(tenant, "two", template("POLL_SERVER_HEAT"))).config["heat"]
    )
    assert other_guest.log_in() == 201
    assert other_guest.call("GET", account["stack_id"], "server/metadata").status_code == 403
    service.call("DELETE", path)
    service.settled(path)
    assert guest.log_in() == 401
    assert guest.call("GET", account["stack_id"], "server/metadata").status_code == 403


def test_an_account_of_a_handle_signals_and_reads_nothing(service: Service, tenant: str) -> None:
    body = template()
    handle = {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "HEAT_SIGNAL"}}
    waits = {"handle": {"get_resource": "handle"}, "timeout": 600}
    body["resources"] |= {
        "handle": handle,
        "waits": {"type": "OS::Heat::WaitCondition", "properties": waits},
    }
    path = service.create(tenant, "signalled", body)
    url = f"{path}/resources/handle?with_attr=signal"
    wait_for(lambda: service.get(url)["resource"]["resource_status"] == "CREATE_COMPLETE")
    signal = json.loads(service.get(url)["resource"]["attributes"]["signal"])
    guest = HeatGuest(signal)
    assert guest.log_in() == 201
    stack_id = path.partition("/stacks/")[2]
    assert guest.call("GET", stack_id, "handle/metadata").status_code == 403
    headers = {"X-Auth-Token": guest.token}
    assert (
        requests.post(signal["alarm_url"], json={"id": "a"}, headers=headers, timeout=120).status_code == 200
    )
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    assert guest.call("POST", stack_id, "handle/signal", {"id": "b"}).status_code == 200
    assert set(service.get(f"{path}/resources/handle/metadata")["metadata"]) == {"a", "b"}


@pytest.mark.parametrize("transport", ["ZAQAR_MESSAGE"])
def test_a_transport_that_needs_another_service_is_refused_with_the_reason(
    service: Service, tenant: str, transport: str
) -> None:
    body = {"stack_name": "refused", "template": template(transport)}
    answer = service.call("POST", f"/v1/{tenant}/stacks", body)
    assert answer.status == 400
    assert f"{transport} is not supported: it needs" in answer.error["message"]


@pytest.mark.parametrize("change", ["Signature=00", "Signature="])
def test_an_address_with_a_wrong_signature_is_refused(polled: Guest, change: str) -> None:
    url: str = polled.config["request"]["metadata_url"]
    assert requests.get(f"{url.partition('?')[0]}?{change}", timeout=120).status_code == 403
    signal = url.replace("/guest/", "/signal/")
    assert requests.post(signal, json={}, timeout=120).status_code == 403


def handle(service: Service, tenant: str) -> tuple[Guest, str]:
    """The handle of a wait condition, and the ARN in Heat's addresses for signals to it."""
    body: Json = template()
    body["resources"]["handle"] = {"type": "OS::Heat::WaitConditionHandle"}
    path = service.created(tenant, "waits", body)
    return Guest(service, path), f"arn:openstack:heat::{tenant}:stacks/waits/{path.rpartition('/')[2]}"


@pytest.mark.parametrize(("method", "kind"), [("POST", "signal"), ("PUT", "waitcondition")])
def test_a_signed_signal_to_another_resource_than_that_of_the_keys_is_refused(
    service: Service, tenant: str, method: str, kind: str
) -> None:
    guest, arn = handle(service, tenant)
    refused = guest.signed(method, f"/v1/{kind}/{arn}/resources/handle")
    assert error_of(refused) == (403, "AccessDenied")
    assert error_of(guest.signed(method, f"/v1/{kind}/arn:aws")) == (400, "InvalidParameterValue")
    # A server takes no signals; it is the right resource, so its type decides.
    assert error_of(guest.signed(method, f"/v1/{kind}/{arn}/resources/server")) == (
        400,
        "ResourceActionNotSupported",
    )
