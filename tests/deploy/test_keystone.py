"""The API behind a real Keystone: who may do what with whose stacks."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import typing
import uuid
from collections.abc import Iterator

import pytest
import requests
from attack.__main__ import tried
from attack.callers import make_callers
from attack.cases import CASES
from attack.target import Target
from attack.test_attack import holey
from client.serving import Answer, Service, fault
from harness import templates
from harness.keystone import PASSWORD, REGION, Keystone
from harness.waiting import wait_for
from stoker.cli.wiring.policy import LOOK_EVERY

Json = typing.Any
GLOBAL = "'stacks:global_index': 'rule:context_is_admin'\n"
ROLES = ("operations_by_role", "foreign_projects_by_role", "tokens_without_a_project")
"""The attacks that need users of all roles."""
LIVES = (6, 30, 150)
"""Seconds a hasty token lives; more only where it has expired before its request."""
HELD = templates.template(
    {**templates.HELD, "after": {"type": "OS::Heat::TestResource", "depends_on": "held"}}
)
"""It waits for a signal, and then makes one thing more."""
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"one": {"type": "OS::Heat::TestResource", "properties": {"value": "1"}}},
}


@dataclasses.dataclass
class Cloud:
    """Keystone with two projects, a user of each role in both, and Stoker in its service catalog."""

    keystone: Keystone
    service: Service
    policy: pathlib.Path
    projects: dict[str, str]
    tokens: dict[tuple[str, str | None], str] = dataclasses.field(default_factory=dict)

    def rule(self, text: str) -> None:
        """Change the policy file, and wait until each process looks at it with its next request."""
        self.policy.write_text(text)
        time.sleep(1.01 * LOOK_EVERY)

    def as_user(self, user: str, project: str | None, method: str, path: str, body: Json = None) -> Answer:
        """One request; {own} in the path stands for the user's project."""
        if (user, project) not in self.tokens:
            self.tokens[user, project] = self.keystone.token(user, project)
        return self.with_token(
            self.tokens[user, project], method, path.replace("{own}", self.projects[project or "alpha"]), body
        )

    def with_token(self, token: str, method: str, path: str, body: Json = None) -> Answer:
        """One request."""
        return self.service.call(method, path, body, headers={"X-Auth-Token": token})

    def create(self, project: str, name: str) -> str:
        """A stack of the project's; its path."""
        body = {"stack_name": name, "template": TEMPLATE}
        answer = self.as_user(f"{project}-member", project, "POST", "/v1/{own}/stacks", body)
        assert answer.status == 201, answer
        return f"/v1/{self.projects[project]}/stacks/{name}/{answer.body['stack']['id']}"

    def openstack(self, user: str, project: str, *command: str) -> Json:
        """The real client, with a password and the service catalog."""
        done = self.run("openstack", user, project, *command, "-f", "json")
        assert done.returncode == 0, done.stderr
        # With --wait the client prints events first.
        begin = re.search(r"^[\[{]", done.stdout, re.MULTILINE)
        assert begin, done.stdout
        return json.loads(done.stdout[begin.start() :])

    def manage(self, user: str, project: str, *command: str) -> subprocess.CompletedProcess[str]:
        """``stoker-manage`` over the API that the service catalog names."""
        return self.run("stoker-manage", user, project, "--url", "auto", *command)

    def run(self, program: str, user: str, project: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A program of the user's, with the variables of the real client."""
        access = {
            "OS_AUTH_URL": self.keystone.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_REGION_NAME": REGION,
            "PYTHONWARNINGS": "ignore",
        }
        return subprocess.run(
            [pathlib.Path(sys.executable).parent / program, *command],
            env={**os.environ, **access},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def cloud(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    folder = tmp_path_factory.mktemp("keystone")
    policy = folder / "policy.yaml"
    config = folder / "keystone.conf"
    policy.write_text("")
    projects = {"admin": keystone.id_of("project", "admin")}
    for project in ("alpha", "beta"):
        projects[project] = keystone.make("project", name=project, domain_id="default")
        for role in ("reader", "member"):
            user = keystone.make("user", name=f"{project}-{role}", domain_id="default", password=PASSWORD)
            keystone.grant(user, projects[project], role)
    config.write_text(f"{keystone.options()}[oslo_policy]\npolicy_file = {policy}\n")
    service = Service(folder, config=config)
    entry = keystone.make("service", name="stoker", type="orchestration")
    url = f"{service.url}/v1/%(project_id)s"
    keystone.make("endpoint", service_id=entry, interface="public", region_id=REGION, url=url)
    yield Cloud(keystone, service, policy, projects)
    service.stop()


@pytest.mark.commit
def test_versions_and_health_are_served_without_a_token(cloud: Cloud) -> None:
    assert cloud.service.call("GET", "/").status == 300
    assert cloud.service.call("GET", "/healthcheck").status == 200
    assert cloud.service.call("GET", "/v1/openapi.json").body["openapi"] == "3.1.1"


@pytest.mark.parametrize("headers", [{}, {"X-Auth-Token": "nonsense"}, {"X-Identity-Status": "Confirmed"}])
def test_without_a_valid_token_nothing_is_shown(cloud: Cloud, headers: dict[str, str]) -> None:
    sent = {**headers, "X-Project-Id": cloud.projects["alpha"], "X-Roles": "admin"}
    answer = cloud.service.call("GET", f"/v1/{cloud.projects['alpha']}/stacks", headers=sent)
    assert fault(answer) == (401, "Unauthorized")
    assert cloud.keystone.url in answer.headers["WWW-Authenticate"]


@pytest.mark.commit
def test_the_client_finds_the_service_in_the_catalog_and_works_with_a_password(
    cloud: Cloud, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "t.yaml").write_text(json.dumps(TEMPLATE))
    command = ["stack", "create", "shown", "-t", str(tmp_path / "t.yaml"), "--wait", "--poll", "1"]
    stack = cloud.openstack("alpha-member", "alpha", *command)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    listed = cloud.openstack("alpha-reader", "alpha", "stack", "list")
    assert [(item["Stack Name"], item["Stack Status"]) for item in listed] == [("shown", "CREATE_COMPLETE")]


@pytest.mark.commit
def test_the_path_of_another_project_is_forbidden_and_its_stack_not_found(cloud: Cloud) -> None:
    path = cloud.create("beta", "private")
    own_path = path.replace(cloud.projects["beta"], cloud.projects["alpha"])
    for method, body in (("GET", None), ("DELETE", None), ("PUT", {"template": TEMPLATE})):
        assert fault(cloud.as_user("alpha-member", "alpha", method, path, body)) == (403, "Forbidden")
        assert fault(cloud.as_user("alpha-member", "alpha", method, own_path, body)) == (
            404,
            "EntityNotFound",
        )
    stack_id = path.rpartition("/")[2]
    by_id = cloud.as_user("alpha-member", "alpha", "GET", f"/v1/{{own}}/stacks/{stack_id}")
    assert fault(by_id) == (404, "EntityNotFound")


@pytest.mark.commit
def test_a_reader_looks_and_touches_nothing(cloud: Cloud) -> None:
    path = cloud.create("beta", "looked-at")
    answer = cloud.as_user("beta-reader", "beta", "GET", path)
    assert answer.status == 200
    body = {"stack_name": "more", "template": TEMPLATE}
    for method, where, sent in (
        ("POST", "/v1/{own}/stacks", body),
        ("DELETE", path, None),
        ("PATCH", path, {"existing": True}),
        ("POST", f"{path}/actions", {"suspend": None}),
        ("POST", "/v1/{own}/validate", {"template": TEMPLATE}),
    ):
        assert fault(cloud.as_user("beta-reader", "beta", method, where, sent)) == (403, "Forbidden")
    wait_for(lambda: _status(cloud, path) == "CREATE_COMPLETE", 120)
    # As in Heat, a check changes nothing.
    assert cloud.as_user("beta-reader", "beta", "POST", f"{path}/actions", {"check": None}).status == 200


def _status(cloud: Cloud, path: str) -> str:
    status: str = cloud.as_user("beta-reader", "beta", "GET", path).body["stack"]["stack_status"]
    return status


def test_no_attack_of_another_project_succeeds(cloud: Cloud, tmp_path: pathlib.Path) -> None:
    """The cases that tests/attack/ has for each installation, by users of clouds.yaml."""
    entries = {
        project: {
            "auth": {
                "auth_url": cloud.keystone.url,
                "username": f"{project}-member",
                "password": PASSWORD,
                "project_name": project,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            "region_name": REGION,
        }
        for project in ("alpha", "beta")
    }
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": entries}))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    variables["OS_CLIENT_CONFIG_FILE"] = str(tmp_path / "clouds.yaml")
    command = [sys.executable, "-W", "ignore", "-m", "attack", cloud.service.url]
    done = subprocess.run(
        [*command, "--cloud", "alpha", "--victim", "beta"],
        cwd=pathlib.Path(__file__).parents[1],
        env=variables,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    skipped = [line.split()[1] for line in done.stdout.splitlines() if line.split()[2:3] == ["skipped"]]
    assert sorted(skipped) == sorted([*ROLES, "rebound_names"]), done.stdout


def _one_refusal_less(path: str, answer: requests.Response) -> tuple[int, bytes]:
    """Worsen the answers to those who may not delete a snapshot: as if the policy had let them pass."""
    is_it = answer.request.method == "DELETE" and "/snapshots/" in path and answer.status_code == 403
    return 404 if is_it else answer.status_code, answer.content


def test_each_role_does_what_the_policy_says_with_tokens_of_keystones(cloud: Cloud) -> None:
    """And a single refusal that is missing is noticed."""
    run = uuid.uuid4().hex[:8]
    callers = make_callers(cloud.keystone, run)
    target = Target(cloud.service.url, callers.attacker, callers.victim, run, callers=callers)
    try:
        target.set_up()
        problems = {name: tried(CASES[name], target) for name in ROLES}
        with holey(cloud.service.url, _one_refusal_less) as url:
            noticed = {name: tried(CASES[name], dataclasses.replace(target, root=url)) for name in ROLES}
    finally:
        left = target.clean()
    assert (problems, left) == (dict.fromkeys(ROLES, ""), [])
    assert [name for name, problem in noticed.items() if "/snapshots/{snapshot_id}: " not in problem] == []


def test_the_conductors_are_listed_for_admins(cloud: Cloud) -> None:
    assert fault(cloud.as_user("alpha-member", "alpha", "GET", "/v1/{own}/services")) == (403, "Forbidden")
    assert cloud.as_user("admin", "admin", "GET", "/v1/{own}/services").status == 200


def test_a_token_for_the_whole_system_is_for_no_project(cloud: Cloud) -> None:
    assert fault(cloud.as_user("admin", None, "GET", "/v1/{own}/stacks")) == (403, "Forbidden")


def test_an_admin_lists_all_projects_where_the_policy_file_allows_it(cloud: Cloud) -> None:
    paths = {project: cloud.create(project, f"of-{project}") for project in ("alpha", "beta")}
    everything = "/v1/{own}/stacks?global_tenant=true"
    assert fault(cloud.as_user("admin", "admin", "GET", everything)) == (403, "Forbidden")

    cloud.rule(GLOBAL)
    answer = cloud.as_user("admin", "admin", "GET", everything)
    assert answer.status == 200, answer
    names = {item["stack_name"]: item["project"] for item in answer.body["stacks"]}
    assert {name: names.get(f"of-{name}") for name in paths} == {name: cloud.projects[name] for name in paths}
    assert fault(cloud.as_user("alpha-member", "alpha", "GET", everything)) == (403, "Forbidden")

    # The admin sees and deletes a stack of another's by its id.
    stack_id = paths["beta"].rpartition("/")[2]
    redirect = cloud.as_user("admin", "admin", "GET", f"/v1/{{own}}/stacks/{stack_id}")
    assert redirect.status == 302
    assert redirect.headers["Location"].endswith(paths["beta"])
    assert cloud.as_user("admin", "admin", "GET", paths["beta"]).status == 200
    assert cloud.as_user("admin", "admin", "DELETE", paths["beta"]).status == 204


RULED = """
'resource_types:OS::Heat::TestResource': 'role:admin'
'stacks:update_no_change': 'role:reader'
"""


def test_types_and_updates_without_a_change_have_rules_of_their_own(cloud: Cloud) -> None:
    path = cloud.create("alpha", "ruled")
    wait_for(
        lambda: (
            cloud.as_user("alpha-reader", "alpha", "GET", path).body["stack"]["stack_status"]
            == "CREATE_COMPLETE"
        ),
        120,
    )
    again = {"existing": True}
    changed = {"existing": True, "tags": "x"}
    assert fault(cloud.as_user("alpha-reader", "alpha", "PATCH", path, again)) == (403, "Forbidden")
    before = cloud.policy.read_text()
    cloud.rule(before + RULED)
    try:
        assert fault(cloud.as_user("alpha-reader", "alpha", "PATCH", path, changed)) == (403, "Forbidden")
        by_hand = {**TEMPLATE, "resources": {"a": {"type": "OS::Heat::None"}}}
        inside = {**TEMPLATE, "resources": {"a": {"type": "c.yaml"}}}
        group = {"count": 1, "resource_def": {"type": "Mapped"}}
        mapped = {**TEMPLATE, "resources": {"a": {"type": "OS::Heat::ResourceGroup", "properties": group}}}
        environment = {"resource_registry": {"Mapped": "OS::Heat::TestResource"}}
        bodies = (
            {"template": TEMPLATE},
            {"template": inside, "files": {"c.yaml": json.dumps(TEMPLATE)}},
            {"template": mapped, "environment": environment},
        )
        denied = "You are not authorized to use OS::Heat::TestResource."
        for body in bodies:
            answer = cloud.as_user(
                "alpha-member", "alpha", "POST", "/v1/{own}/stacks", {"stack_name": "no", **body}
            )
            assert (*fault(answer), answer.error["message"]) == (403, "Forbidden", denied)
        for method, where, sent in (
            ("PUT", path, {"template": TEMPLATE}),
            ("PATCH", path, again),
            ("DELETE", path, None),
            ("POST", f"{path}/actions", {"suspend": None}),
            ("GET", "/v1/{own}/resource_types/OS::Heat::TestResource", None),
        ):
            answer = cloud.as_user("alpha-member", "alpha", method, where, sent)
            assert (*fault(answer), answer.error["message"]) == (403, "Forbidden", denied), where
        names = cloud.as_user("alpha-member", "alpha", "GET", "/v1/{own}/resource_types").body[
            "resource_types"
        ]
        assert "OS::Heat::None" in names
        assert "OS::Heat::TestResource" not in names
        answer = cloud.as_user(
            "alpha-member", "alpha", "POST", "/v1/{own}/stacks", {"stack_name": "yes", "template": by_hand}
        )
        assert answer.status == 201
    finally:
        cloud.rule(before)
    assert cloud.as_user("alpha-member", "alpha", "DELETE", path).status == 204


def begun_with_a_hasty_token(cloud: Cloud, body: Json) -> tuple[str, str]:
    """Create a stack with a token that expires soon; the token, and the stack's path."""
    stacks = f"/v1/{cloud.projects['alpha']}/stacks"
    for seconds in LIVES:
        with cloud.keystone.hasty(seconds) as url:
            token = cloud.keystone.token("alpha-member", "alpha", url)
            answer = cloud.with_token(token, "POST", stacks, body)
        if answer.status != 401:
            break
    assert answer.status == 201, answer
    return token, f"{stacks}/{body['stack_name']}/{answer.body['stack']['id']}"


def test_a_stack_continues_after_the_token_of_its_creation_has_expired(cloud: Cloud) -> None:
    token, path = begun_with_a_hasty_token(cloud, {"stack_name": "long", "template": HELD})
    wait_for(lambda: cloud.with_token(token, "GET", path).status == 401, LIVES[-1] + 60)

    def ask(method: str, path: str, body: Json = None) -> Answer:
        return cloud.as_user("alpha-member", "alpha", method, path, body)

    def status() -> str:
        stack_status: str = ask("GET", path).body["stack"]["stack_status"]
        return stack_status

    assert status() == "CREATE_IN_PROGRESS"
    signal = f"{path}/resources/handle/signal"
    wait_for(lambda: ask("POST", signal, {"status": "SUCCESS"}).status == 200, 120)
    wait_for(lambda: status() == "CREATE_COMPLETE", 120, status)


@pytest.mark.parametrize(
    "command",
    [
        ("ring", "show"),
        ("ring", "plan", "--leave", "conductor-1"),
        ("ring", "rebalance", "--wait"),
        ("service", "list"),
        ("quota", "list"),
        ("quota", "show", "alpha"),
        ("quota", "delete", "alpha"),
    ],
    ids=" ".join,
)
def test_the_commands_over_the_api_are_for_admins(cloud: Cloud, command: tuple[str, ...]) -> None:
    done = cloud.manage("admin", "admin", *command)
    assert (done.returncode, done.stderr) == (0, ""), done
    refused = cloud.manage("alpha-member", "alpha", *command)
    assert refused.returncode == 1
    assert "Stoker answers 403 to" in refused.stderr


def test_a_project_of_quotas_is_named_as_keystone_names_it(cloud: Cloud) -> None:
    assert cloud.manage("admin", "admin", "quota", "set", "alpha", "stacks=7").returncode == 0
    [row] = cloud.openstack("admin", "admin", "orchestration", "quota", "list")
    assert (row["project"], row["stacks"]) == (cloud.projects["alpha"], 7)
    rows = cloud.openstack("alpha-member", "alpha", "orchestration", "quota", "show")
    assert {row["quota"]: row["limit"] for row in rows}["stacks"] == 7
    assert cloud.manage("admin", "admin", "quota", "delete", cloud.projects["alpha"]).returncode == 0
    assert cloud.openstack("admin", "admin", "orchestration", "quota", "list") == []
    unknown = cloud.manage("admin", "admin", "quota", "set", "gamma", "stacks=7")
    assert (unknown.returncode, unknown.stderr) == (1, "Keystone has no project with the name or id gamma\n")
