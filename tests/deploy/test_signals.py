"""Signals behind a real Keystone from those who have no account: curl, with the stack's addresses."""

import json
import pathlib
import shlex
import subprocess
import typing
from collections.abc import Iterator

import pytest
from client.serving import Service, fault
from harness.keystone import PASSWORD, Keystone
from harness.waiting import wait_for

Json = typing.Any
CONDITION = {"count": 3, "timeout": 3600, "handle": {"get_resource": "handle"}}
AWS_CONDITION = {"Count": 1, "Timeout": 3600, "Handle": {"get_resource": "aws_handle"}}
WAITING = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "condition": {"type": "OS::Heat::WaitCondition", "properties": CONDITION},
        "cfn": {
            "type": "OS::Heat::WaitConditionHandle",
            "properties": {"signal_transport": "CFN_SIGNAL"},
        },
        "aws_handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
        "aws_condition": {"type": "AWS::CloudFormation::WaitCondition", "properties": AWS_CONDITION},
        "update_handle": {"type": "OS::Heat::UpdateWaitConditionHandle"},
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 3, "resource": {"type": "OS::Heat::None"}},
        },
        "up": {
            "type": "OS::Heat::ScalingPolicy",
            "properties": {
                "auto_scaling_group_id": {"get_resource": "group"},
                "adjustment_type": "change_in_capacity",
                "scaling_adjustment": 1,
            },
        },
    },
    "outputs": {
        "curl": {"value": {"get_attr": ["handle", "curl_cli"]}},
        "endpoint": {"value": {"get_attr": ["handle", "endpoint"]}},
        "token": {"value": {"get_attr": ["handle", "token"]}},
        "cfn": {"value": {"get_attr": ["cfn", "signal"]}},
        "aws": {"value": {"get_resource": "aws_handle"}},
        "update": {"value": {"get_resource": "update_handle"}},
        "alarm": {"value": {"get_attr": ["up", "alarm_url"]}},
        "native": {"value": {"get_attr": ["up", "signal_url"]}},
        "size": {"value": {"get_attr": ["group", "current_size"]}},
    },
}
AWS_SIGNAL = {"UniqueId": "one", "Status": "SUCCESS", "Reason": "done", "Data": ""}


class Tenant:
    """A project with a member, and a Stoker."""

    def __init__(self, keystone: Keystone, folder: pathlib.Path) -> None:
        config = folder / "keystone.conf"
        config.write_text(
            "[api]\nauth_strategy = keystone\n"
            f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone.url}\nusername = admin\n"
            f"password = {PASSWORD}\nproject_name = admin\n"
            "user_domain_id = default\nproject_domain_id = default\n"
        )
        self.id = keystone.make("project", name="signals", domain_id="default")
        user = keystone.make("user", name="signaller", domain_id="default", password=PASSWORD)
        keystone.grant(user, self.id, "member")
        self._headers = {"X-Auth-Token": keystone.token("signaller", "signals")}
        self.service = Service(folder, config=config)

    def call(self, method: str, path: str, body: Json = None) -> Json:
        answer = self.service.call(method, path, body, headers=self._headers)
        assert answer.status < 300, answer
        return answer.body

    def create(self, name: str) -> str:
        body = {"stack_name": name, "template": WAITING}
        answer = self.call("POST", f"/v1/{self.id}/stacks", body)
        return f"/v1/{self.id}/stacks/{name}/{answer['stack']['id']}"

    def outputs(self, path: str) -> dict[str, Json]:
        outputs = self.call("GET", path)["stack"]["outputs"]
        return {output["output_key"]: output["output_value"] for output in outputs}

    def signal_addresses(self, path: str) -> dict[str, str]:
        """The outputs, once all signal addresses have a value."""
        names = ("curl", "endpoint", "token", "cfn", "aws", "update", "alarm")
        wait_for(lambda: all(self.outputs(path)[name] for name in names), 120, lambda: self.outputs(path))
        return self.outputs(path)

    def wait(self, path: str, status: str) -> None:
        def now() -> str:
            return str(self.call("GET", path)["stack"]["stack_status"])

        wait_for(lambda: now() == status, 120, now)


