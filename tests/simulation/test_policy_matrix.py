"""The whole policy: each operation, asked by each kind of caller, in the own and in a foreign project.

`policy_matrix.txt` is the table that a person reads: who may do what.  A change of the policy or of the
routes shows as a line of it.
"""

import difflib
import typing
import uuid

import falcon.testing
import pytest
from harness.policy_requests import (
    BODIES,
    CALLERS,
    COLUMNS,
    TABLE,
    WORDS,
    decision,
    headers_of,
    policy_requests,
    table_line,
)
from harness.route_bodies import TEMPLATE
from oslo_config import cfg
from oslo_policy import policy
from simulation.test_life import ADDRESSES, api_of
from simulation.world import World
from stoker.api.keystone import KeystoneAuthentication
from stoker.cli.wiring.policy import list_rules
from stoker.cli.wiring.routes import ROUTES
from stoker.resources.contract.views import StackFacts

Json = typing.Any
WITHOUT_ROUTE = ("cloudformation:", "resource_types:", "service:hosts", "global_index", "actions:snapshot")
"""Parts of rules that no operation of the table asks for.  Heat takes snapshots by another route, too."""
HEAD = """\
Who may do what, as tests/simulation/test_policy_matrix.py finds it.
yes: the policy lets the request pass; -: 403; 401: without a token.
none: a token without a role of ours; guest: heat_stack_user; admin: of a project; operator: of everything.
foreign, domain, system: an admin whose token is for another project, for a domain, and for the whole system.

"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"), hosts=1)


def _enforcer() -> policy.Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    return enforcer


@pytest.fixture(scope="module")
def enforcer() -> policy.Enforcer:
    return _enforcer()


@pytest.fixture(scope="module")
def api(world: World, enforcer: policy.Enforcer) -> falcon.testing.TestClient:
    return api_of(world, auth=KeystoneAuthentication(enforcer))


class Project:
    """A project with one of each thing that has an id."""

    def __init__(self, api: falcon.testing.TestClient, world: World, name: str) -> None:
        self._api = api
        self.name = name
        stack = self._post("stacks", {"stack_name": f"stack-of-{name}", "template": TEMPLATE})["stack"]
        world.calm()
        path = f"stacks/stack-of-{name}/{stack['id']}"
        events = self._request("GET", f"{path}/resources/one/events")["events"]
        snapshot = self._post(f"{path}/snapshots", {})
        world.calm()
        config = self._post("software_configs", {"name": "c", "config": "text"})["software_config"]
        server = str(uuid.uuid4())
        values = {"config_id": config["id"], "server_id": server}
        deployment = self._post("software_deployments", values)["software_deployment"]
        self.values = {
            "tenant_id": name,
            "project_id": name,
            "stack_name": f"stack-of-{name}",
            "stack_id": stack["id"],
            "resource_name": "one",
            "output_key": "o",
            "event_id": events[0]["id"],
            "snapshot_id": snapshot["id"],
            "config_id": config["id"],
            "deployment_id": deployment["id"],
            "server_id": server,
            "type_name": "OS::Heat::Value",
            "template_version": "heat_template_version.2021-04-16",
            "host": "host0",
            "row": "1",
            "arn": f"arn:openstack:heat::{name}:stacks/x/y/resources/z",
        }

    def _post(self, below: str, body: Json) -> Json:
        return self._request("POST", below, body)

    def _request(self, method: str, below: str, body: Json = None) -> Json:
        headers = headers_of("member", self.name)
        answer = self._api.simulate_request(method, f"/v1/{self.name}/{below}", json=body, headers=headers)
        assert answer.status_code < 300, (below, answer.json)
        return answer.json


@pytest.fixture(scope="module")
def own(api: falcon.testing.TestClient, world: World) -> Project:
    return Project(api, world, "own")


@pytest.fixture(scope="module")
def foreign(api: falcon.testing.TestClient, world: World) -> Project:
    return Project(api, world, "foreign")


def _filled(path: str, values: typing.Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, path
    return path


def _ask(
    api: falcon.testing.TestClient, method: str, path: str, caller: str, project: str, body: Json = None
) -> falcon.testing.Result:
    """Ask; where the path has no id, a body that nobody can use stands for one that would make something."""
    sent = body if body is not None or method in ("GET", "HEAD", "DELETE") else {"nothing": "such"}
    return api.simulate_request(method, path, json=sent, headers=headers_of(caller, project))


def _word(answer: falcon.testing.Result) -> str:
    """The word of the table for an answer: whether the policy has let the request pass."""
    return WORDS.get(answer.status_code, "yes")


def test_each_operation_is_for_the_callers_of_the_table(
    api: falcon.testing.TestClient, own: Project, enforcer: policy.Enforcer
) -> None:
    """The policy comes before the search: of who may do it, the ids that nobody has are not found."""
    absent = {name: value if "_id" not in name else str(uuid.uuid4()) for name, value in own.values.items()}
    absent |= {"tenant_id": "own", "project_id": "own"}
    lines = [table_line("operation", COLUMNS)]
    for method, path, name, body in policy_requests():
        answers = [_ask(api, method, _filled(path, absent), caller, "own", body) for caller in COLUMNS]
        assert max(answer.status_code for answer in answers) < 500, name
        lines.append(table_line(name, map(_word, answers)))
    lines += ["", table_line("rule", COLUMNS)]
    authentication = KeystoneAuthentication(enforcer)
    for rule in sorted(rule.name for rule in list_rules()):
        if any(part in rule for part in WITHOUT_ROUTE):
            words = [decision(authentication, caller, rule) for caller in COLUMNS]
            lines.append(table_line(rule, words))
    table = HEAD + "".join(f"{line}\n" for line in lines)
    if table != TABLE.read_text():
        diff = difflib.unified_diff(
            TABLE.read_text().splitlines(), table.splitlines(), "table", "policy", n=0
        )
        pytest.fail("\n".join(diff), pytrace=False)


def test_each_rule_is_in_the_table() -> None:
    asked = {operation.rule for methods in ROUTES.values() for operation in methods.values()}
    by_body = {f"actions:{name.partition(' ')[2]}" for name in BODIES if name.startswith("actions")}
    by_body |= {"stacks:update_patch", "stacks:update_no_change", "actions:action"}
    helpers = {"context_is_admin", "project_admin", "deny_stack_user", "deny_everybody", "allow_everybody"}
    missing = [
        rule.name
        for rule in list_rules()
        if rule.name not in asked | by_body | helpers and not any(part in rule.name for part in WITHOUT_ROUTE)
    ]
    assert missing == []


def test_what_the_table_allows_is_served(api: falcon.testing.TestClient, own: Project) -> None:
    """A reader sees each thing of the own project; a route that finds nothing at all would fit the table."""
    unserved = [
        (name, answer.status_code)
        for method, path, name, body in policy_requests()
        if method == "GET" and "/admin/" not in path
        for answer in [_ask(api, method, _filled(path, own.values), "reader", "own")]
        if answer.status_code not in (200, 302, 403)
    ]
    assert unserved == []


@pytest.mark.parametrize("caller", [name for name in CALLERS if name not in ("nobody", "operator")])
def test_no_token_is_good_for_the_path_of_another_project(
    api: falcon.testing.TestClient, own: Project, foreign: Project, caller: str
) -> None:
    """The token of each role is for its own project only, whatever the operation."""
    passed = [
        (name, answer.status_code)
        for method, path, name, body in policy_requests()
        if "{tenant_id}" in path
        for answer in [_ask(api, method, _filled(path, foreign.values), caller, "own", body)]
        if answer.status_code != 403 or foreign.values["stack_id"] in answer.text
    ]
    assert passed == []


IDS = ("stack_id", "event_id", "snapshot_id", "config_id", "deployment_id", "server_id")


@pytest.mark.parametrize("caller", ["member", "admin"])
def test_a_foreign_id_is_answered_as_one_that_nobody_has(
    api: falcon.testing.TestClient, own: Project, foreign: Project, caller: str
) -> None:
    """Each id of another project, in each place that takes one: the same status, in the same words."""
    unlike = []
    nobodys = str(uuid.uuid4())
    for method, path, name, body in policy_requests():
        for variable in IDS:
            if f"{{{variable}}}" not in path:
                continue
            for stack in (own.values["stack_name"], foreign.values["stack_name"]):
                answers = []
                for value in (foreign.values[variable], nobodys):
                    filled = _filled(path, {**own.values, "stack_name": stack, variable: value})
                    answer = _ask(api, method, filled, caller, "own", body)
                    answers.append((answer.status_code, answer.text.replace(value, "ID")))
                if answers[0] != answers[1] or (answers[0][0] != 404 and variable != "server_id"):
                    unlike.append((name, variable, answers))
    assert unlike == []


PLACES: list[tuple[str, str, Json, str]] = [
    ("POST", "software_deployments", {"config_id": "ID", "server_id": "s"}, "config_id"),
    ("POST", "software_configs", {"name": "n", "config": "ID"}, "config_id"),
    ("PUT", "software_deployments/{deployment_id}", {"config_id": "ID"}, "config_id"),
    ("GET", "software_configs?marker=ID", None, "config_id"),
    ("GET", "software_deployments?server_id=ID", None, "server_id"),
    ("GET", "stacks?marker=ID", None, "stack_id"),
    ("GET", "stacks?id=ID", None, "stack_id"),
    ("GET", "stacks?name=ID", None, "stack_name"),
    ("GET", "stacks?owner_id=ID&show_nested=1", None, "stack_id"),
    ("GET", "stacks?tenant=ID", None, "project_id"),
    ("GET", "stacks/{stack_name}/{stack_id}/events?marker=ID", None, "event_id"),
    ("GET", "stacks/{stack_name}/{stack_id}/resources/one/events?marker=ID", None, "event_id"),
]
"""The bodies and queries that take an id."""


@pytest.mark.parametrize(("method", "below", "body", "variable"), PLACES)
def test_a_foreign_id_in_a_body_or_a_query_is_nobodys(
    api: falcon.testing.TestClient,
    own: Project,
    foreign: Project,
    method: str,
    below: str,
    body: Json,
    variable: str,
) -> None:
    answers = []
    for value in (foreign.values[variable], str(uuid.uuid4())):
        path, _, query = _filled(f"/v1/own/{below}", own.values).replace("ID", value).partition("?")
        sent = None if body is None else {key: value if item == "ID" else item for key, item in body.items()}
        headers = headers_of("member", "own")
        answer = api.simulate_request(method, path, query_string=query, json=sent, headers=headers)
        text = answer.text.replace(value, "ID")
        answers.append((answer.status_code, text if answer.status_code >= 400 or "?" in below else ""))
    assert answers[0] == answers[1]


def test_a_foreign_stack_is_not_found_by_its_name(
    api: falcon.testing.TestClient, own: Project, foreign: Project
) -> None:
    names = (foreign.values["stack_name"], foreign.values["stack_id"], "nobody-has-it")
    answers = {
        _ask(api, "GET", f"/v1/own/stacks/{name}", "member", "own").text.replace(name, "NAME")
        for name in names
    }
    assert len(answers) == 1


def test_an_address_with_a_foreign_project_in_it_is_refused(
    api: falcon.testing.TestClient, own: Project, foreign: Project
) -> None:
    """The signature of the own stack's resource serves no foreign path."""
    facts = StackFacts(own.values["stack_id"], own.values["stack_name"], "own")
    url = ADDRESSES.presigned(facts, "one", 1)
    path = url.endpoint.removeprefix("http://sim")
    for name in ("tenant_id", "stack_id"):
        moved = path.replace(own.values[name], foreign.values[name])
        answer = api.simulate_post(moved, query_string=f"Signature={url.signature}")
        assert answer.status_code == 403
