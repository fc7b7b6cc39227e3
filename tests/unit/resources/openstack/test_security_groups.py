"""Descriptions of security groups' rules: the service changes no rule, and has each one once."""

import typing

from harness.fake_context import target_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.steps import Done
from stoker.resources.openstack.neutron.security_group import SecurityGroup, SecurityGroupRule

Json = typing.Any
GROUP_ID = "aaaaaaaa-0000-4000-8000-000000000001"
FIELDS = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "security_group_id": GROUP_ID}


def rule(number: int, port: int, description: str | None) -> dict[str, Json]:
    return {**FIELDS, "id": f"r{number}", "port_range_min": port, "port_range_max": port} | {
        "description": description
    }


def changes(scripted: ScriptedService) -> list[tuple[str, Json]]:
    pairs = zip(scripted.requests, scripted.sent, strict=True)
    return [(request, body) for request, body in pairs if not request.startswith("GET")]


def test_a_rule_of_a_group_gets_another_description(scripted: ScriptedService) -> None:
    rules = [rule(1, 22, "old"), rule(2, 80, None), rule(3, 443, "was")]
    egress = [{"id": f"e{n}", "direction": "egress", "ethertype": f"IPv{n}"} for n in (4, 6)]
    group = {"id": GROUP_ID, "security_group_rules": [*rules, *egress]}
    scripted.answers[f"GET /security-groups/{GROUP_ID}"] = Answer(200, {"security_group": group})
    scripted.answers["DELETE /security-group-rules/r1"] = Answer(204)
    scripted.answers["DELETE /security-group-rules/r3"] = Answer(204)
    scripted.answers["POST /security-group-rules"] = Answer(201, {"security_group_rules": []})
    described = [
        {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "description": "new"},
        {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "description": ""},
        {"protocol": "tcp", "port_range_min": 443, "port_range_max": 443},
    ]
    target = target_of(SecurityGroup(), {"rules": described}, physical_id=GROUP_ID)
    SecurityGroup().handle_update(target, frozenset({"rules"}), ScriptedContext(scripted))
    *deleted, (posted, body) = changes(scripted)
    assert [request for request, _ in deleted] == [f"DELETE /security-group-rules/r{n}" for n in (1, 3)]
    assert posted == "POST /security-group-rules"
    posted_rules = [
        (item["port_range_min"], item.get("description")) for item in body["security_group_rules"]
    ]
    assert posted_rules == [(22, "new"), (443, None)]


def test_a_rule_is_made_again_with_another_description(scripted: ScriptedService) -> None:
    plugin = SecurityGroupRule()
    properties = {"security_group": GROUP_ID, "port_range_min": 22, "port_range_max": 22}
    target = target_of(plugin, {**properties, "description": "new"}, physical_id="r1")
    context = ScriptedContext(scripted)
    lists = "GET /security-group-rules"
    scripted.answers[lists] = Answer(200, {"security_group_rules": [rule(1, 22, "old")]})
    scripted.answers["GET /security-group-rules/r1"] = Answer(
        200, {"security_group_rule": rule(1, 22, "old")}
    )
    scripted.answers["DELETE /security-group-rules/r1"] = Answer(204)
    described = rule(2, 22, "new")
    scripted.answers["POST /security-group-rules"] = Answer(201, {"security_group_rule": described})
    step = plugin.handle_update(target, frozenset({"description"}), context)
    assert isinstance(step, Done)
    assert step.physical_id == "r2"
    assert [request.split()[0] for request, _ in changes(scripted)] == ["DELETE", "POST"]

    # The result of that step was lost, and the update begins again.
    scripted.answers[lists] = Answer(200, {"security_group_rules": [described]})
    scripted.answers["GET /security-group-rules/r2"] = Answer(200, {"security_group_rule": described})
    again = plugin.handle_update(target, frozenset({"description"}), context)
    assert again.physical_id == "r2"
    assert len(changes(scripted)) == 2
