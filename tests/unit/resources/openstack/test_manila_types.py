"""Shares and what belongs to them, on scripted answers of the service."""

import typing
from collections.abc import Sequence

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError, RetryableError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.openstack.manila.share_access import AccessRules
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.service import Service, UnreadableAnswer

RESOURCE_TYPES = types_of("openstack.manila")

Json = typing.Any
SHARE = RESOURCE_TYPES["OS::Manila::Share"]()
NETWORK = RESOURCE_TYPES["OS::Manila::ShareNetwork"]()
SECURITY_SERVICE = RESOURCE_TYPES["OS::Manila::SecurityService"]()
ID = "11111111-2222-4333-8444-555555555555"
OTHER = "22222222-2222-4333-8444-555555555555"
RULES = "GET /share-access-rules"
ACTION = "POST /shares/s/action"
LEAST: Json = {
    "SecurityService": {"type": "ldap"},
    "Share": {"share_protocol": "NFS", "size": 1},
    "ShareType": {"name": "gold", "driver_handles_share_servers": False},
}
"""The properties that the types require."""
AVAILABLE = {"id": "s", "status": "available", "metadata": {"stoker": "m", "floor": "3"}}


def sent(scripted: ScriptedService) -> list[tuple[str, Json]]:
    requests = zip(scripted.requests, scripted.sent, strict=True)
    return [(line, body) for line, body in requests if not line.startswith("GET")]


def rule(number: int, state: str = "active", level: str = "rw") -> Json:
    address = {"access_type": "ip", "access_to": f"192.0.2.{number}", "access_level": level}
    return {"id": f"r{number}", "state": state, **address}


def entry(number: int, level: str | None = None) -> Json:
    return {"access_type": "ip", "access_to": f"192.0.2.{number}", "access_level": level}


def has_rules(scripted: ScriptedService, *rules: Json) -> None:
    scripted.answers[RULES] = Answer(200, {"access_list": list(rules)})
    scripted.answers[ACTION] = Answer(202)


def converge(scripted: ScriptedService, entries: Sequence[Json]) -> bool:
    return AccessRules(Service(scripted.adapter("shared-file-system")), "s").converge(entries)


def test_access_rules_that_are_right_stay(scripted: ScriptedService) -> None:
    has_rules(scripted, rule(1), rule(2, level="ro"))
    assert converge(scripted, [entry(2, "ro"), entry(1)])
    assert sent(scripted) == []


def test_a_rule_with_another_level_follows_the_one_before(scripted: ScriptedService) -> None:
    has_rules(scripted, rule(1), rule(2, level="ro"))
    assert not converge(scripted, [entry(1, "ro"), entry(2, "ro"), entry(3)])
    allowed = {"allow_access": {**entry(3), "access_level": "rw"}}
    assert sent(scripted) == [(ACTION, {"deny_access": {"access_id": "r1"}}), (ACTION, allowed)]
    has_rules(scripted, rule(1, state="denying"), rule(2, level="ro"), rule(3))
    assert not converge(scripted, [entry(1, "ro"), entry(2, "ro"), entry(3)])
    assert len(sent(scripted)) == 2, "it is denied already, and in the way yet"
    has_rules(scripted, rule(2, level="ro"), rule(3))
    assert not converge(scripted, [entry(1, "ro"), entry(2, "ro"), entry(3)])
    assert sent(scripted)[2:] == [(ACTION, {"allow_access": entry(1, "ro")})]


def test_rules_are_waited_for_until_they_are_in_force(scripted: ScriptedService) -> None:
    has_rules(scripted, rule(1, state="applying"))
    assert not converge(scripted, [entry(1)])
    assert sent(scripted) == []
    has_rules(scripted, rule(1, state="error"))
    with pytest.raises(PermanentError, match=r"rule for ip 192\.0\.2\.1 went to status error"):
        converge(scripted, [entry(1)])


@pytest.mark.parametrize("status", ["creating", "available"])
def test_a_share_gets_its_rules_once_it_is_available(
    scripted: ScriptedService, context: ScriptedContext, status: str
) -> None:
    has_rules(scripted, rule(1))
    scripted.answers["POST /shares"] = Answer(200, {"share": {**AVAILABLE, "status": status}})
    scripted.answers["GET /shares/s"] = Answer(200, {"share": AVAILABLE})
    locations = {"export_locations": [{"path": "a:/b", "id": "l"}]}
    scripted.answers["GET /shares/s/export_locations"] = Answer(200, locations)
    properties = {**LEAST["Share"], "share_type": ID, "metadata": {"floor": 3}}
    target = target_of(SHARE, {**properties, "access_rules": [entry(1, "rw")]})
    target = run(SHARE, "create", target, context)
    body = {"share_proto": "NFS", "size": 1, "share_type": ID, "is_public": False}
    metadata = {"floor": "3", "stoker": mark_of(target.key)}
    assert sent(scripted) == [("POST /shares", {"share": {**body, "metadata": metadata}})]
    assert scripted.requests.index(RULES + "?share_id=s") > scripted.requests.index("GET /shares/s")
    assert SHARE.attribute_values(target)["export_locations"] == ["a:/b"]
    assert SHARE.attribute_values(target)["show"]["metadata"] == {"floor": "3"}
    assert SHARE.live_properties(target, context)["metadata"] == {"floor": 3}


