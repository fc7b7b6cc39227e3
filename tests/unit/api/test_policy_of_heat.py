"""The defaults of the policy beside those of a real Heat, whose rules an operator's file may name."""

import json
import pathlib
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest
from harness.policy_requests import CALLERS
from oslo_config import cfg
from oslo_policy import policy
from stoker.cli.wiring.policy import list_rules

Credentials = dict[str, typing.Any]
HEAT = pathlib.Path(sys.prefix) / "heat" / "bin" / "python"
LIST = """
import json
from heat import policies
print(json.dumps([[rule.name, rule.check_str, rule.scope_types] for rule in policies.list_rules()]))
"""
ROLES = [roles for name, roles in CALLERS.items() if name not in ("nobody", "operator")]
SCOPES: list[Credentials] = [
    {"project_id": "own", "is_admin_project": False},
    {"project_id": "own", "is_admin_project": True},
    {"project_id": "another", "is_admin_project": False},
    {"domain_id": "default"},
    {"system_scope": "all"},
]


def _enforcer(rules: list[policy.RuleDefault]) -> policy.Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(rules)
    return enforcer


@pytest.fixture(scope="module")
def heat() -> list[policy.RuleDefault]:
    """All rules that a real Heat has, without those that it deprecates."""
    if not HEAT.exists():
        pytest.fail(f"{HEAT} is missing: run `make heat`", pytrace=False)
    outcome = subprocess.run([HEAT, "-W", "ignore", "-c", LIST], capture_output=True, text=True, check=True)
    rules = json.loads(outcome.stdout)
    return [policy.RuleDefault(name, check, scope_types=scopes) for name, check, scopes in rules]


def _all_credentials() -> Iterator[Credentials]:
    for roles in ROLES:
        for scope in SCOPES:
            yield {"user_id": "ann", "roles": list(roles), **scope}


def _allows(enforcer: policy.Enforcer, rule: str, credentials: Credentials) -> bool:
    try:
        return bool(enforcer.enforce(rule, {"project_id": "own"}, dict(credentials)))
    except policy.InvalidScope:
        return False


@pytest.mark.needs("heat")
def test_each_rule_of_heat_decides_here_as_there(heat: list[policy.RuleDefault]) -> None:
    assert len(heat) > 80
    stoker_rules = _enforcer(list_rules())
    heat_rules = _enforcer(heat)
    assert [rule.name for rule in heat if rule.name not in stoker_rules.registered_rules] == []
    differences = [
        (rule.name, credentials)
        for rule in heat
        for credentials in _all_credentials()
        if _allows(stoker_rules, rule.name, credentials) != _allows(heat_rules, rule.name, credentials)
    ]
    assert differences == []
