"""Types of operators of Cinder and Nova: what was there before stays, and a lost call is found again."""

import dataclasses
import typing

import pytest
from harness.fake_context import after, run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.declared import REMOTE

CINDER = types_of("openstack.cinder")
NOVA = types_of("openstack.nova")

Json = typing.Any
SPECS = "aaaaaaaa-0000-4000-8000-000000000001"
GOLD = "bbbbbbbb-0000-4000-8000-000000000002"
IRON = "cccccccc-0000-4000-8000-000000000003"
PROJECT = "dddddddd-0000-4000-8000-000000000004"
KEY = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def context(scripted: ScriptedService) -> ScriptedContext:
    return ScriptedContext(scripted)


ASSOCIATION = CINDER["OS::Cinder::QoSAssociation"]()


def has_associations(scripted: ScriptedService, *types: str) -> None:
    """These volume types are associated, and the service takes every change."""
    path = f"/qos-specs/{SPECS}"
    answer = {"qos_associations": [{"id": item, "association_type": "volume_type"} for item in types]}
    scripted.answers[f"GET {path}/associations"] = Answer(200, answer)
    for action in ("associate", "disassociate"):
        scripted.answers[f"GET {path}/{action}"] = Answer(202)


def actions(scripted: ScriptedService) -> list[tuple[str, str]]:
    """The calls that associate or disassociate, with their volume types."""
    calls = [request for request in scripted.requests if "vol_type_id" in request]
    return [(call.rpartition("/")[2].partition("?")[0], call.rpartition("=")[2]) for call in calls]


def association_of(*types: str, **fields: Json) -> typing.Any:
    return target_of(ASSOCIATION, {"qos_specs": SPECS, "volume_types": [*types]}, key=KEY, **fields)


