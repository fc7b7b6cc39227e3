"""Parts of a load balancer take turns, without a retry and without a thread."""

import dataclasses
import typing

import pytest
from harness.fake_context import START, after, run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext, SharingContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError, RetryableError
from stoker.resources.contract.properties import validate_properties
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.octavia.base import TURN

RESOURCE_TYPES = types_of("openstack.octavia")

Json = typing.Any
BALANCER_ID = "aaaaaaaa-0000-4000-8000-000000000001"
POOL_ID = "bbbbbbbb-0000-4000-8000-000000000002"
MEMBER_ID = "cccccccc-0000-4000-8000-000000000003"
KEY = "11111111-2222-4333-8444-555555555555"
BALANCER = f"/lbaas/loadbalancers/{BALANCER_ID}"
MEMBERS = f"/lbaas/pools/{POOL_ID}/members"
POOL = RESOURCE_TYPES["OS::Octavia::Pool"]()
MEMBER = RESOURCE_TYPES["OS::Octavia::PoolMember"]()
POLICY = RESOURCE_TYPES["OS::Octavia::L7Policy"]()
BUSY = Answer(409, {"faultstring": f"Load Balancer {BALANCER_ID} is immutable and cannot be updated."})


@pytest.fixture
def context(scripted: ScriptedService) -> ScriptedContext:
    return ScriptedContext(scripted)


def member_of(**fields: Json) -> typing.Any:
    properties = {"pool": POOL_ID, "address": "10.0.0.5", "protocol_port": 80, "weight": 3}
    return target_of(MEMBER, properties, key=KEY, creation_key=KEY, **fields)


def is_worked_on(scripted: ScriptedService, status: str) -> None:
    """The service has the balancer in this state, and refuses changes of its parts."""
    body = {"loadbalancer": {"id": BALANCER_ID, "provisioning_status": status}}
    scripted.answers[f"GET {BALANCER}"] = Answer(200, body)
    for request in (f"POST {MEMBERS}", f"PUT {MEMBERS}/{MEMBER_ID}", f"DELETE {MEMBERS}/{MEMBER_ID}"):
        scripted.answers[request] = BUSY


def is_free(scripted: ScriptedService, **fields: Json) -> None:
    """The service takes changes, and has made the member."""
    is_worked_on(scripted, "ACTIVE")
    member = {"member": {"id": MEMBER_ID, "provisioning_status": "ACTIVE", **fields}}
    for method in ("POST", "PUT", "GET"):
        path = MEMBERS if method == "POST" else f"{MEMBERS}/{MEMBER_ID}"
        scripted.answers[f"{method} {path}"] = Answer(200, member)
    scripted.answers[f"DELETE {MEMBERS}/{MEMBER_ID}"] = Answer(204)


