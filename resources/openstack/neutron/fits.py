"""Rules for addresses and networks that the cloud would refuse as it is now; pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....shapes import Json, JsonMap
from ...contract import Certainty, CloudFacts, KnownResource, Made, Members, Misfit, PlannedStack, Thing
from ..lists import named
from .addresses import Address, address_of, is_host, network_of
from .lacking_rules import NET
from .network_rules import FLOATING_IP, PORT, ROUTER, SERVER, SUBNET, AddressClaim, address_claims
from .schema import is_overridden

POLICY = "OS::Neutron::RBACPolicy"
VPC_SUBNET = "AWS::EC2::Subnet"
NEW_NETWORK = "Use an external network: `openstack network list --external` shows them."


def addresses_outside(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the addresses that no subnet of their network has; the network exists."""
    if _may_add_subnets(stack):
        return
    for claim, network in _claims_in_networks(stack, cloud):
        if not _is_subnet_known(claim):
            continue  # Another resource, or the stack around this one, names it.
        subnets = cloud.members("network", "/subnets", "subnets") or Members()
        seen = subnets.where("network_id", str(network["id"]))
        if not {subnet.get("id") for subnet in seen}.issuperset(network.get("subnets") or ()):
            continue  # Others' subnets of an external network, for one.
        ranges = [network_of(subnet.get("cidr")) for subnet in seen]
        known = [cidr for cidr in ranges if cidr is not None]
        # A network without a subnet may get one.
        same = [cidr for cidr in known if cidr.version == claim.address.version]
        if same and not any(is_host(claim.address, cidr) for cidr in same):
            texts = ", ".join(map(str, same))
            yield Misfit(
                claim.resource.name,
                f"{claim.address} is not an address of the subnets of the network "
                f"{network.get('name')}: {texts}",
                claim.path,
                str(claim.address),
                texts,
                "Use an address of a subnet, or leave it out.",
            )


