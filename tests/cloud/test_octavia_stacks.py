"""Stacks with a whole load balancer, from the request to the parts and back, whatever dies meanwhile."""

import collections
import contextlib
import pathlib
import typing

import pytest
import sqlalchemy
from cloud import chaos
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.cloud.stoker import stoker_on
from harness.deployment import Servers
from harness.etcd import Etcd
from harness.fault_proxy import LateProxy
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from openstack.exceptions import HttpException

Json = typing.Any
HOSTS = ("one", "two", "three")
MEMBERS = 4
NO_LEAVES = 6
"""Things of the template that are no leaves of the balancer's tree: itself, listeners, pools, a policy."""
WITHIN = 600.0
pytestmark = pytest.mark.usefixtures("balancers")


def resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def ref(name: str) -> Json:
    return {"get_resource": name}


def template(members: int = MEMBERS, *, changed: bool = False) -> Json:
    """A balancer with every kind of part, whose network has limits."""
    resources = {
        "policy": resource("Neutron::QoSPolicy", description="limits"),
        "limit": resource(
            "Neutron::QoSBandwidthLimitRule", policy=ref("policy"), max_kbps=2000 if changed else 1000
        ),
        "mark": resource("Neutron::QoSDscpMarkingRule", policy=ref("policy"), dscp_mark=16),
        "net": resource("Neutron::Net", qos_policy=ref("policy")),
        "subnet": resource("Neutron::Subnet", network=ref("net"), cidr="10.8.0.0/24"),
        "balancer": resource("Octavia::LoadBalancer", vip_subnet=ref("subnet"), description="the shop"),
        "listener": resource(
            "Octavia::Listener",
            loadbalancer=ref("balancer"),
            protocol="HTTP",
            protocol_port=80,
            connection_limit=20 if changed else 10,
        ),
        "second": resource(
            "Octavia::Listener", loadbalancer=ref("balancer"), protocol="HTTP", protocol_port=8080
        ),
        "pool": resource(
            "Octavia::Pool", listener=ref("listener"), protocol="HTTP", lb_algorithm="ROUND_ROBIN"
        ),
        "other pool": resource(
            "Octavia::Pool", loadbalancer=ref("balancer"), protocol="HTTP", lb_algorithm="SOURCE_IP"
        ),
        "monitor": resource(
            "Octavia::HealthMonitor",
            pool=ref("pool"),
            type="HTTP",
            delay=7 if changed else 5,
            timeout=3,
            max_retries=3,
        ),
        "api": resource(
            "Octavia::L7Policy",
            listener=ref("second"),
            action="REDIRECT_TO_POOL",
            redirect_pool=ref("other pool"),
        ),
        "path": resource(
            "Octavia::L7Rule",
            l7policy=ref("api"),
            type="PATH",
            compare_type="STARTS_WITH",
            value="/v2" if changed else "/v1",
        ),
    }
    for number in range(members):
        resources[f"member{number}"] = resource(
            "Octavia::PoolMember",
            pool=ref("pool"),
            address=f"10.8.0.{100 + number}",
            protocol_port=8080 if changed and number % 2 else 80,
            weight=5 if changed else 1,
        )
    return {
        "heat_template_version": "2018-08-31",
        "resources": resources,
        "outputs": {
            "address": {"value": {"get_attr": ["balancer", "vip_address"]}},
            "members": {"value": {"get_attr": ["pool", "members"]}},
        },
    }


def marks_of(project: Project) -> dict[str, list[str]]:
    """The marks of each part of the project's balancers: id -> marks."""
    octavia = project.connection.load_balancer
    pools = list(octavia.pools())
    policies = list(octavia.l7_policies())
    parts = [
        *octavia.load_balancers(),
        *octavia.listeners(),
        *pools,
        *octavia.health_monitors(),
        *policies,
        *(member for pool in pools for member in octavia.members(pool.id)),
        *(rule for policy in policies for rule in octavia.l7_rules(policy.id)),
    ]
    return {part.id: [tag for tag in part.tags if tag.startswith("stoker-")] for part in parts}


def set_status(cloud: Cloud, balancer: str, status: str) -> None:
    """Give a balancer a state, as its agents would."""
    engine = sqlalchemy.create_engine(cloud.database_url, isolation_level="AUTOCOMMIT")
    query = "UPDATE octavia.load_balancer SET provisioning_status = :status WHERE id = :id"
    with contextlib.closing(engine.connect()) as connection:
        connection.execute(sqlalchemy.text(query), {"status": status, "id": balancer})
    engine.dispose()


def assert_each_part_is_there_once(stack: Stack, project: Project) -> None:
    """Each resource has its part, each part its resource and one mark."""
    rows = stack.get("/resources")["resources"]
    expected = {
        row["physical_resource_id"] for row in rows if row["resource_type"].startswith("OS::Octavia::")
    }
    marks = marks_of(project)
    assert set(marks) == expected
    count = collections.Counter(mark for of_part in marks.values() for mark in of_part)
    assert sorted(count.values()) == [1] * len(marks)


