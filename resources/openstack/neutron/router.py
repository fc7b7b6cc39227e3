"""OS::Neutron::Router and OS::Neutron::RouterInterface."""

import functools
import re
from collections.abc import Collection, Sequence, Set

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import (
    Attribute,
    CloudFacts,
    ImpliedDependency,
    Property,
    PropertyError,
    ResourceView,
    StepContext,
)
from ..attached import AttachedType, Link
from ..names import resolve
from .base import BUILT, NeutronType
from .fits import NETWORK_FITS
from .lacking_rules import LACKING_RULES
from .network_rules import NETWORK_RULES
from .schema import ADMIN_STATE, HIDDEN, NAME, NETWORK, SHOWN, TAGS, TENANT, VALUE_SPECS
from .users import PORTS, Usage, interfaces_outside

SUBNET = Custom(check_name="neutron.subnet")
PHYSICAL_ID = re.compile("[:=]")
"""Separators of the physical id of an interface: the router, the field of its place, the place."""
EXTERNAL_FIXED_IP = {
    "ip_address": Property("string", "IP address.", constraints=(Custom(check_name="ip_addr"),)),
    "subnet": Property(
        "string", "Name or id of the subnet that the address is allocated from.", constraints=(SUBNET,)
    ),
}
GATEWAY = {
    "network": Property(
        "string",
        "Name or id of the external network.",
        required=True,
        update_allowed=True,
        names="neutron.network",
    ),
    "enable_snat": Property(
        "boolean",
        "Source NAT (SNAT) for internal addresses; setting it is for administrators by default.",
        update_allowed=True,
    ),
    "external_fixed_ips": Property(
        "list",
        "Addresses of the router in the external network.",
        update_allowed=True,
        schema=Property("map", "Address in the external network.", schema=EXTERNAL_FIXED_IP),
    ),
}


