"""Zones and record sets on scripted answers of the DNS service."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.marks import mark_of

RESOURCE_TYPES = types_of("openstack.designate")

Json = typing.Any
ZONE = RESOURCE_TYPES["OS::Designate::Zone"]()
RECORDS = RESOURCE_TYPES["OS::Designate::RecordSet"]()
ZONE_ID = "11111111-2222-4333-8444-555555555555"
SET = f"/zones/{ZONE_ID}/recordsets"
NAMED = {"name": "a.test.", "email": "a@a.test"}


def sent(scripted: ScriptedService) -> list[tuple[str, Json]]:
    requests = zip(scripted.requests, scripted.sent, strict=True)
    return [(line, body) for line, body in requests if not line.startswith("GET")]


def test_a_zone_is_waited_for_and_gets_its_description(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    pending = {"id": "z", "status": "PENDING"}
    scripted.answers["POST /zones"] = Answer(202, pending)
    scripted.answers["PATCH /zones/z"] = Answer(202, pending)
    scripted.answers["GET /zones/z"] = Answer(200, {**pending, "status": "ACTIVE", "serial": 7})
    target = target_of(ZONE, {**NAMED, "ttl": 60, "description": "d"})
    target = run(ZONE, "create", target, context)
    body = {**NAMED, "ttl": 60, "type": "PRIMARY", "description": mark_of(target.key)}
    assert sent(scripted) == [("POST /zones", body), ("PATCH /zones/z", {"description": "d"})]
    assert ZONE.attribute_values(target)["serial"] == 7


def test_a_zone_that_fails(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["POST /zones"] = Answer(202, {"id": "z", "status": "ERROR"})
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        run(ZONE, "create", target_of(ZONE, NAMED), context)


def test_a_deleted_zone_is_waited_for(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["DELETE /zones/z"] = Answer(202, {"id": "z", "status": "PENDING"})
    scripted.answers["GET /zones/z"] = Answer(200, {"id": "z", "status": "PENDING"})
    target = target_of(ZONE, NAMED, physical_id="z")
    step = ZONE.handle_delete(target, context)
    assert isinstance(step, Poll)
    assert isinstance(ZONE.check_delete_complete(target, step.progress, context), Poll)
    del scripted.answers["GET /zones/z"]
    run(ZONE, "delete", target, context)


def test_a_record_set_is_in_its_zone(scripted: ScriptedService, context: ScriptedContext) -> None:
    active = {"id": "r", "status": "ACTIVE"}
    scripted.answers[f"POST {SET}"] = Answer(202, active)
    for method in ("GET", "PUT"):
        scripted.answers[f"{method} {SET}/r"] = Answer(200, active)
    properties = {"zone": ZONE_ID, "type": "A", "records": ["192.0.2.1"], "name": "www.a.test."}
    target = run(RECORDS, "create", target_of(RECORDS, properties), context)
    body = {name: properties[name] for name in ("name", "type", "records")}
    assert sent(scripted) == [(f"POST {SET}", {**body, "description": mark_of(target.key)})]
    target = target_of(RECORDS, {**properties, "ttl": 60}, physical_id="r")
    run(RECORDS, "update", target, context, changed=frozenset({"ttl"}))
    assert sent(scripted)[1:] == [(f"PUT {SET}/r", {"ttl": 60, "records": ["192.0.2.1"]})]
    scripted.answers["GET /zones"] = Answer(200, {"zones": []})
    run(RECORDS, "delete", target_of(RECORDS, {**properties, "zone": "gone."}, physical_id="r"), context)


@pytest.mark.parametrize("named", [{"name": "www"}, {}])
def test_a_name_of_a_record_set_is_completed_with_that_of_its_zone(
    scripted: ScriptedService, context: ScriptedContext, named: Json
) -> None:
    active = {"id": "r", "status": "ACTIVE"}
    scripted.answers[f"GET /zones/{ZONE_ID}"] = Answer(200, {"id": ZONE_ID, "name": "a.test."})
    scripted.answers[f"POST {SET}"] = Answer(202, active)
    scripted.answers[f"GET {SET}/r"] = Answer(200, active)
    target = target_of(RECORDS, {"zone": ZONE_ID, "type": "A", "records": ["192.0.2.1"], **named})
    target = run(RECORDS, "create", target, context)
    [(_, body)] = sent(scripted)
    assert body["name"] == f"{named.get('name', target.physical_name)}.a.test."
    remote = {"name": body["name"], "zone_name": "a.test."}
    assert RECORDS.reported_properties(target, remote, context) == named


def test_the_order_of_records_is_no_change(scripted: ScriptedService, context: ScriptedContext) -> None:
    properties = {"zone": ZONE_ID, "type": "A", "records": ["192.0.2.2", "192.0.2.1"]}
    target = target_of(RECORDS, properties, physical_id="r")
    for reported, expected in (
        (["192.0.2.1", "192.0.2.2"], ["192.0.2.2", "192.0.2.1"]),
        (["192.0.2.1", "192.0.2.3"], ["192.0.2.1", "192.0.2.3"]),
    ):
        scripted.answers[f"GET {SET}/r"] = Answer(200, {"id": "r", "type": "A", "records": reported})
        assert RECORDS.live_properties(target, context)["records"] == expected


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"name": "a."}, "Property email is required for zone type PRIMARY"),
        ({"name": "a.", "type": "SECONDARY"}, "Property primaries is required for zone type SECONDARY"),
    ],
)
def test_a_zone_has_what_its_type_needs(properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        ZONE.validate(resolve_properties(ZONE.properties_schema, properties))


def test_servers_may_be_given_by_their_old_name() -> None:
    properties = {"name": "a.", "type": "SECONDARY", "masters": ["192.0.2.1"]}
    ZONE.validate(resolve_properties(ZONE.properties_schema, properties))