def test_associations_of_somebody_else_stay(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_associations(scripted, IRON)
    created = run(ASSOCIATION, "create", association_of(GOLD, IRON), context)
    run(ASSOCIATION, "delete", created, context)
    assert actions(scripted) == [("associate", GOLD), ("associate", IRON), ("disassociate", GOLD)]
    left_over = dataclasses.replace(
        created, previous=created.properties, properties=association_of().properties
    )
    ASSOCIATION.handle_update(left_over, frozenset({"volume_types"}), context)
    assert actions(scripted)[3:] == [("disassociate", GOLD)]


def test_nothing_is_associated_before_it_is_stored_what_was(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_associations(scripted)
    step = ASSOCIATION.handle_create(association_of(GOLD), context)
    assert isinstance(step, Poll)
    assert (step.physical_id is not None, actions(scripted)) == (True, [])
    assert isinstance(ASSOCIATION.handle_delete(association_of(GOLD), context), Done)
    assert actions(scripted) == []
    with pytest.raises(PermanentError, match="is not associated"):
        ASSOCIATION.handle_check(after(association_of(GOLD), step), context)


QUOTA = CINDER["OS::Cinder::Quota"]()


def test_a_limit_is_not_below_what_the_project_uses(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    path = f"/os-quota-sets/{PROJECT}"
    usage = {"quota_set": {"volumes": {"in_use": 3}, "gigabytes": {"in_use": 8}}}
    scripted.answers[f"GET {path}?usage=True"] = Answer(200, usage)
    scripted.answers[f"PUT {path}"] = Answer(200, {"quota_set": {"volumes": 3, "gigabytes": -1}})
    low = target_of(QUOTA, {"project": PROJECT, "volumes": 2}, physical_id="limits")
    with pytest.raises(PermanentError, match="Invalid quota volumes: 2 is less than the 3"):
        QUOTA.handle_create(low, context)
    enough = target_of(QUOTA, {"project": PROJECT, "volumes": 3, "gigabytes": -1}, physical_id="limits")
    assert isinstance(QUOTA.handle_create(enough, context), Done)
    assert scripted.sent[-1] == {"quota_set": {"volumes": 3, "gigabytes": -1}}
    with pytest.raises(PropertyError, match="at least one of gigabytes"):
        QUOTA.validate(target_of(QUOTA, {"project": PROJECT}).properties)
    scripted.answers[f"GET {path}"] = Answer(200, {"quota_set": {"id": PROJECT, "volumes": 9}})
    assert QUOTA.live_properties(enough, context) == {"volumes": 9}


ENCRYPTED = CINDER["OS::Cinder::EncryptedVolumeType"]()


def test_an_encryption_of_somebody_else_is_not_taken(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    path = f"/types/{GOLD}/encryption"
    foreign = {"encryption_id": "e", "provider": "luks", "volume_type_id": GOLD}
    scripted.answers[f"GET {path}"] = Answer(200, foreign)
    scripted.answers[f"POST {path}"] = Answer(400, {"badRequest": {"message": "exists", "code": 400}})
    target = target_of(ENCRYPTED, {"volume_type": GOLD, "provider": "luks"}, key=KEY)
    with pytest.raises(PermanentError, match="exists"):
        run(ENCRYPTED, "create", target, context)
    assert ENCRYPTED.find_created(KEY, target, context) is None
    scripted.answers[f"GET {path}"] = Answer(200, {})
    claimed = ENCRYPTED.handle_create(target, context)
    assert isinstance(claimed, Poll)
    scripted.answers[f"GET {path}"] = Answer(200, foreign)
    repeated = dataclasses.replace(after(target, claimed), attempt=2)
    step = ENCRYPTED.check_create_complete(repeated, claimed.progress, context)
    assert (step.physical_id, step.data) == (GOLD, {REMOTE: foreign})
    scripted.answers[f"DELETE {path}/e"] = Answer(202)
    ENCRYPTED.handle_delete(after(repeated, step), context)
    assert scripted.requests[-1] == f"DELETE {path}/e"


AGGREGATE = NOVA["OS::Nova::HostAggregate"]()


def test_an_aggregate_gets_the_hosts_and_metadata_that_it_lacks(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    metadata = {"availability_zone": "z", "old": "1"}
    aggregate = {"id": 7, "name": "fast", "availability_zone": "z", "hosts": ["a", "b"], "metadata": metadata}
    for request in ("POST /os-aggregates", "GET /os-aggregates/7", "POST /os-aggregates/7/action"):
        scripted.answers[request] = Answer(200, {"aggregate": aggregate})
    scripted.answers["GET /os-aggregates"] = Answer(200, {"aggregates": []})
    scripted.answers["DELETE /os-aggregates/7"] = Answer(200)
    target = target_of(AGGREGATE, {"name": "fast", "hosts": ["b", "c"], "metadata": {"new": 2}}, key=KEY)
    created = run(AGGREGATE, "create", target, context)
    assert created.physical_id == "7"

    def changes() -> list[Json]:
        return [body for body in scripted.sent if body is not None]

    assert changes() == [
        {"aggregate": {"name": "fast"}},
        {"set_metadata": {"metadata": {"old": None, "new": "2"}}},
        {"remove_host": {"host": "a"}},
        {"add_host": {"host": "c"}},
    ]
    assert AGGREGATE.live_properties(created, context)["metadata"] == {"old": "1"}
    run(AGGREGATE, "delete", created, context)
    assert changes()[4:] == [{"remove_host": {"host": "a"}}, {"remove_host": {"host": "b"}}]


def test_a_host_that_is_refused_fails_the_aggregate(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    aggregate = {"id": 7, "name": "fast", "hosts": ["a"], "metadata": {}}
    scripted.answers["GET /os-aggregates/7"] = Answer(200, {"aggregate": aggregate})
    scripted.answers["POST /os-aggregates/7/action"] = Answer(409, {"conflictingRequest": {"message": "no"}})
    target = target_of(AGGREGATE, {"name": "fast", "hosts": ["a", "b"]}, physical_id="7")
    with pytest.raises(PermanentError, match="compute 409: no"):
        AGGREGATE.after_create(target, context)