class Router(NeutronType):
    """A router between networks of a project, and to an external one."""

    type_name = "OS::Neutron::Router"
    description = "A router between networks, with a gateway to an external one."
    path = "/routers"
    item = "router"
    quota = {"router": 1}
    used_by = Usage(PORTS, "device_id")
    status = BUILT
    implied_dependencies = (
        ImpliedDependency("external_gateway_info.network|network_id", "OS::Neutron::Subnet", NETWORK),
    )
    stack_rules = (*NETWORK_RULES, *LACKING_RULES)
    cloud_rules = NETWORK_FITS
    apart = ("tags", "value_specs", "external_gateway_info", "l3_agent_ids", "l3_agent_id")
    properties_schema = {
        "name": NAME,
        "external_gateway_info": Property("map", "External gateway.", update_allowed=True, schema=GATEWAY),
        "value_specs": VALUE_SPECS,
        "admin_state_up": ADMIN_STATE,
        "l3_agent_ids": Property(
            "list",
            "Ids of the L3 agents that host the router; for administrators only.",
            update_allowed=True,
            schema=Property("string", "Id of an L3 agent."),
        ),
        "l3_agent_id": Property(
            "string",
            "Old form of l3_agent_ids, with one id.",
            update_allowed=True,
            support_status=HIDDEN,
        ),
        "distributed": Property(
            "boolean", "Distributed virtual router (DVR); setting it is for administrators by default."
        ),
        "ha": Property("boolean", "High availability (HA); setting it is for administrators by default."),
        "availability_zone_hints": Property(
            "list",
            "Availability zone hints for the router's agents, in order of preference.",
            update_allowed=True,
        ),
        "tags": TAGS,
        "tenant_id": TENANT,
    }
    attributes_schema = {
        **SHOWN,
        "status": Attribute("Status of the router.", "string"),
        "external_gateway_info": Attribute("External gateway.", "map"),
        "admin_state_up": Attribute("Administrative state: true is up.", "string"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that agents fit the kind of router."""
        agents = _agents(properties)
        if properties.get("l3_agent_ids") and properties.get("l3_agent_id"):
            raise PropertyError("l3_agent_id and l3_agent_ids exclude each other")
        if agents and properties.get("distributed"):
            raise PropertyError("l3_agent_ids cannot be given for a distributed router")
        if len(agents) > 1 and properties.get("ha") is False:
            raise PropertyError("l3_agent_ids can have several ids only if ha is true")

    def users_outside(self, physical_id: str, own: Set[str], cloud: CloudFacts) -> Sequence[str]:
        """Return the interfaces of the router that the stack has not made."""
        return interfaces_outside(physical_id, own, cloud)

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        body = super().create_body(target, context)
        if target.properties["external_gateway_info"] is not None:
            body["external_gateway_info"] = _gateway(target, context)
        return body

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        body = super().update_body(target, changed, context)
        if "external_gateway_info" in changed:
            body["external_gateway_info"] = _gateway(target, context)
        return body

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it gets tags, or agents."""
        return super().has_more(target) or bool(_agents(target.properties))

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set tags and agents."""
        if super().has_more(target):
            super().after_create(target, context)
        self._set_agents(target, context)

    def after_update(self, target: ResourceView, changed: Collection[str], context: StepContext) -> None:
        """Set tags and agents, if they have changed."""
        super().after_update(target, changed, context)
        if {"l3_agent_ids", "l3_agent_id"} & set(changed):
            self._set_agents(target, context)

    def _set_agents(self, target: ResourceView, context: StepContext) -> None:
        agents = _agents(target.properties)
        if not agents:
            return
        service = self.service_for(context)
        present = [agent["id"] for agent in service.get(f"{self.path_of(target)}/l3-agents")["agents"]]
        for agent in set(present) - set(agents):
            service.delete(f"/agents/{agent}/l3-routers/{self.id_of(target)}")
        for agent in agents:
            if agent not in present:
                service.post(f"/agents/{agent}/l3-routers", {"router_id": self.id_of(target)})


def _agents(properties: JsonMap) -> list[str]:
    """Return the ids of the L3 agents, by either name of the property."""
    agent = properties.get("l3_agent_id")
    return [str(item) for item in properties.get("l3_agent_ids") or ()] or ([str(agent)] if agent else [])


def _gateway(target: ResourceView, context: StepContext) -> dict[str, Json]:
    """Return the gateway with ids in place of names; an empty one is none."""
    gateway = target.properties["external_gateway_info"]
    if not gateway:
        return {}
    body: dict[str, Json] = {"network_id": resolve(context, "neutron.network", gateway["network"])}
    if gateway["enable_snat"] is not None:
        body["enable_snat"] = gateway["enable_snat"]
    if gateway["external_fixed_ips"]:
        find = functools.partial(resolve, context, "neutron.subnet")
        body["external_fixed_ips"] = [
            {
                **({"ip_address": item["ip_address"]} if item["ip_address"] else {}),
                **({"subnet_id": find(item["subnet"])} if item["subnet"] else {}),
            }
            for item in gateway["external_fixed_ips"]
        ]
    return body


class RouterInterface(AttachedType):
    """A router's interface in a subnet; router and subnet, or port, are its identity.

    The physical id is ``ROUTER:subnet_id=SUBNET`` or ``ROUTER:port_id=PORT``, as in Heat.
    """

    type_name = "OS::Neutron::RouterInterface"
    description = "An interface of a router in a subnet."
    service = "network"
    missing = "network: the router has no interface {0}"
    identity = "the router, and the subnet or the port"
    properties_schema = {
        "router": Property(
            "string",
            "Name or id of the router.",
            required=True,
            constraints=(Custom(check_name="neutron.router"),),
        ),
        "router_id": Property("string", "Old name of router.", support_status=HIDDEN, alias_of="router"),
        "subnet": Property("string", "Name or id of the subnet; alternative to port.", constraints=(SUBNET,)),
        "subnet_id": Property("string", "Old name of subnet.", support_status=HIDDEN, alias_of="subnet"),
        "port": Property(
            "string",
            "Name or id of the port that becomes the interface; alternative to subnet.",
            constraints=(Custom(check_name="neutron.port"),),
        ),
        "port_id": Property("string", "Old name of port.", support_status=HIDDEN, alias_of="port"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that it is in a subnet, or at a port."""
        values = [properties.get(name, "unknown") for name in ("subnet", "port")]
        if not any(values):
            raise PropertyError("one of subnet and port is needed")
        if properties.get("subnet") and properties.get("port"):
            raise PropertyError("subnet and port exclude each other")

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the physical id."""
        kind = "subnet" if properties["subnet"] else "port"
        router = resolve(context, "neutron.router", properties["router"])
        return (f"{router}:{kind}_id={resolve(context, f'neutron.{kind}', properties[kind])}",)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Add the interface."""
        router, field, place = PHYSICAL_ID.split(link[0])
        path = f"/routers/{router}/add_router_interface"
        return self.service_for(context).put(path, {field: place}, creates=True)

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the interface, with fields of the answer that adds one."""
        router, field, place = PHYSICAL_ID.split(link[0])
        for port in self.service_for(context).list_all("/ports", "ports", device_id=router):
            if place in (port["id"], *(ip["subnet_id"] for ip in port["fixed_ips"])):
                return {"id": router, "port_id": port["id"], field: place}
        return None

    def detach(self, link: Link, context: StepContext) -> bool:
        """Remove the interface."""
        router, field, place = PHYSICAL_ID.split(link[0])
        self.service_for(context).put(f"/routers/{router}/remove_router_interface", {field: place})
        return False
