"""Rules for what a new network of the template lacks, and somebody needs; pure.

A network lacks something for certain only if nobody else can give it that: a user, a nested stack, or a
resource of a type that these rules do not know.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from ...contract import BrokenRule, KnownResource, KnownStack, Made, Thing
from .network_rules import FLOATING_IP, PORT, ROUTER, SERVER, SUBNET
from .schema import is_overridden

NET = "OS::Neutron::Net"
PROVIDER_NET = "OS::Neutron::ProviderNet"
_GIVE_NOTHING = frozenset(
    {
        *(NET, PROVIDER_NET, PORT, ROUTER, FLOATING_IP),
        *("OS::Neutron::FloatingIPAssociation", "OS::Neutron::RouterInterface"),
        *("OS::Neutron::SecurityGroup", "OS::Neutron::SecurityGroupRule"),
    }
)
"""Types of the network service that give no network a subnet, and make none external."""
_ELSEWHERE = frozenset({"alarm", "block-storage", "compute", "dns", "identity", "image", "key-manager"})
"""Services whose things leave networks as they are."""


@dataclass(frozen=True)
class _Networks:
    """The networks of a new stack that are just what the template says."""

    stack: KnownStack

    def closed(self, thing: Thing | None) -> KnownResource | None:
        """Return the resource of a network; None: none makes it, or others may give it something."""
        network = self.stack.made(thing)
        if network is None or network.type not in (NET, PROVIDER_NET) or not self.stack.is_new:
            return None
        # A network with a name of its own may be named by its text anywhere.
        is_named = "name" not in network.values or network.values["name"] is not None
        if network.name in self._reached or (is_named and self._others):
            return None
        return network

    def has_subnet(self, network: KnownResource) -> bool:
        """Return whether the template gives a network a subnet."""
        return network.name in self._with_subnets

    @functools.cached_property
    def _others(self) -> list[KnownResource]:
        """Return the resources of which it is not known what they give to which network."""
        return [resource for resource in self.stack.resources.values() if not _is_plain(resource)]

    @functools.cached_property
    def _reached(self) -> set[str]:
        """Return the resources that the others refer to, through any number of resources."""
        reached: set[str] = set()
        unread = self._others[:]
        while unread:
            for reference in unread.pop().references:
                name = reference.resource
                if name not in reached and name in self.stack.resources:
                    reached.add(name)
                    unread.append(self.stack.resources[name])
        return reached

    @functools.cached_property
    def _with_subnets(self) -> set[str]:
        things = [subnet.thing("network") for subnet in self.stack.of_type(SUBNET)]
        return {thing.resource for thing in things if isinstance(thing, Made)}


def _is_plain(resource: KnownResource) -> bool:
    if resource.type == SUBNET:
        is_clear = isinstance(resource.thing("network"), Made)
        return is_clear and not is_overridden(resource.values, "network_id")
    return resource.service in _ELSEWHERE or resource.type in _GIVE_NOTHING


def networks_not_external(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the floating IPs and the gateways of routers in networks that are not external."""
    networks = _Networks(stack)
    for floating in stack.of_type(FLOATING_IP):
        network = networks.closed(floating.thing("floating_network"))
        if network is None or is_overridden(floating.values, "floating_network_id"):
            continue
        path = ("floating_network",)
        if _is_inner(network):
            yield BrokenRule(floating.name, _not_external(network), path)
        elif not networks.has_subnet(network):
            text = f"the network {network.name} has no subnet, which floating IPs need: add one of IPv4"
            yield BrokenRule(floating.name, text, path)
    for router in stack.of_type(ROUTER):
        network = networks.closed(router.thing("external_gateway_info", "network"))
        is_own = not is_overridden(router.values, "external_gateway_info")
        if network is not None and is_own and _is_inner(network):
            yield BrokenRule(router.name, _not_external(network), ("external_gateway_info", "network"))


def networks_without_subnets(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the addresses of ports, and the interfaces of servers, in networks without subnets.

    A port without an address may be in such a network, and a server may have that port.
    """
    networks = _Networks(stack)
    for port in stack.of_type(PORT):
        network = networks.closed(port.thing("network"))
        if network is None or networks.has_subnet(network):
            continue
        if port.values.get("fixed_ips") and not is_overridden(port.values, "network_id", "fixed_ips"):
            yield BrokenRule(port.name, _no_subnet(network), ("fixed_ips",))
    for server in stack.of_type(SERVER):
        for index, entry in enumerate(server.values.get("networks") or ()):
            network = networks.closed(server.thing("networks", index, "network"))
            if network is None or networks.has_subnet(network):
                continue
            if all(name in entry and entry[name] is None for name in ("port", "port_extra_properties")):
                yield BrokenRule(server.name, _no_subnet(network), ("networks", index, "network"))


def _is_inner(network: KnownResource) -> bool:
    """Return whether a network is certain not to be external."""
    if network.type == PROVIDER_NET:
        return network.values.get("router_external") is False
    return not is_overridden(network.values, "router:external")


def _not_external(network: KnownResource) -> str:
    hint = "use an external one; administrators make one by router_external of OS::Neutron::ProviderNet"
    return f"the network {network.name} is not external: {hint}"


def _no_subnet(network: KnownResource) -> str:
    return f"the network {network.name} has no subnet to take an address from: add an {SUBNET}"


LACKING_RULES = (networks_not_external, networks_without_subnets)
