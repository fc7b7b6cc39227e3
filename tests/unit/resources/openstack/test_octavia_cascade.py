"""A balancer that is deleted with its stack goes with all its parts by one request, if nothing keeps any."""

import dataclasses
import typing
from collections.abc import Sequence

import pytest
from harness.fake_context import target_of
from harness.resource_types import types_of
from harness.scripted_context import SharingContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.contract.views import DeletionView, ResourceView
from stoker.resources.openstack.octavia.base import TURN

RESOURCE_TYPES = types_of("openstack.octavia")

Json = typing.Any
PATH = "/lbaas/loadbalancers/balancer"
CASCADE = f"DELETE {PATH}?cascade=true"
POOL = RESOURCE_TYPES["OS::Octavia::Pool"]()
STACK = (
    DeletionView(1, "OS::Octavia::PoolMember", "member", (2,)),
    DeletionView(2, "OS::Octavia::Pool", "pool", (3,)),
    DeletionView(3, "OS::Octavia::LoadBalancer", "balancer"),
    DeletionView(4, "OS::Neutron::Net", "net"),
)
SERVER = DeletionView(5, "OS::Nova::Server", "server", (2,))


@pytest.fixture
def context(scripted: ScriptedService) -> SharingContext:
    context = SharingContext(scripted)
    context.to_delete = list(STACK)
    return context


@pytest.fixture
def pool() -> ResourceView:
    properties = {"loadbalancer": "balancer", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}
    return target_of(POOL, properties, physical_id="pool", data={"thing": {}})


def has(scripted: ScriptedService, status: str, *members: str, policies: Sequence[Json] = ()) -> None:
    """The service has the balancer in this state, with a pool of these members; it takes deletions."""
    pool = {"id": "pool", "members": [{"id": key} for key in members]}
    listener = {"id": "listener", "l7policies": [{"id": policy["id"]} for policy in policies]}
    for kind, items in (("pools", [pool]), ("listeners", [listener] if policies else [])):
        scripted.answers[f"GET /lbaas/{kind}?loadbalancer_id=balancer"] = Answer(200, {kind: items})
    scripted.answers["GET /lbaas/l7policies"] = Answer(200, {"l7policies": list(policies)})
    balancer = {"id": "balancer", "provisioning_status": status}
    scripted.answers[f"GET {PATH}"] = Answer(200, {"loadbalancer": balancer})
    scripted.answers[CASCADE] = Answer(204)
    scripted.answers["DELETE /lbaas/pools/pool"] = Answer(204)


def deletions_of(scripted: ScriptedService) -> list[str]:
    return [request for request in scripted.requests if request.startswith("DELETE")]


def is_gone(scripted: ScriptedService) -> None:
    """The service has nothing of the balancer any more."""
    scripted.answers[f"GET {PATH}"] = Answer(404)


def test_the_first_part_deletes_the_balancer_and_all_end_when_it_is_gone(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "ACTIVE", "member")
    steps = [POOL.handle_delete(pool, context) for _ in range(3)]
    assert deletions_of(scripted) == [CASCADE]
    has(scripted, "PENDING_DELETE", "member")
    context.time += 1.0
    waiting = [POOL.check_delete_complete(pool, step.progress, context) for step in steps]
    assert [step.progress[TURN] for step in waiting] == [PATH] * 3
    is_gone(scripted)
    context.time += 1.0
    assert all(isinstance(POOL.check_delete_complete(pool, step.progress, context), Done) for step in waiting)
    assert deletions_of(scripted) == [CASCADE]
    assert scripted.requests.count(f"GET {PATH}") == 4


@pytest.mark.parametrize(
    ("deletions", "members"),
    [
        pytest.param((), ["member"], id="the stack is not being deleted"),
        pytest.param(STACK, ["member", "other"], id="another one's part"),
        pytest.param(
            (dataclasses.replace(STACK[0], is_certain=False), *STACK[1:]), ["member"], id="a part is kept"
        ),
        pytest.param(
            (*STACK[:2], dataclasses.replace(STACK[2], is_certain=False)), ["member"], id="balancer is kept"
        ),
        pytest.param((*STACK, SERVER), ["member"], id="a server comes before it"),
        pytest.param(STACK[:2], ["member"], id="the balancer is of another stack"),
    ],
)
def test_a_part_is_deleted_alone_where_anything_keeps_the_balancer(
    scripted: ScriptedService,
    context: SharingContext,
    pool: ResourceView,
    deletions: Sequence[DeletionView],
    members: list[str],
) -> None:
    has(scripted, "ACTIVE", *members)
    context.to_delete = list(deletions)
    POOL.handle_delete(pool, context)
    assert deletions_of(scripted) == ["DELETE /lbaas/pools/pool"]


def test_a_rule_of_somebody_else_keeps_the_balancer(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    context.to_delete += [
        DeletionView(6, "OS::Octavia::L7Policy", "policy", (7,)),
        DeletionView(7, "OS::Octavia::Listener", "listener", (3,)),
    ]
    has(scripted, "ACTIVE", policies=[{"id": "policy", "rules": [{"id": "other"}]}])
    POOL.handle_delete(pool, context)
    assert deletions_of(scripted) == ["DELETE /lbaas/pools/pool"]


def test_a_part_that_was_added_since_the_others_were_read_keeps_the_balancer(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "ACTIVE", "member")
    context.to_delete.append(SERVER)
    POOL.handle_delete(pool, context)
    context.to_delete.remove(SERVER)
    has(scripted, "ACTIVE", "member", "other")
    POOL.handle_delete(pool, context)
    assert deletions_of(scripted) == ["DELETE /lbaas/pools/pool"] * 2


def test_what_is_deleted_after_the_balancer_or_beside_it_does_not_matter(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "ACTIVE", "member")
    context.to_delete.append(dataclasses.replace(SERVER, successors=(4,)))
    POOL.handle_delete(pool, context)
    assert deletions_of(scripted) == [CASCADE]


def test_a_balancer_that_is_worked_on_is_waited_for_without_a_refusal(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "PENDING_UPDATE", "member")
    step = POOL.handle_delete(pool, context)
    assert isinstance(step, Poll)
    has(scripted, "ACTIVE", "member")
    context.time += 1.0
    POOL.check_delete_complete(pool, step.progress, context)
    assert deletions_of(scripted) == [CASCADE]


def test_a_balancer_that_has_failed_goes_with_its_parts_in_any_order(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    context.to_delete.append(SERVER)
    has(scripted, "PENDING_UPDATE", "member")
    context.time += 1.0
    progress = {"since": context.now(), TURN: PATH}
    has(scripted, "ERROR", "member")
    assert isinstance(POOL.check_delete_complete(pool, progress, context), Poll)
    assert deletions_of(scripted) == [CASCADE]


def test_a_balancer_that_cannot_be_deleted_fails_the_part(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "ERROR", "member")
    step = POOL.handle_delete(pool, context)
    context.time += 10.0
    with pytest.raises(PermanentError, match="balancer has provisioning_status ERROR"):
        POOL.check_delete_complete(pool, step.progress, context)
    assert deletions_of(scripted) == [CASCADE]


def test_a_part_whose_balancer_went_before_it_is_gone(
    scripted: ScriptedService, context: SharingContext, pool: ResourceView
) -> None:
    has(scripted, "ACTIVE", "member")
    scripted.answers[CASCADE] = Answer(404)
    assert isinstance(POOL.handle_delete(pool, context), Done)