def test_a_balancer_with_all_its_parts(operator_stacks: Stacks, operator: Project, cloud: Cloud) -> None:
    stack = operator_stacks.create("shop", template())
    assert_each_part_is_there_once(stack, operator)
    octavia = operator.connection.load_balancer
    pool = stack.physical_id("pool")
    balancer = octavia.get_load_balancer(stack.physical_id("balancer"))
    assert stack.outputs()["address"] == balancer.vip_address
    assert {item["id"] for item in stack.outputs()["members"]} == {item.id for item in octavia.members(pool)}
    assert octavia.get_listener(stack.physical_id("listener")).default_pool_id == pool
    assert any(request.endswith(" 409") for request in cloud.requests("octavia", operator))
    assert not [reason for reason in stack.reasons().values() if "again" in reason]

    stack.update(template(MEMBERS - 1, changed=True))
    assert_each_part_is_there_once(stack, operator)
    members = list(octavia.members(pool))
    assert sorted((item.address, item.protocol_port, item.weight) for item in members) == [
        ("10.8.0.100", 80, 5),
        ("10.8.0.101", 8080, 5),
        ("10.8.0.102", 80, 5),
    ]
    assert octavia.get_l7_rule(stack.physical_id("path"), stack.physical_id("api")).rule_value == "/v2"
    assert octavia.get_listener(stack.physical_id("listener")).connection_limit == 20
    assert octavia.get_health_monitor(stack.physical_id("monitor")).delay == 7
    limit = operator.connection.network.get_qos_bandwidth_limit_rule(
        stack.physical_id("limit"), stack.physical_id("policy")
    )
    assert limit.max_kbps == 2000
    stack.action("check")

    before = len(cloud.requests("octavia", operator))
    stack.delete()
    assert operator.leftovers() == {}
    requests = cloud.requests("octavia", operator)[before:]
    cascades = [request for request in requests if "cascade=true" in request]
    assert len(cascades) == 1, requests
    # Of the others those that are no leaves of the tree find out that they are gone.
    deletions = [request for request in requests if request.startswith("DELETE")]
    assert len(deletions) <= len(cascades) + NO_LEAVES, requests
    assert not [request for request in requests if request.endswith(" 409")], requests


def test_a_failed_balancer_is_deleted_with_its_stack(
    operator_stacks: Stacks, operator: Project, cloud: Cloud
) -> None:
    """Octavia refuses to delete single parts of it."""
    stack = operator_stacks.create("shop", template(2))
    pool = stack.physical_id("pool")
    set_status(cloud, stack.physical_id("balancer"), "ERROR")
    with pytest.raises(HttpException, match="immutable"):
        operator.connection.load_balancer.delete_pool(pool)
    stack.delete()
    assert operator.leftovers() == {}


def test_a_part_of_somebody_else_is_not_deleted_with_a_stack(
    operator_stacks: Stacks, operator: Project, cloud: Cloud
) -> None:
    stack = operator_stacks.create("shop", template(2))
    octavia = operator.connection.load_balancer
    balancer = stack.physical_id("balancer")
    pool = octavia.create_pool(
        name="theirs", loadbalancer_id=balancer, protocol="HTTP", lb_algorithm="ROUND_ROBIN"
    )
    octavia.wait_for_load_balancer(balancer)
    before = len(cloud.requests("octavia", operator))
    stack.start_delete()
    stack.wait("DELETE_FAILED")
    assert "has children" in stack.reasons()["balancer"]
    assert [item.id for item in octavia.pools()] == [pool.id]
    assert list(octavia.listeners()) == []
    assert not [item for item in cloud.requests("octavia", operator)[before:] if "cascade=true" in item]
    octavia.delete_pool(pool)
    octavia.wait_for_load_balancer(balancer)
    stack.delete()
    assert operator.leftovers() == {}


@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
def test_changes_that_octavia_carries_out_late_are_made_once(
    tmp_path: pathlib.Path, cloud: Cloud, operator: Project
) -> None:
    late = chaos.FaultyCloud(
        cloud, size=1, make_proxy=lambda url, _, hangs: LateProxy(url, hangs=hangs), paths={"octavia": ""}
    )
    try:
        with stoker_on(cloud, tmp_path, late.options().removeprefix(cloud.stoker_options())) as service:
            stacks = Stacks(service, operator, within=WITHIN)
            with late.faults():
                stack = stacks.create("late", template(2))
                assert_each_part_is_there_once(stack, operator)
                stack.update(template(2, changed=True))
                stack.delete()
            assert late.counts()["LATE"] >= 10
        assert operator.leftovers() == {}
    finally:
        late.close()


@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
def test_no_part_is_made_twice_or_left_with_conductors_that_are_killed(
    tmp_path: pathlib.Path,
    rabbitmq: RabbitMQ,
    postgresql: PostgreSQL,
    etcd: Etcd,
    cloud: Cloud,
    operator: Project,
) -> None:
    servers = Servers(rabbitmq, postgresql, etcd)
    with chaos.daemons(tmp_path, servers, cloud.stoker_options(), HOSTS) as deployment:
        killer = chaos.Killer(deployment, seed=7, pause=3.0, down=0.5)
        stacks = Stacks(chaos.DaemonsApi(deployment), operator, within=WITHIN, pause=0.5)
        with killer.at_work():
            stack = stacks.start("shop", template(8))
            stack.wait("CREATE_COMPLETE")
        assert_each_part_is_there_once(stack, operator)
        with killer.at_work():
            stack.start_update(template(8, changed=True))
            stack.wait("UPDATE_COMPLETE")
        assert_each_part_is_there_once(stack, operator)
        with killer.at_work():
            stack.delete()
        wait_for(lambda: not chaos.unfinished(deployment), WITHIN, lambda: str(chaos.unfinished(deployment)))
        assert killer.kills >= 3
    assert operator.leftovers() == {}
