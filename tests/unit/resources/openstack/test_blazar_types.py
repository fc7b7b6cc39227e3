"""Hosts and leases on scripted answers of the reservation service."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, RetryableError

RESOURCE_TYPES = types_of("openstack.blazar")

Json = typing.Any
HOST = RESOURCE_TYPES["OS::Blazar::Host"]()
LEASE = RESOURCE_TYPES["OS::Blazar::Lease"]()
HOST_FIELDS = {"id": "1", "hypervisor_hostname": "compute-1", "vcpus": 4, "reservable": True}
TIMES = {"start_date": "2027-12-26 12:00", "end_date": "2027-12-27 12:00"}
LEASE_FIELDS = {
    "id": "l",
    "name": "lease",
    "start_date": "2027-12-26T12:00:00.000000",
    "end_date": "2027-12-27T12:00:00.000000",
    "status": "PENDING",
    "reservations": [{"id": "r", "resource_type": "physical:host"}],
}


def created(scripted: ScriptedService) -> list[Json]:
    requests = zip(scripted.requests, scripted.sent, strict=True)
    return [body for line, body in requests if line.startswith("POST")]


def has_host(scripted: ScriptedService, *before: Json) -> None:
    scripted.answers["GET /os-hosts"] = Answer(200, {"hosts": list(before)})
    scripted.answers["POST /os-hosts"] = Answer(201, {"host": {**HOST_FIELDS, "gpu": "True"}})


def test_capabilities_of_a_host_are_fields_of_their_own(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_host(scripted)
    capability = {"gpu": "True", "name": "left out"}
    target = target_of(HOST, {"name": "compute-1", "extra_capability": capability})
    target = run(HOST, "create", target, context)
    assert created(scripted) == [{"name": "compute-1", "gpu": "True"}]
    assert target.physical_id == "1"
    attributes = HOST.attribute_values(target)
    assert (attributes["hypervisor_hostname"], attributes["vcpus"]) == ("compute-1", 4)
    assert attributes["extra_capability"] == {"gpu": "True"}
    assert HOST.reported_properties(target, HOST_FIELDS, context) == {"name": "compute-1"}


def test_a_lost_host_is_found_unless_it_was_there_before(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_host(scripted)
    target = target_of(HOST, {"name": "compute-1"}, data={"before": []})
    assert HOST.find_created(target.key, target, context) is None
    has_host(scripted, HOST_FIELDS)
    assert HOST.find_created(target.key, target, context) == "1"
    earlier = target_of(HOST, {"name": "compute-1"}, data={"before": ["1"]})
    assert HOST.find_created(earlier.key, earlier, context) is None


def test_a_host_with_reservations_is_deleted_later(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    refusal = {"error_code": 409, "error_message": "Can't delete host 1. servers found"}
    scripted.answers["DELETE /os-hosts/1"] = Answer(409, refusal)
    target = target_of(HOST, {"name": "compute-1"}, physical_id="1")
    with pytest.raises(RetryableError, match="still in use"):
        HOST.handle_delete(target, context)


def test_a_lease_has_of_each_reservation_what_concerns_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers["GET /leases"] = Answer(200, {"leases": []})
    scripted.answers["POST /leases"] = Answer(201, {"lease": LEASE_FIELDS})
    hosts = {"resource_type": "physical:host", "min": 1, "max": 2, "vcpus": 8}
    servers = {"resource_type": "virtual:instance", "amount": 4, "vcpus": 2, "memory_mb": 512, "disk_gb": 1}
    properties = {
        "name": "lease",
        **TIMES,
        "before_end_date": "2027-12-27 11:00",
        "reservations": [hosts, {**servers, "min": 3}],
        "events": [{"event_type": "notification", "time": "2027-12-27 10:00"}],
    }
    target = run(LEASE, "create", target_of(LEASE, properties), context)
    [body] = created(scripted)
    unset = {"hypervisor_properties": None, "resource_properties": None}
    assert body == {
        **properties,
        "reservations": [
            {"resource_type": "physical:host", "min": 1, "max": 2, "before_end": "default", **unset},
            {**servers, "affinity": False, "resource_properties": None},
        ],
    }
    assert LEASE.attribute_values(target)["reservations"] == LEASE_FIELDS["reservations"]
    live = LEASE.reported_properties(target, LEASE_FIELDS, context)
    assert live == {"name": "lease", **TIMES}


def test_a_lease_in_a_bad_state(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["GET /leases/l"] = Answer(200, {"lease": {**LEASE_FIELDS, "status": "ERROR"}})
    reservation = {"resource_type": "physical:host", "min": 1, "max": 1}
    properties = {"name": "lease", **TIMES, "reservations": [reservation]}
    target = target_of(LEASE, properties, physical_id="l")
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        LEASE.handle_check(target, context)
    assert LEASE.needs_replace_failed(target, context)
