"""A rule for floating IPs whose network no router of the port's network leads to; pure.

Neutron looks for a router with an interface in the port's subnet and a gateway in the floating IP's network.
The rule says nothing unless it knows all routers of the port's network, of the cloud and of the template.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....shapes import Json, JsonMap
from ...contract import Certainty, CloudFacts, KnownResource, Made, Members, Misfit, PlannedStack, Thing
from ..lists import named
from .network_rules import FLOATING_IP, PORT, ROUTER, SUBNET
from .schema import is_overridden
from .users import OF_INTERFACE

INTERFACE = "OS::Neutron::RouterInterface"
VPC_INTERFACE = "AWS::EC2::SubnetRouteTableAssociation"
ASSOCIATION = "OS::Neutron::FloatingIPAssociation"


class _NotKnown(Exception):
    """A thing on the way is not known."""


@dataclass(frozen=True)
class _Routes:
    """The routers of networks, of the template and of the cloud.  A thing is named by its id, or is Made."""

    stack: PlannedStack
    cloud: CloudFacts

    def network_of_port(self, port: Thing | None) -> Thing:
        """Return the network of a port."""
        made = self.stack.made(port)
        if made is None:
            return _id(self._named("/ports", "ports", self.stack.existing(port)), "network_id")
        if made.type != PORT or is_overridden(made.values, "network_id"):
            raise _NotKnown
        return self.network(made.thing("network"))

    def network(self, thing: Thing | None) -> Thing:
        """Return a network that a property names; Made only if the action makes it."""
        return self._identified("/networks", "networks", thing)

    def is_own(self, network: Thing) -> bool:
        """Return whether the caller sees all ports of a network: it is the project's."""
        if isinstance(network, Made):
            return True
        entry = self._named("/networks", "networks", network)
        return entry.get("project_id") == self.cloud.project_id

    def gateways(self, network: Thing) -> set[Thing | None]:
        """Return the external networks of the routers of a network; None: one has none."""
        if self._of_template is None:
            raise _NotKnown
        routers = {*self._of_template.get(network, ())}
        for port in self._members("/ports", "ports").where("network_id", str(network)):
            if str(port.get("device_owner")) in OF_INTERFACE:
                routers.add(_id(port, "device_id"))
        return {gateway for router in routers for gateway in self._gateways_of(router)}

    @functools.cached_property
    def _of_template(self) -> dict[Thing, set[Thing]] | None:
        """Return the routers that the template gives networks; None: some are not known."""
        routers: dict[Thing, set[Thing]] = {}
        has_other = any(self.stack.known.of_type(VPC_INTERFACE))
        if has_other or self.stack.may_change_elsewhere(ROUTER, INTERFACE, VPC_INTERFACE):
            return None  # Also a stack around this one, or in it, may give the network a router.
        try:
            for interface in self.stack.known.of_type(INTERFACE):
                network = self._network_of_interface(interface)
                router = self._identified("/routers", "routers", interface.thing("router"))
                routers.setdefault(network, set()).add(router)
        except _NotKnown:
            return None
        return routers

    def _network_of_interface(self, interface: KnownResource) -> Thing:
        subnet = interface.thing("subnet")
        if subnet is None:
            return self.network_of_port(interface.thing("port"))
        made = self.stack.made(subnet)
        if made is None:
            return _id(self._named("/subnets", "subnets", self.stack.existing(subnet)), "network_id")
        if made.type != SUBNET or is_overridden(made.values, "network_id"):
            raise _NotKnown
        return self.network(made.thing("network"))

    def _identified(self, path: str, items: str, thing: Thing | None) -> Thing:
        existing = self.stack.existing(thing)
        return existing if isinstance(existing, Made) else _id(self._named(path, items, existing))

    def _gateways_of(self, router: Thing) -> set[Thing | None]:
        made = self._planned_routers.get(router)
        if made is None:
            if isinstance(router, Made):
                raise _NotKnown  # Made by a type that is no router.
            return _gateways_now(self._named("/routers", "routers", router))
        if is_overridden(made.values, "external_gateway_info", "external_gateways"):
            raise _NotKnown
        if made.values.get("external_gateway_info", "unknown") is None:
            return {None}
        return {self.network(made.thing("external_gateway_info", "network"))}

    @functools.cached_property
    def _planned_routers(self) -> dict[Thing | None, KnownResource]:
        """Return the routers of the template: an update may give an older one another gateway."""
        routers = self.stack.known.of_type(ROUTER)
        return {self.stack.existing(Made(router.name)): router for router in routers}

    def _named(self, path: str, items: str, thing: Thing | None) -> JsonMap:
        entry = named(self._members(path, items), thing)
        if entry is None:
            raise _NotKnown
        return entry

    def _members(self, path: str, items: str) -> Members:
        members = self.cloud.members("network", path, items)
        if members is None:
            raise _NotKnown
        return members


def _id(entry: Json, field: str = "id") -> str:
    value = entry.get(field) if isinstance(entry, Mapping) else None  # The service decides what it is.
    if not isinstance(value, str) or not value:
        raise _NotKnown
    return value


def _gateways_now(router: JsonMap) -> set[Thing | None]:
    """Return the external networks of a router of the cloud, which may have several; None: it has none."""
    several = router.get("external_gateways") or []
    entries = [router.get("external_gateway_info"), *(several if isinstance(several, list) else [several])]
    gateways: set[Thing | None] = {_id(entry, "network_id") for entry in entries if entry}
    return gateways or {None}


def floating_ips_out_of_reach(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the floating IPs that no router connects with their port."""
    routes = _Routes(stack, cloud)
    for resource, outer, port in _floating(stack, cloud):
        try:
            external, network = routes.network(outer), routes.network_of_port(port)
            gateways = routes.gateways(network)
            is_own = routes.is_own(network)
        except _NotKnown:
            continue
        # Without any router another stack may give it one.
        if not gateways or external in gateways:
            continue
        # The owner of the network, and others, may have routers in it that the caller does not see.
        seen = "" if is_own else " that you see"
        yield Misfit(
            resource.name,
            f"the external network is not reachable from the port: no router of it{seen} has a gateway there",
            ("port_id",),
            _name(external),
            ", ".join(sorted(_name(gateway) for gateway in gateways if gateway)) or "no gateway",
            "Use a floating IP of the router's external network, or another gateway of the router.",
            Certainty.CERTAIN if is_own else Certainty.NOT_KNOWN,
        )


def _floating(
    stack: PlannedStack, cloud: CloudFacts
) -> Iterator[tuple[KnownResource, Thing | None, Thing | None]]:
    """Yield what gives a port a floating IP, with the external network and the port."""
    for floating in stack.new_of_type(FLOATING_IP):
        port = floating.thing("port_id")
        if port is not None and not is_overridden(floating.values, "floating_network_id", "port_id"):
            yield floating, floating.thing("floating_network"), port
    for association in stack.new_of_type(ASSOCIATION):
        thing = association.thing("floatingip_id")
        made = stack.made(thing)
        if made is None:
            entry = named(cloud.members("network", "/floatingips", "floatingips"), stack.existing(thing))
            network = (entry or {}).get("floating_network_id")
        elif made.type == FLOATING_IP and not is_overridden(made.values, "floating_network_id"):
            network = made.thing("floating_network")
        else:
            continue
        yield association, network, association.thing("port_id")


def _name(network: Thing) -> str:
    return network.resource if isinstance(network, Made) else network
