"""Work that is done for users when their tokens are gone, with trusts of a real Keystone."""

import contextlib
import json
import pathlib
import sqlite3
import threading
import typing
from collections.abc import Iterator

import pytest
import requests
from client.serving import Answer, Service, fault
from harness.holding_proxy import HoldingProxy
from harness.keystone import PASSWORD, Keystone
from harness.third_party import with_plugins
from harness.waiting import wait_for

Json = typing.Any
CHILD = """
heat_template_version: 2018-08-31
parameters: {gate: {type: string}}
resources:
  inside: {type: Test::WhoAmI, properties: {gate: {get_param: gate}}}
outputs:
  user: {value: {get_attr: [inside, user]}}
"""


def a_template(gate: pathlib.Path, number: int = 0) -> Json:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "own": {"type": "Test::WhoAmI", "properties": {"gate": str(gate), "round": number}},
            "child": {"type": "child.yaml", "properties": {"gate": str(gate)}},
        },
        "outputs": {
            "told": {"value": {"get_attr": ["own"]}},
            "inside": {"value": {"get_attr": ["child", "user"]}},
        },
    }


class Cloud:
    """A project with two members, and a Stoker with a type that needs a credential."""

    def __init__(self, keystone: Keystone, folder: pathlib.Path) -> None:
        self.keystone = keystone
        self.folder = folder
        self.project = keystone.make("project", name="trusts", domain_id="default")
        self.users = {
            name: keystone.make("user", name=name, domain_id="default", password=PASSWORD)
            for name in ("trustor", "successor", "trustee")
        }
        self.proxy = HoldingProxy(keystone.url.removesuffix("/v3"), held="/OS-TRUST/trusts")
        for name in ("trustor", "successor"):
            keystone.grant(self.users[name], self.project, "member")
        service = keystone.make("project", name="services", domain_id="default")
        keystone.grant(self.users["trustee"], service, "service")
        config = folder / "keystone.conf"
        config.write_text(
            "[api]\nauth_strategy = keystone\n"
            f"[keystone_authtoken]\nauth_type = password\nauth_url = {self.proxy.url}/v3\n"
            f"username = trustee\npassword = {PASSWORD}\nproject_name = services\n"
            "user_domain_id = default\nproject_domain_id = default\n"
        )
        self._config = config
        self.start()

    def start(self) -> None:
        """Start Stoker, on the data that it had."""
        env = with_plugins(self.folder / "plugins", "harness.keystone_plugins")
        log = self.folder / "stoker.log"
        if log.exists():
            log.rename(self.folder / "before.log")  # A start is waited for by what the log says.
        self.service = Service(self.folder, config=self._config, env=env)

    def change(self, statement: str) -> int:
        """Run a statement on Stoker's database; how many rows it has changed."""
        with (
            contextlib.closing(sqlite3.connect(self.folder / "data" / "stoker.sqlite", timeout=120)) as conn,
            conn,
        ):
            return conn.execute(statement).rowcount

    def token(self, user: str) -> str:
        return self.keystone.token(user, "trusts")

    def call(self, token: str, method: str, path: str, body: Json = None) -> Answer:
        return self.service.call(method, path.format(own=self.project), body, headers={"X-Auth-Token": token})

    def ask(self, user: str, method: str, path: str, body: Json = None) -> Json:
        answer = self.call(self.token(user), method, path, body)
        assert answer.status < 300, answer
        return answer.body

    def create(self, token: str, name: str, gate: pathlib.Path) -> Answer:
        body = {"stack_name": name, "template": a_template(gate), "files": {"child.yaml": CHILD}}
        return self.call(token, "POST", "/v1/{own}/stacks", body)

    def wait(self, user: str, path: str, status: str) -> Json:
        token = self.token(user)

        def now() -> Json:
            return self.call(token, "GET", path).body["stack"]

        wait_for(lambda: not now()["stack_status"].endswith("IN_PROGRESS"), 120, now)
        assert now()["stack_status"] == status, now()["stack_status_reason"]
        return {item["output_key"]: item["output_value"] for item in now()["outputs"]}

    def trusts(self, user: str) -> list[Json]:
        """Return the trusts of a user that Keystone knows."""
        answer = requests.get(
            f"{self.keystone.url}/OS-TRUST/trusts?trustor_user_id={self.users[user]}",
            headers={"X-Auth-Token": self.token(user)},
            timeout=30,
        )
        assert answer.ok, answer.text
        trusts: list[Json] = answer.json()["trusts"]
        return trusts


