"""AWS::ElasticLoadBalancing::LoadBalancer: a stack of Octavia's types under the names of CloudFormation."""

import re
from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues
from ...contract import (
    Attribute,
    ChildGoal,
    CloudCalls,
    GoalContext,
    PermanentError,
    Property,
    PropertyError,
    ResourceView,
)
from ...nested.base import NestedType
from ..service import service_of

TARGET = re.compile(r"(?P<type>HTTPS?|TCP|SSL):(?P<port>\d{1,5})(?P<path>/.*)?")
MONITORS: Mapping[str, str] = {"SSL": "TLS-HELLO"}
"""Octavia's names of types of monitors, where they are others."""
SUBNET = "subnet"
ADDRESS = "address"
"""Outputs of the nested stack."""
EMPTY_ATTRIBUTES = {
    name: Attribute(f"{meaning}; always empty, as in Heat.", "string")
    for name, meaning in {
        "CanonicalHostedZoneName": "Name of the hosted zone",
        "CanonicalHostedZoneNameID": "Id of the hosted zone",
        "SourceSecurityGroup.GroupName": "Name of the source security group",
        "SourceSecurityGroup.OwnerAlias": "Owner of the source security group",
    }.items()
}
_LISTENER = {
    "InstancePort": Property("integer", "Port number of the servers.", required=True),
    "LoadBalancerPort": Property("integer", "Port number of the load balancer.", required=True),
    "Protocol": Property(
        "string",
        "Protocol of the listener.",
        required=True,
        constraints=(AllowedValues(values=("TCP", "HTTP")),),
    ),
    "SSLCertificateId": Property("string", "Id of the certificate; without effect, as in Heat."),
    "PolicyNames": Property("list", "Names of policies; without effect, as in Heat."),
}
_CHECK = {
    "HealthyThreshold": Property(
        "integer",
        "Number of successful checks after which a server is healthy; without effect, as in Heat.",
        required=True,
    ),
    "Interval": Property("integer", "Interval between two health checks, in seconds.", required=True),
    "Target": Property(
        "string", "Target of the health check, such as HTTP:80/path or TCP:22.", required=True
    ),
    "Timeout": Property("integer", "Timeout of a health check, in seconds.", required=True),
    "UnhealthyThreshold": Property(
        "integer", "Number of failed checks after which a server is unhealthy.", required=True
    ),
}