def addresses_in_use(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the addresses that a port, or a floating IP, has already."""
    owners: dict[tuple[str, Address], _Owner] | None = None
    for claim, network in _claims_in_networks(stack, cloud):
        if claim.resource.name not in stack.created:
            continue  # The thing that it replaces may have it, and makes room.
        if owners is None:
            owners = _owners(cloud)
        if owner := owners.get((str(network.get("id")), claim.address)):
            yield Misfit(
                claim.resource.name,
                # Without the owner's id: the message is a part of the stack's reason, which others may read.
                f"{claim.address} is in use",
                claim.path,
                str(claim.address),
                f"in use by {owner.text}",
                "Use another address, or leave it out.",
                stack.of_taken(*owner.ids),
            )


def networks_that_are_not_external(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the floating IPs and gateways in networks that exist and are not external."""
    if stack.may_change_elsewhere(POLICY) or any(stack.known.of_type(POLICY)):
        return  # It may make the network external.
    for resource, path, field in _external(stack):
        value = resource.thing(*path)
        if not isinstance(value, str) or is_overridden(resource.values, field):
            continue
        network = _of_others(value, stack, cloud)
        if network is not None and network.get("router:external") is False:
            yield Misfit(
                resource.name,
                f"the network {value} is not external",
                path,
                "external",
                "internal",
                NEW_NETWORK,
            )


def groups_without_port_security(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the security groups for new ports in networks without port security.

    A port may say otherwise; one that says nothing is as its network.
    """
    for resource, path, network in _protected(stack):
        if _is_insecure(network, stack, cloud):
            yield Misfit(
                resource.name,
                f"{path[0]} need port security, which the network has disabled",
                path,
                advice="Leave them out, or set port_security_enabled of the port or of the network to true.",
            )


def networks_that_have_no_subnet(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the networks of servers that exist and have no subnet to take an address from."""
    if _may_add_subnets(stack):
        return
    for server in stack.new_of_type(SERVER):
        for index, entry in enumerate(server.values.get("networks") or ()):
            value = server.thing("networks", index, "network")
            if not isinstance(value, str) or not _gets_plain_port(entry):
                continue
            network = named(_networks(cloud), value)
            if network is not None and network.get("subnets") == []:
                yield Misfit(
                    server.name,
                    f"the network {value} has no subnet to take an address from",
                    ("networks", index, "network"),
                    "a subnet",
                    "none",
                    f"Use another network, or add an {SUBNET}.",
                    # Others may add one until then.
                    Certainty.LIKELY,
                )


def _may_add_subnets(stack: PlannedStack) -> bool:
    """Return whether the action may add subnets to networks that exist."""
    return stack.may_change_elsewhere(SUBNET, VPC_SUBNET) or any(
        not stack.makes(subnet.thing("network")) for subnet in stack.new_of_type(SUBNET)
    )


def _gets_plain_port(entry: JsonMap) -> bool:
    """Return whether the compute service makes the port of an entry of a server's networks."""
    return all(entry.get(name, "unknown") is None for name in ("port", "port_extra_properties"))


def _protected(stack: PlannedStack) -> Iterator[tuple[KnownResource, tuple[str, ...], Thing | None]]:
    for port in stack.new_of_type(PORT):
        values = port.values
        overrides = ("network_id", "port_security_enabled", "security_groups", "allowed_address_pairs")
        if is_overridden(values, *overrides) or values.get("port_security_enabled", "unknown") is not None:
            continue
        for name in ("security_groups", "allowed_address_pairs"):
            if values.get(name):
                yield port, (name,), port.thing("network")
    for server in stack.new_of_type(SERVER):
        # The compute service takes the name of the group that each port gets anyway for none.
        if any(group != "default" for group in server.values.get("security_groups") or ()):
            for index, entry in enumerate(server.values.get("networks") or ()):
                if _gets_plain_port(entry):
                    yield server, ("security_groups",), server.thing("networks", index, "network")


def _is_insecure(network: Thing | None, stack: PlannedStack, cloud: CloudFacts) -> bool:
    if isinstance(network, Made):
        net = stack.made(network)
        values = {} if net is None or net.type != NET else net.values
        is_own = not is_overridden(values, "port_security_enabled")
        return is_own and values.get("port_security_enabled") is False
    entry = _of_others(network, stack, cloud)
    return entry is not None and entry.get("port_security_enabled") is False


def _external(stack: PlannedStack) -> Iterator[tuple[KnownResource, tuple[str, ...], str]]:
    for floating in stack.new_of_type(FLOATING_IP):
        yield floating, ("floating_network",), "floating_network_id"
    for router in stack.new_of_type(ROUTER):
        yield router, ("external_gateway_info", "network"), "external_gateway_info"


def _claims_in_networks(stack: PlannedStack, cloud: CloudFacts) -> Iterator[tuple[AddressClaim, JsonMap]]:
    """Yield the addresses that new things shall have in networks that exist, each with its network."""
    for claim in address_claims(stack.known):
        if claim.resource.name in stack.new and isinstance(claim.network, str):
            network = named(_networks(cloud), claim.network)
            if network is not None:
                yield claim, network


def _is_subnet_known(claim: AddressClaim) -> bool:
    """Return whether an address is of a subnet that exists, or of no certain one."""
    entry: Json = claim.resource.values
    for part in claim.path[:-1]:
        entry = entry[part]
    return isinstance(claim.subnet, str) or any(name in entry for name in ("subnet", "floating_subnet"))


def _networks(cloud: CloudFacts) -> Members | None:
    return cloud.members("network", "/networks", "networks")


def _of_others(network: Thing | None, stack: PlannedStack, cloud: CloudFacts) -> JsonMap | None:
    """Return a network that exists; None: it is not known, or the stack's own, which an update may change."""
    entry = named(_networks(cloud), network)
    return entry if entry is not None and str(entry.get("id")) not in stack.own else None


@dataclass(frozen=True)
class _Owner:
    """The user of an address.

    :ivar ids: its id, and that of the server or router that has it.
    """

    text: str
    ids: tuple[str, ...]


def _owners(cloud: CloudFacts) -> dict[tuple[str, Address], _Owner]:
    """Return the users of addresses, by network and address, as far as the caller sees them."""
    owners: dict[tuple[str, Address], _Owner] = {}
    for port in cloud.members("network", "/ports", "ports") or ():
        for entry in port.get("fixed_ips") or ():
            address = address_of(entry.get("ip_address"))
            if address is not None:
                ids = (str(port.get("id")), str(port.get("device_id")))
                owners[str(port.get("network_id")), address] = _Owner(f"the port {ids[0]}", ids)
    for floating in cloud.members("network", "/floatingips", "floatingips") or ():
        address = address_of(floating.get("floating_ip_address"))
        if address is not None:
            key = (str(floating.get("floating_network_id")), address)
            owners[key] = _Owner(f"the floating IP {floating.get('id')}", (str(floating.get("id")),))
    return owners


NETWORK_FITS = (
    addresses_outside,
    addresses_in_use,
    networks_that_are_not_external,
    networks_that_have_no_subnet,
    groups_without_port_security,
)