@pytest.fixture(scope="module")
def cloud(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    started = Cloud(keystone, tmp_path_factory.mktemp("trusts"))
    yield started
    started.service.stop()
    started.proxy.close()


@pytest.mark.commit
def test_a_stack_acts_for_its_user_when_their_token_is_revoked(cloud: Cloud) -> None:
    token = cloud.token("trustor")
    gate = cloud.folder / "long"
    answer = cloud.create(token, "long", gate)
    assert answer.status == 201, answer
    path = f"/v1/{{own}}/stacks/long/{answer.body['stack']['id']}"
    requests.delete(
        f"{cloud.keystone.url}/auth/tokens",
        headers={"X-Auth-Token": token, "X-Subject-Token": token},
        timeout=30,
    ).raise_for_status()
    checked = {"X-Auth-Token": cloud.token("trustor"), "X-Subject-Token": token}
    assert requests.get(f"{cloud.keystone.url}/auth/tokens", headers=checked, timeout=30).status_code == 404

    gate.touch()
    outputs = cloud.wait("trustor", path, "CREATE_COMPLETE")
    identity = {"user": "trustor", "project": cloud.project, "roles": ["member", "reader"]}
    assert outputs == {"told": identity, "inside": "trustor"}
    [trust] = cloud.trusts("trustor")
    assert trust["trustee_user_id"] == cloud.users["trustee"]
    assert trust["id"].encode() not in b"".join(
        file.read_bytes() for file in cloud.folder.rglob("*") if file.is_file()
    )

    # Another member of the project deletes it: still in the name of the first.
    assert cloud.call(cloud.token("successor"), "DELETE", path).status == 204
    wait_for(lambda: cloud.trusts("trustor") == [], 120, lambda: cloud.trusts("trustor"))
    assert gate.read_text() == "trustor"
    with sqlite3.connect(
        f"file:{cloud.folder / 'data' / 'stoker.sqlite'}?mode=ro", uri=True, timeout=120
    ) as conn:
        # The trust is deleted at Keystone first, so that nothing is lost where it does not answer.
        wait_for(lambda: conn.execute("SELECT count(*) FROM credential").fetchone() == (0,))


def test_an_update_renews_a_credential_that_keystone_does_not_take_any_more(cloud: Cloud) -> None:
    gate = cloud.folder / "renewed"
    gate.touch()
    answer = cloud.create(cloud.token("trustor"), "renewed", gate)
    path = f"/v1/{{own}}/stacks/renewed/{answer.body['stack']['id']}"
    cloud.wait("trustor", path, "CREATE_COMPLETE")
    [trust] = cloud.trusts("trustor")
    requests.delete(
        f"{cloud.keystone.url}/OS-TRUST/trusts/{trust['id']}",
        headers={"X-Auth-Token": cloud.token("trustor")},
        timeout=30,
    ).raise_for_status()
    changed = {"template": a_template(gate, 1), "files": {"child.yaml": CHILD}}
    cloud.ask("successor", "PUT", path, changed)
    assert cloud.wait("trustor", path, "UPDATE_COMPLETE")["told"]["user"] == "successor"
    assert len(cloud.trusts("successor")) == 1

    # One that is good stays, whoever updates the stack.
    cloud.ask("trustor", "PUT", path, {**changed, "template": a_template(gate, 2)})
    assert cloud.wait("trustor", path, "UPDATE_COMPLETE")["told"]["user"] == "successor"
    assert cloud.trusts("trustor") == []


def test_a_trust_that_keystone_refuses_leaves_nothing(cloud: Cloud) -> None:
    """Keystone lets nobody who has a trust's token, or an application credential's, make a trust."""
    user = cloud.users["successor"]
    before = cloud.trusts("successor")
    credential = requests.post(
        f"{cloud.keystone.url}/users/{user}/application_credentials",
        json={"application_credential": {"name": "restricted", "secret": "s3cret"}},
        headers={"X-Auth-Token": cloud.token("successor")},
        timeout=30,
    ).json()["application_credential"]
    method = {"id": credential["id"], "secret": "s3cret"}
    identity = {"methods": ["application_credential"], "application_credential": method}
    answer = requests.post(
        f"{cloud.keystone.url}/auth/tokens", json={"auth": {"identity": identity}}, timeout=30
    )
    restricted = answer.headers["X-Subject-Token"]
    refused = cloud.create(restricted, "refused", cloud.folder / "never")
    assert fault(refused) == (403, "Forbidden")
    assert "Keystone does not let you hand your rights over" in refused.error["message"]
    # A name that is taken, and a template that is wrong, leave no trust behind.
    duplicate = cloud.create(cloud.token("successor"), "renewed", cloud.folder / "never")
    assert fault(duplicate) == (409, "StackExists")
    wrong = {"stack_name": "wrong", "template": {**a_template(cloud.folder), "outputs": {"x": {}}}}
    assert cloud.call(cloud.token("successor"), "POST", "/v1/{own}/stacks", wrong).status == 400
    assert cloud.trusts("successor") == before
    listed = cloud.ask("successor", "GET", "/v1/{own}/stacks")["stacks"]
    assert "refused" not in json.dumps(listed)


def test_a_stack_that_the_database_does_not_take_leaves_no_trust(cloud: Cloud) -> None:
    before = cloud.trusts("trustor")
    cloud.change(
        "CREATE TRIGGER refuse BEFORE INSERT ON stack WHEN NEW.name = 'unstorable' "
        "BEGIN SELECT RAISE(ABORT, 'the database refuses it'); END"
    )
    try:
        answer = cloud.create(cloud.token("trustor"), "unstorable", cloud.folder / "never")
    finally:
        cloud.change("DROP TRIGGER refuse")
    assert answer.status >= 500, answer
    assert cloud.trusts("trustor") == before
    assert cloud.change("UPDATE credential SET body = body WHERE unused_at IS NOT NULL") == 0


def test_a_process_that_is_killed_between_keystones_answer_and_the_commit_leaves_no_trust(
    cloud: Cloud,
) -> None:
    # In this process another trust of the same user's is in use.
    gate = cloud.folder / "living"
    gate.touch()
    answer = cloud.create(cloud.token("trustor"), "living", gate)
    path = f"/v1/{{own}}/stacks/living/{answer.body['stack']['id']}"
    cloud.wait("trustor", path, "CREATE_COMPLETE")
    before = cloud.trusts("trustor")
    assert before

    def ask(token: str = cloud.token("trustor")) -> None:
        with contextlib.suppress(requests.RequestException):
            cloud.create(token, "killed", cloud.folder / "never")

    cloud.proxy.holds.set()
    asking = threading.Thread(target=ask)
    asking.start()
    assert cloud.proxy.answered.wait(120)
    cloud.service.process.kill()
    asking.join(60)
    cloud.proxy.holds.clear()
    assert len(cloud.trusts("trustor")) == len(before) + 1

    cloud.start()
    assert "killed" not in json.dumps(cloud.ask("trustor", "GET", "/v1/{own}/stacks"))
    # The time in which it might still be confirmed is over.
    assert cloud.change("UPDATE credential SET unused_at = 1 WHERE unused_at IS NOT NULL") == 1
    wait_for(lambda: cloud.trusts("trustor") == before, 120, lambda: cloud.trusts("trustor"))
    unused = "UPDATE credential SET body = body WHERE unused_at IS NOT NULL"
    wait_for(lambda: cloud.change(unused) == 0, 120)
    cloud.ask("trustor", "DELETE", path)
    wait_for(lambda: len(cloud.trusts("trustor")) == len(before) - 1, 120, lambda: cloud.trusts("trustor"))