def test_a_share_that_fails_says_why(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["POST /shares"] = Answer(200, {"share": {**AVAILABLE, "status": "creating"}})
    scripted.answers["GET /shares/s"] = Answer(200, {"share": {**AVAILABLE, "status": "error"}})
    messages = [
        {"created_at": f"2026-01-0{day}", "user_message": f"no room on day {day}"} for day in (2, 3, 1)
    ]
    scripted.answers["GET /messages?resource_id=s"] = Answer(200, {"messages": messages})
    with pytest.raises(PermanentError, match='status ERROR due to "no room on day 3"'):
        run(SHARE, "create", target_of(SHARE, LEAST["Share"]), context)


@pytest.mark.parametrize(
    ("kind", "path", "status", "text"),
    [
        ("ShareType", "/types", 400, "Target share type is still in use."),
        ("SecurityService", "/security-services", 403, "It is assigned to share network(s)"),
        ("Share", "/shares", 403, "Share status must be one of ('available', 'error')"),
        ("Share", "/shares", 403, "Share still has 2 dependent snapshots."),
    ],
)
def test_a_deletion_that_is_refused_for_now_is_repeated(
    scripted: ScriptedService, context: ScriptedContext, kind: str, path: str, status: int, text: str
) -> None:
    plugin = RESOURCE_TYPES[f"OS::Manila::{kind}"]()
    scripted.answers[f"DELETE {path}/x"] = Answer(status, {"refusal": {"message": text}})
    target = target_of(plugin, LEAST[kind], physical_id="x")
    with pytest.raises(RetryableError, match="still in use"):
        plugin.handle_delete(target, context)
    scripted.answers[f"DELETE {path}/x"] = Answer(403, {"forbidden": {"message": "not allowed by policy"}})
    with pytest.raises(PermanentError, match="policy"):
        plugin.handle_delete(target, context)


def test_the_password_of_a_security_service_is_not_kept(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    fields = {"type": "ldap", "user": "u", "password": "hidden"}
    remote = {"id": "x", "description": None, **fields}
    scripted.answers["POST /security-services"] = Answer(200, {"security_service": remote})
    target = run(SECURITY_SERVICE, "create", target_of(SECURITY_SERVICE, fields), context)
    [(_, body)] = sent(scripted)
    assert body["security_service"]["password"] == "hidden"
    assert target.data["thing"]["user"] == "u"
    assert "hidden" not in str(target.data)
    assert "password" not in SECURITY_SERVICE.reported_properties(target, remote, context)


def test_a_share_network_has_the_network_of_its_subnet(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers[f"GET /subnets/{ID}"] = Answer(200, {"subnet": {"network_id": OTHER}})
    scripted.answers["POST /share-networks"] = Answer(200, {"share_network": {"id": "n"}})
    scripted.answers["PUT /share-networks/n"] = Answer(200, {"share_network": {"id": "n"}})
    target = run(NETWORK, "create", target_of(NETWORK, {"neutron_subnet": ID}), context)
    place = {"neutron_net_id": OTHER, "neutron_subnet_id": ID}
    body = {**place, "description": mark_of(target.key)}
    assert sent(scripted) == [("POST /share-networks", {"share_network": body})]
    run(NETWORK, "update", target, context, changed=frozenset({"neutron_subnet"}))
    assert sent(scripted)[1:] == [("PUT /share-networks/n", {"share_network": place})]
    wrong = target_of(NETWORK, {"neutron_subnet": ID, "neutron_network": ID})
    with pytest.raises(PermanentError, match="does not belong to provided neutron_network"):
        run(NETWORK, "create", wrong, context)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"neutron_network": "n"}, "neutron_network cannot be specified without neutron_subnet"),
        ({"nova_network": "n"}, "Nova network is no longer supported"),
    ],
)
def test_rules_of_share_networks(properties: Json, text: str) -> None:
    with pytest.raises(PropertyError, match=text):
        NETWORK.validate(resolve_properties(NETWORK.properties_schema, properties))
    NETWORK.validate({"neutron_network": "n"})


def test_security_services_of_a_share_network_change_by_calls_of_their_own(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    """The service takes one of each kind, so the one that goes goes first."""
    scripted.answers["GET /security-services"] = Answer(200, {"security_services": [{"id": "old"}]})
    scripted.answers["POST /share-networks/n/action"] = Answer(200, {"share_network": {"id": "n"}})
    scripted.answers["GET /share-networks/n"] = Answer(200, {"share_network": {"id": "n"}})
    target = target_of(NETWORK, {"security_services": [ID]}, physical_id="n")
    run(NETWORK, "update", target, context, changed=frozenset({"security_services"}))
    assert [body for _, body in sent(scripted)] == [
        {"remove_security_service": {"security_service_id": "old"}},
        {"add_security_service": {"security_service_id": ID}},
    ]
    assert NETWORK.live_properties(target, context)["security_services"] == ["old"]


@pytest.mark.parametrize(
    ("kind", "path", "item", "remote"),
    [
        ("SecurityService", "/security-services", "security_service", {"type": "ldap"}),
        ("Share", "/shares", "share", {"id": "s", "status": "available", "metadata": "none"}),
    ],
)
def test_an_answer_of_another_form_is_requested_again(
    scripted: ScriptedService, context: ScriptedContext, kind: str, path: str, item: str, remote: Json
) -> None:
    plugin = RESOURCE_TYPES[f"OS::Manila::{kind}"]()
    scripted.answers[f"POST {path}"] = Answer(200, {item: remote})
    with pytest.raises(UnreadableAnswer):
        plugin.handle_create(target_of(plugin, LEAST[kind]), context)


def test_extra_specs_without_values(context: ScriptedContext) -> None:
    plugin = RESOURCE_TYPES["OS::Manila::ShareType"]()
    target = target_of(plugin, {**LEAST["ShareType"], "extra_specs": {"level": 1}})
    remote = {"extra_specs": {"level": "1", "other": None, "snapshot_support": None}}
    live = plugin.reported_properties(target, remote, context)
    assert live == {"extra_specs": {"level": 1, "other": None}, "snapshot_support": False}
