"""Rules and callers, without a Keystone: every route's rule is known, and what each scope may do."""

import pathlib
import re

import pytest
from harness.policy_requests import COLUMNS, decision, rules
from oslo_config import cfg
from oslo_policy import policy
from stoker.api.errors import Fault
from stoker.api.handlers.actions import ACTIONS
from stoker.api.keystone import KeystoneAuthentication
from stoker.api.policy import IS_ADMIN
from stoker.api.stack_requests import changes_nothing
from stoker.cli.wiring.policy import list_rules
from stoker.cli.wiring.routes import ROUTES

ROOT = pathlib.Path(__file__).parents[3]
TENANT = "0123"


@pytest.fixture
def enforcer() -> policy.Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    return enforcer


@pytest.fixture
def auth(enforcer: policy.Enforcer) -> KeystoneAuthentication:
    return KeystoneAuthentication(enforcer)


def headers(role: str = "member", **more: str) -> dict[str, str]:
    headers = {
        "X-IDENTITY-STATUS": "Confirmed",
        "X-PROJECT-ID": TENANT,
        "X-USER-NAME": "ann",
        "X-ROLES": role,
    }
    return {**headers, **{name.upper().replace("_", "-"): value for name, value in more.items()}}


def test_every_rule_that_a_route_names_exists() -> None:
    names = {rule.name for rule in list_rules()}
    used = {operation.rule for methods in ROUTES.values() for operation in methods.values()} - {None}
    in_code = {
        name
        for folder in ("api", "features")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'authorize\([^"]*"([a-z_]+:[a-z_]+)"', path.read_text())
    }
    assert in_code == {
        *("stacks:global_index", "stacks:update_patch", "stacks:update_no_change"),
        "software_configs:global_index",
    }
    assert used | in_code | {f"actions:{name}" for name in ACTIONS} <= names


def test_a_member_may_create_and_a_reader_may_not(auth: KeystoneAuthentication) -> None:
    member = auth.identify(TENANT, headers())
    assert (member.project_id, member.user, member.roles) == (TENANT, "ann", frozenset({"member"}))
    auth.authorize(member, "stacks:create")
    reader = auth.identify(TENANT, headers("Reader"))
    auth.authorize(reader, "stacks:index")
    with pytest.raises(Fault, match="stacks:create") as caught:
        auth.authorize(reader, "stacks:create")
    assert caught.value.status == 403


def test_a_stack_user_signals_and_sees_metadata_only(auth: KeystoneAuthentication) -> None:
    user = auth.identify(TENANT, headers("heat_stack_user"))
    allowed = set()
    for rule in list_rules():
        if ":" in rule.name:
            try:
                auth.authorize(user, rule.name)
                allowed.add(rule.name)
            except Fault:
                continue
    assert allowed == {
        *("resource:metadata", "resource:signal", "stacks:lookup"),
        *("software_deployments:metadata", "cloudformation:DescribeStackResource"),
    }


def test_types_of_admins_are_theirs_and_families_have_one_rule(auth: KeystoneAuthentication) -> None:
    member = auth.identify(TENANT, headers())
    admin = auth.identify(TENANT, headers("admin"))
    for name in ("OS::Nova::Flavor", "OS::Keystone::User", "OS::Keystone::Domain"):
        assert not auth.may_use(member, name)
        assert auth.may_use(admin, name)
    for name in ("OS::Nova::Server", "OS::Heat::None", "child.yaml", "::", "OS::Keystone::Deep::One"):
        assert auth.may_use(member, name)


@pytest.mark.parametrize(
    ("body", "nothing"),
    [
        ({}, True),
        (None, True),
        ({"existing": True}, True),
        ({"existing": True, "parameters": {}, "files": {}, "environment": {}, "template": None}, True),
        ({"parameters": {"a": 1}}, False),
        ({"template": {"heat_template_version": "2018-08-31"}}, False),
        ({"existing": True, "tags": ""}, False),
        ({"timeout_mins": 0}, False),
        ({"converge": False}, False),
    ],
)
def test_which_patch_changes_nothing(body: object, nothing: bool) -> None:
    assert changes_nothing(body) is nothing