def test_a_creation_waits_until_the_balancer_is_free(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    is_worked_on(scripted, "PENDING_UPDATE")
    step = MEMBER.handle_create(member_of(), context)
    assert isinstance(step, Poll)
    assert (step.progress, step.physical_id) == ({"since": START, TURN: BALANCER}, None)
    for _ in range(3):
        context.time += step.after
        waits = MEMBER.check_create_complete(member_of(), step.progress, context)
        assert isinstance(waits, Poll)
        assert waits.progress == step.progress
    assert scripted.requests == [f"POST {MEMBERS}", *3 * [f"GET {BALANCER}"]]
    is_free(scripted)
    done = MEMBER.check_create_complete(member_of(), step.progress, context)
    assert isinstance(done, Done)
    assert done.physical_id == MEMBER_ID
    assert scripted.sent[-1]["member"]["tags"] == [mark_of(KEY)]


def test_another_part_may_be_first_again(scripted: ScriptedService, context: ScriptedContext) -> None:
    is_worked_on(scripted, "ACTIVE")
    progress = {"since": START, TURN: BALANCER}
    step = MEMBER.check_create_complete(member_of(), progress, context)
    assert isinstance(step, Poll)
    assert step.progress == progress


def test_one_of_those_that_wait_continues_at_a_time(scripted: ScriptedService) -> None:
    context = SharingContext(scripted)
    is_free(scripted)
    progress = {"since": START, TURN: BALANCER}
    steps = [MEMBER.check_create_complete(member_of(), progress, context) for _ in range(3)]
    assert [isinstance(step, Done) for step in steps] == [True, False, False]
    assert scripted.requests == [f"GET {BALANCER}", f"POST {MEMBERS}"]


def test_a_balancer_that_has_failed_is_not_waited_for(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    is_worked_on(scripted, "ERROR")
    with pytest.raises(PermanentError, match=f"{BALANCER_ID} has provisioning_status ERROR") as caught:
        run(MEMBER, "create", member_of(), context)
    assert caught.value.kind == "ResourceInError"


def test_a_creation_that_was_waiting_finds_what_a_lost_call_has_made(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    is_free(scripted)
    member = {"id": MEMBER_ID, "tags": [mark_of(KEY)], "provisioning_status": "ACTIVE"}
    scripted.answers[f"GET {MEMBERS}?tags={mark_of(KEY)}"] = Answer(200, {"members": [member]})
    progress = {"since": START, TURN: BALANCER}
    step = MEMBER.check_create_complete(member_of(attempt=2), progress, context)
    assert isinstance(step, Done)
    assert step.physical_id == MEMBER_ID
    assert not [request for request in scripted.requests if request.startswith("POST")]


def test_an_update_that_waits_knows_what_has_changed(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    is_worked_on(scripted, "PENDING_UPDATE")
    target = member_of(physical_id=MEMBER_ID)
    step = MEMBER.handle_update(target, frozenset({"weight"}), context)
    assert isinstance(step, Poll)
    is_free(scripted, weight=3)
    assert isinstance(MEMBER.check_update_complete(target, step.progress, context), Done)
    assert scripted.sent[-1] == {"member": {"weight": 3}}


def test_a_deletion_waits_and_ends_if_the_thing_is_gone_meanwhile(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    is_worked_on(scripted, "PENDING_UPDATE")
    target = member_of(physical_id=MEMBER_ID)
    step = MEMBER.handle_delete(target, context)
    assert isinstance(step, Poll)
    assert isinstance(MEMBER.check_delete_complete(target, step.progress, context), Poll)
    is_free(scripted)
    scripted.answers[f"DELETE {MEMBERS}/{MEMBER_ID}"] = Answer(404)
    assert isinstance(MEMBER.check_delete_complete(target, step.progress, context), Done)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"LoadBalancer {BALANCER_ID} is immutable and cannot be updated.", BALANCER),
        (f"Pool {POOL_ID} is immutable and cannot be updated.", f"/lbaas/pools/{POOL_ID}"),
        (f"L7Policy {POOL_ID} is immutable and cannot be updated.", f"/lbaas/l7policies/{POOL_ID}"),
        (f"Invalid state PENDING_UPDATE of loadbalancer resource {BALANCER_ID}", BALANCER),
        (f"Quark {POOL_ID} is immutable and cannot be updated.", ""),
    ],
)
def test_what_is_worked_on_is_read_from_the_refusal(
    scripted: ScriptedService, context: ScriptedContext, text: str, path: str
) -> None:
    scripted.answers[f"POST {MEMBERS}"] = Answer(409, {"faultstring": text})
    step = MEMBER.handle_create(member_of(), context)
    assert isinstance(step, Poll)
    assert step.progress[TURN] == path
    assert isinstance(MEMBER.check_create_complete(member_of(), step.progress, context), Poll)


@pytest.mark.parametrize(
    "text",
    [
        "Another member on this pool is already using ip 10.0.0.5 on protocol_port 80",
        f"Invalid state ERROR of loadbalancer resource {BALANCER_ID}",
    ],
)
def test_other_conflicts_are_no_turns(scripted: ScriptedService, context: ScriptedContext, text: str) -> None:
    refusal = Answer(409, {"faultstring": text})
    scripted.answers[f"POST {MEMBERS}"] = refusal
    scripted.answers[f"DELETE {MEMBERS}/{MEMBER_ID}"] = refusal
    scripted.answers[f"GET {MEMBERS}"] = Answer(200, {"members": []})
    with pytest.raises(PermanentError, match=text):
        MEMBER.handle_create(member_of(), context)
    with pytest.raises(RetryableError, match="still in use"):
        MEMBER.handle_delete(member_of(physical_id=MEMBER_ID), context)


def test_a_member_whose_pool_is_gone_is_gone(scripted: ScriptedService, context: ScriptedContext) -> None:
    scripted.answers["GET /lbaas/pools"] = Answer(200, {"pools": []})
    named = dataclasses.replace(
        member_of(physical_id=MEMBER_ID), properties={**member_of().properties, "pool": "front"}
    )
    unknown = dataclasses.replace(named, properties=dict.fromkeys(named.properties))
    for target in (named, unknown):
        assert isinstance(MEMBER.handle_delete(target, context), Done)
        assert MEMBER.find_created(KEY, target, context) is None
        assert MEMBER.needs_replace_failed(target, context)
    with pytest.raises(PermanentError, match=r"The pool \(front\) could not be found"):
        MEMBER.handle_create(named, context)


def test_tags_of_a_member_stay_beside_the_mark(scripted: ScriptedService, context: ScriptedContext) -> None:
    is_free(scripted, tags=["blue", mark_of(KEY)])
    target = member_of(physical_id=MEMBER_ID)
    target = dataclasses.replace(target, properties={**target.properties, "tags": ["red"]})
    MEMBER.handle_update(target, frozenset({"tags"}), context)
    assert scripted.sent[-1] == {"member": {"tags": ["red", mark_of(KEY)]}}
    assert MEMBER.live_properties(target, context)["tags"] == ["blue"]


def test_a_policy_changes_its_action_together_with_the_place(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    path = f"/lbaas/l7policies/{POOL_ID}"
    scripted.answers[f"PUT {path}"] = Answer(200, {"l7policy": {"id": POOL_ID}})
    properties = {"listener": BALANCER_ID, "action": "REDIRECT_TO_URL", "redirect_url": "http://a.test"}
    target = target_of(POLICY, properties, physical_id=POOL_ID)
    POLICY.handle_update(target, frozenset({"action", "redirect_pool", "redirect_url"}), context)
    assert scripted.sent[-1] == {"l7policy": {"action": "REDIRECT_TO_URL", "redirect_url": "http://a.test"}}


def test_a_pool_whose_persistence_nobody_has_changed_is_as_in_the_template(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    persistence = {"type": "SOURCE_IP", "cookie_name": None, "persistence_timeout": None}
    pool = {"id": POOL_ID, "session_persistence": persistence, "lb_algorithm": "ROUND_ROBIN"}
    scripted.answers[f"GET /lbaas/pools/{POOL_ID}"] = Answer(200, {"pool": pool})
    properties = {"listener": "l", "lb_algorithm": "ROUND_ROBIN", "protocol": "HTTP"}
    target = target_of(
        POOL, {**properties, "session_persistence": {"type": "SOURCE_IP"}}, physical_id=POOL_ID
    )
    live = POOL.live_properties(target, context)
    assert live == {name: target.properties[name] for name in ("lb_algorithm", "session_persistence")}


@pytest.mark.parametrize(
    ("name", "properties", "message"),
    [
        ("Listener", {"protocol": "TERMINATED_HTTPS"}, "default_tls_container_ref is needed"),
        ("Pool", {}, "one of listener and loadbalancer is needed"),
        ("Pool", {"listener": "l", "session_persistence": {"type": "APP_COOKIE"}}, "cookie_name is needed"),
        (
            "Pool",
            {"listener": "l", "session_persistence": {"type": "SOURCE_IP", "cookie_name": "c"}},
            "cookie_name cannot be given for",
        ),
        ("L7Policy", {"action": "REJECT", "redirect_url": "http://a.test"}, "redirect_url is for"),
        ("L7Policy", {"action": "REDIRECT_TO_POOL"}, "redirect_pool is needed"),
        ("L7Policy", {"action": "REDIRECT_TO_URL", "redirect_pool": "p"}, "redirect_pool is for"),
        ("L7Rule", {"type": "COOKIE"}, "key is needed"),
        ("Quota", {}, "at least one of healthmonitor"),
    ],
)
def test_properties_that_do_not_fit_together_are_refused(name: str, properties: Json, message: str) -> None:
    plugin = RESOURCE_TYPES[f"OS::Octavia::{name}"]()
    required = {
        "Listener": {"loadbalancer": "b", "protocol_port": 443},
        "Pool": {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"},
        "L7Policy": {"listener": "l"},
        "L7Rule": {"l7policy": "p", "compare_type": "EQUAL_TO", "value": "v"},
        "Quota": {"project": "p"},
    }
    values = validate_properties(plugin.properties_schema, {**required[name], **properties})
    with pytest.raises(PropertyError, match=message):
        plugin.validate(values)


def test_values_that_are_not_known_yet_break_no_rule() -> None:
    later = {"$fn": "get_resource", "args": ["x"]}
    for name, properties in (
        ("Pool", {"listener": later, "protocol": "HTTP", "lb_algorithm": later}),
        ("Listener", {"loadbalancer": later, "protocol_port": 1, "protocol": "HTTP"}),
        ("L7Policy", {"listener": later, "action": "REDIRECT_TO_POOL", "redirect_pool": later}),
        ("Quota", {"project": later, "pool": later}),
    ):
        plugin = RESOURCE_TYPES[f"OS::Octavia::{name}"]()
        plugin.validate(validate_properties(plugin.properties_schema, properties))


QUOTA = RESOURCE_TYPES["OS::Octavia::Quota"]()
LIMITS = f"/lbaas/quotas/{POOL_ID}"


def test_limits_are_set_once_the_name_is_stored_and_reset_by_the_deletion(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    scripted.answers[f"PUT {LIMITS}"] = Answer(202, {"quota": {"pool": 5}})
    scripted.answers[f"DELETE {LIMITS}"] = Answer(204)
    target = target_of(QUOTA, {"project": POOL_ID, "pool": 5})
    assert isinstance(QUOTA.handle_delete(target, context), Done)
    begun = QUOTA.handle_create(target, context)
    assert (begun.physical_id, scripted.requests) == (target.physical_name, [])
    created = run(QUOTA, "create", target, context)
    assert scripted.sent[-1] == {"quota": {"pool": 5}}
    assert QUOTA.attribute_values(created) == {"show": {"pool": 5}}
    run(QUOTA, "update", after(created, Done()), context, changed=frozenset({"pool"}))
    run(QUOTA, "delete", created, context)
    assert scripted.requests == [f"PUT {LIMITS}", f"PUT {LIMITS}", f"DELETE {LIMITS}"]


PROFILE = RESOURCE_TYPES["OS::Octavia::FlavorProfile"]()


def has_profiles(scripted: ScriptedService, *names: str) -> None:
    """The service has profiles with the name of the resource's."""
    profiles = [{"id": name, "name": "gold"} for name in names]
    others = [{"id": "other", "name": "silver"}]
    scripted.answers["GET /lbaas/flavorprofiles"] = Answer(200, {"flavorprofiles": [*profiles, *others]})
    for profile in profiles:
        scripted.answers[f"DELETE /lbaas/flavorprofiles/{profile['id']}"] = Answer(204)
        scripted.answers[f"GET /lbaas/flavorprofiles/{profile['id']}"] = Answer(
            200, {"flavorprofile": profile}
        )


def test_a_thing_without_a_mark_is_found_among_those_that_are_like_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    target = target_of(PROFILE, {"name": "gold", "flavor_data": "{}", "provider_name": "amphora"}, key=KEY)
    has_profiles(scripted, "before")
    begun = after(target, PROFILE.handle_create(target, context))
    assert begun.data == {"before": ["before"]}
    assert PROFILE.find_created(KEY, begun, context) is None
    assert PROFILE.find_created(KEY, target, context) is None
    has_profiles(scripted, "before", "lost")
    assert PROFILE.find_created(KEY, begun, context) == "lost"
    step = PROFILE.check_create_complete(dataclasses.replace(begun, attempt=2), {"begun": True}, context)
    assert isinstance(step, Done)
    assert step.physical_id == "lost"
    failed = dataclasses.replace(begun, creation_key=KEY, key="another")
    assert PROFILE.needs_replace_failed(failed, context)
    assert [request for request in scripted.requests if not request.startswith("GET")] == [
        "DELETE /lbaas/flavorprofiles/lost"
    ]