class ElasticLoadBalancer(NestedType):
    """A load balancer with a listener, a pool and its members for each entry of `Listeners`."""

    type_name = "AWS::ElasticLoadBalancing::LoadBalancer"
    description = "A load balancer, under the names of CloudFormation."
    service = "load-balancer"
    uses_credentials = True
    identity = "its nested stack"
    properties_schema = {
        "AvailabilityZones": Property(
            "list", "Availability zones; without effect, as in Heat.", required=True
        ),
        "HealthCheck": Property("map", "Health check of the servers.", schema=_CHECK),
        "Instances": Property("list", "Ids of the servers.", update_allowed=True),
        "Listeners": Property(
            "list",
            "Listeners.",
            required=True,
            schema=Property("map", "Listener.", schema=_LISTENER),
        ),
        "SecurityGroups": Property(
            "list",
            "Security groups; without effect, because Octavia opens the listeners' ports.",
            update_allowed=True,
        ),
    }
    attributes_schema = {
        "DNSName": Attribute("Virtual IP address of the load balancer.", "string"),
        **EMPTY_ATTRIBUTES,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check how servers are checked.

        :raises PropertyError: the times or the target are wrong.
        """
        check = properties.get("HealthCheck")
        if not check:
            return
        if check["Interval"] < check["Timeout"]:
            raise PropertyError("Interval must be larger than Timeout", ("HealthCheck", "Interval"))
        if TARGET.fullmatch(check["Target"]) is None:
            text = f"{check['Target']:.100} is not a target such as HTTP:80/path or TCP:22"
            raise PropertyError(text, ("HealthCheck", "Target"))

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        """Return the goal of the nested stack, for the addresses that the servers have now."""
        members = [_member(context, str(server)) for server in target.properties["Instances"] or ()]
        stored = (target.data.get("outputs") or {}).get(SUBNET)
        subnet = stored or (members[0][SUBNET] if members else _only_subnet(context))
        return ChildGoal(_template(target.properties, members, str(subnet)))

    def reference_id(self, target: ResourceView) -> Json:
        """Return the name of the resource, as Heat does."""
        return target.name

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the address; what else there may be is empty."""
        address = (target.data.get("outputs") or {}).get(ADDRESS)
        return {"DNSName": address, **dict.fromkeys(EMPTY_ATTRIBUTES, "")}


def _member(context: CloudCalls, server: str) -> Mapping[str, str]:
    """Return address and subnet of a server's first port.

    :raises PermanentError: the server has none.
    """
    answer = service_of(context, "compute").get(f"/servers/{server}/os-interface")
    for interface in answer["interfaceAttachments"]:
        for fixed_ip in interface["fixed_ips"]:
            return {"server": server, ADDRESS: fixed_ip["ip_address"], SUBNET: fixed_ip["subnet_id"]}
    raise PermanentError(f"No network interface found for server {server}", kind="InterfaceNotFound")


def _only_subnet(context: CloudCalls) -> str:
    """Return the first subnet of the only network of the project.

    :raises PermanentError: there is not just one network, or it has no subnet.
    """
    service = service_of(context, "network")
    query = {"project_id": str(context.session().get_project_id()), "router:external": "False"}
    networks = service.list_all("/networks", "networks", **query)
    subnets = [str(subnet) for network in networks for subnet in network["subnets"]]
    if len(networks) != 1 or not subnets:
        text = "Without Instances the load balancer needs a project with one network that has a subnet"
        raise PermanentError(f"{text}; there are {len(networks)} networks", kind="Error")
    return subnets[0]


def _template(properties: JsonMap, members: Sequence[Mapping[str, str]], subnet: str) -> JsonMap:
    """Return the template of the nested stack."""
    resources: dict[str, Json] = {"balancer": _resource("LoadBalancer", vip_subnet=subnet)}
    check = properties["HealthCheck"]
    for index, listener in enumerate(properties["Listeners"]):
        names = {kind: f"{kind}_{index}" for kind in ("listener", "pool", "monitor")}
        resources[names["listener"]] = _resource(
            "Listener",
            loadbalancer={"get_resource": "balancer"},
            protocol=listener["Protocol"],
            protocol_port=listener["LoadBalancerPort"],
        )
        resources[names["pool"]] = _resource(
            "Pool",
            listener={"get_resource": names["listener"]},
            protocol=listener["Protocol"],
            lb_algorithm="ROUND_ROBIN",
        )
        pool = {"get_resource": names["pool"]}
        if check:
            resources[names["monitor"]] = _resource("HealthMonitor", pool=pool, **_monitor(check))
        for member in members:
            port = listener["InstancePort"]
            resources[f"member_{index}_{member['server']}"] = _resource(
                "PoolMember",
                pool=pool,
                address=member[ADDRESS],
                protocol_port=port,
                # The balancer is in its own subnet anyway.
                **({} if member[SUBNET] == subnet else {"subnet": member[SUBNET]}),
                **_monitor_port(check, port),
            )
    address = {"value": {"get_attr": ["balancer", "vip_address"]}}
    return {
        "heat_template_version": "2021-04-16",
        "resources": resources,
        "outputs": {ADDRESS: address, SUBNET: {"value": subnet}},
    }


def _resource(name: str, **properties: Json) -> dict[str, Json]:
    return {"type": f"OS::Octavia::{name}", "properties": properties}


def _monitor(check: JsonMap) -> dict[str, Json]:
    """Return the properties of a monitor."""
    target = TARGET.fullmatch(check["Target"])
    assert target is not None, "the properties were checked"
    kind = target["type"]
    path = {"url_path": target["path"] or "/"} if kind.startswith("HTTP") else {}
    return {
        "type": MONITORS.get(kind, kind),
        "delay": check["Interval"],
        "timeout": check["Timeout"],
        "max_retries": check["UnhealthyThreshold"],
        **path,
    }


def _monitor_port(check: JsonMap | None, port: int) -> dict[str, Json]:
    """Return the port that is checked, where it is not that of the members."""
    target = TARGET.fullmatch(check["Target"]) if check else None
    return {} if target is None or int(target["port"]) == port else {"monitor_port": int(target["port"])}