def test_only_an_admin_names_another_project(auth: KeystoneAuthentication) -> None:
    with pytest.raises(Fault, match="4567") as caught:
        auth.identify("4567", headers())
    assert caught.value.status == 403
    admin = auth.identify("4567", headers("admin"))
    assert admin.project_id == TENANT, "what he creates is his own project's, as in Heat"
    assert admin.may_see("4567")
    assert not auth.identify(TENANT, headers()).may_see("4567")
    with pytest.raises(Fault):
        auth.identify("4567", headers("admin", x_is_admin_project="False"))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 401),
        ({**headers(), "X-IDENTITY-STATUS": "Invalid"}, 401),
        ({"X-IDENTITY-STATUS": "Confirmed", "X-ROLES": "admin", "X-OPENSTACK-SYSTEM-SCOPE": "all"}, 403),
        ({"X-IDENTITY-STATUS": "Confirmed", "X-ROLES": "admin", "X-DOMAIN-ID": "default"}, 403),
    ],
)
def test_who_is_not_of_the_project_is_not_let_in(
    auth: KeystoneAuthentication, sent: dict[str, str], status: int
) -> None:
    with pytest.raises(Fault) as caught:
        auth.identify(TENANT, sent)
    assert caught.value.status == status


def test_each_rule_is_for_the_callers_of_the_table(auth: KeystoneAuthentication) -> None:
    decisions = {rule: {caller: decision(auth, caller, rule) for caller in COLUMNS} for rule in rules()}
    assert decisions == rules()
    # Heat's name of what each action has a rule of its own for: operators' files refer to it.
    assert (decision(auth, "reader", "actions:action"), decision(auth, "member", "actions:action")) == (
        "-",
        "yes",
    )


OPERATIONS = [rule.name for rule in list_rules() if isinstance(rule, policy.DocumentedRuleDefault)]


def test_no_rule_lets_a_role_in_one_project_do_anything_in_another(enforcer: policy.Enforcer) -> None:
    """Each operation by itself, whatever compares a token with a path before."""
    roles = ["heat_stack_user", "reader", "member", "admin"]
    credentials = {"roles": roles, "project_id": TENANT, "is_admin_project": False}
    enforcer.set_rules(policy.Rules(), overwrite=False, use_conf=True)
    allowed = [name for name in OPERATIONS if enforcer.enforce(name, {"project_id": "other"}, credentials)]
    assert allowed == []
    own = [name for name in OPERATIONS if enforcer.enforce(name, {"project_id": TENANT}, credentials)]
    assert len(own) > len(OPERATIONS) / 2


@pytest.mark.parametrize(
    ("role", "is_admin_project", "is_operator"),
    [("admin", True, True), ("member", True, False), ("admin", False, False)],
)
def test_an_operator_is_an_admin_of_the_admins_project(
    enforcer: policy.Enforcer, role: str, is_admin_project: bool, is_operator: bool
) -> None:
    credentials = {"roles": ["reader", role], "project_id": TENANT, "is_admin_project": is_admin_project}
    assert enforcer.enforce(IS_ADMIN, {"project_id": TENANT}, credentials) is is_operator


def test_only_lists_of_all_projects_are_open_to_other_scopes_than_a_project() -> None:
    rules = {rule.name: rule.scope_types for rule in list_rules()}
    others = {name for name in OPERATIONS if rules[name] != ["project"]}
    assert others == {"stacks:global_index", "software_configs:global_index"}
    assert rules["resource_types:OS::Nova::Flavor"] == ["project"]


def test_a_path_without_a_project_needs_no_token(auth: KeystoneAuthentication) -> None:
    assert auth.identify("", {}).project_id == ""