@pytest.fixture(scope="module")
def tenant(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    started = Tenant(keystone, tmp_path_factory.mktemp("signals"))
    yield started
    started.service.stop()


@pytest.fixture(scope="module")
def waiting(tenant: Tenant) -> str:
    return tenant.create("waiting")


def shell(command: str, body: str | None = None) -> int:
    """Run a command line that uses curl, as an instance does; the status that was answered."""
    sent = "" if body is None else f" --data-binary {shlex.quote(body)}"
    line = f"{command} -s -o /dev/null -w '%{{http_code}}'{sent}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    return int(done.stdout)


@pytest.mark.commit
def test_the_outputs_of_the_stack_are_all_that_curl_needs(tenant: Tenant, waiting: str) -> None:
    addresses = tenant.signal_addresses(waiting)
    success = '{"status": "SUCCESS"}'
    assert shell(addresses["curl"], success) == 200
    assert (
        shell(f"curl -X POST -H 'X-Auth-Token: {addresses['token']}' {addresses['endpoint']}", success) == 200
    )
    assert shell(f"curl -X POST '{addresses['curl'].split(chr(39))[-2]}'") == 200, "without a body"
    assert shell(f"curl -X POST '{json.loads(addresses['cfn'])['alarm_url']}'", success) == 200
    # As cfn-signal does.
    aws = f"curl -X PUT -H 'Content-Type:' '{addresses['aws']}'"
    assert shell(aws, json.dumps(AWS_SIGNAL)) == 200
    tenant.wait(waiting, "CREATE_COMPLETE")

    assert shell(f"curl -X POST '{addresses['alarm']}'", '{"current": "alarm"}') == 200
    wait_for(lambda: tenant.outputs(waiting)["size"] == 2, 120)
    assert shell(f"curl -X POST '{addresses['native']}'") == 401, "that one takes a token of Keystone's"


def test_a_signature_is_good_for_its_own_resource_only(tenant: Tenant, waiting: str) -> None:
    addresses = tenant.signal_addresses(waiting)
    foreign = addresses["alarm"].replace("/up/", "/handle/")
    endpoint, _, signature = addresses["aws"].partition("?Signature=")
    native = addresses["endpoint"].rpartition("/")[0]
    for url in (
        endpoint,
        foreign,
        f"{addresses['endpoint']}?Signature={signature}",
        f"{endpoint}?Signature=00",
    ):
        answer = tenant.service.call("POST", url, AWS_SIGNAL)
        assert fault(answer) == (403, "Forbidden")
        assert "the signature of this address is missing or wrong" in answer.error["message"]
    for url in (native, f"{native}?Signature={addresses['token']}", native.rpartition("/resources/")[0]):
        answer = tenant.service.call("POST", url, {}, headers={"X-Auth-Token": addresses["token"]})
        assert answer.status in (401, 405), "it opens nothing else"


def test_identity_headers_of_the_client_are_ignored(tenant: Tenant, waiting: str) -> None:
    """Requests to signed addresses do not come past the middleware that checks these headers."""
    claimed = {"X-Identity-Status": "Confirmed", "X-Project-Id": tenant.id, "X-Roles": "admin"}
    path = f"/v1/{tenant.id}/stacks/waiting/resources/resources/up/signal/1"
    assert fault(tenant.service.call("POST", path, {}, headers=claimed)) == (401, "Unauthorized")
    signed = tenant.signal_addresses(waiting)["aws"].partition("?")[0]
    assert fault(tenant.service.call("POST", signed, {}, headers=claimed)) == (403, "Forbidden")


def test_an_address_dies_with_its_resource(tenant: Tenant, waiting: str) -> None:
    tenant.wait(waiting, "CREATE_COMPLETE")
    before = tenant.outputs(waiting)
    assert tenant.service.call("PUT", before["update"], AWS_SIGNAL).status == 200
    tenant.call("PUT", waiting, {"template": WAITING})
    tenant.wait(waiting, "UPDATE_COMPLETE")
    after = tenant.outputs(waiting)
    assert after["aws"] == before["aws"]
    assert after["update"] != before["update"]

    def refused(url: str) -> bool:
        answer = tenant.service.call("PUT", url, AWS_SIGNAL)
        return answer.status == 403 and "was deleted or replaced" in answer.error["message"]

    assert refused(before["update"])
    assert tenant.service.call("PUT", after["update"], AWS_SIGNAL).status == 200
    tenant.call("DELETE", waiting)
    tenant.wait(waiting, "DELETE_COMPLETE")
    assert refused(after["update"])
    assert refused(after["alarm"])
