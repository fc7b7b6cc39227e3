"""The network interfaces of a server: how an update gets from those it has to those of its property.

Pure: names are ids already.  The algorithm is Heat's.  An entry of the property keeps the interface that it
fits to; what is left over is detached and attached.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...contract.views import Json

FIXED_EXTRAS = ("mac_address", "no_fixed_ips")
"""Extra properties of a port that an update of the port cannot change."""


@dataclass(frozen=True)
class Nic:
    """An entry of the property ``networks``; None is not given.

    :ivar extras: extra properties of the port that is made for it.
    """

    network: str | None = None
    port: str | None = None
    subnet: str | None = None
    fixed_ip: str | None = None
    floating_ip: str | None = None
    tag: str | None = None
    extras: Mapping[str, Json] | None = None

    @property
    def needs_port(self) -> bool:
        """True if the compute service cannot make its port."""
        return not self.port and bool(self.subnet or self.extras is not None)

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """Place in the order of choice: who asks for most, chooses first."""
        return (not self.port, not self.fixed_ip, not self.subnet, not self.network)


@dataclass(frozen=True)
class ServerInterface:
    """An interface that a server has.

    :ivar fixed_ips: pairs of subnet and address.
    :ivar is_own: its port was made for this server, and is deleted with it.
    """

    port: str
    network: str
    mac: str
    fixed_ips: Sequence[Sequence[str]]
    is_own: bool


@dataclass(frozen=True)
class InterfaceChanges:
    """The way from one set of interfaces to another.

    :ivar detach: each with its entry of the former property, if it has one.
    :ivar kept: each with its former and its new entry.
    """

    detach: Sequence[tuple[ServerInterface, Nic | None]] = ()
    attach: Sequence[Nic] = ()
    kept: Sequence[tuple[ServerInterface, Nic | None, Nic]] = ()


Accepts = Callable[[Nic, ServerInterface], bool]


def fits(nic: Nic, interface: ServerInterface) -> bool:
    """Return whether an interface is as an entry says, as far as it says."""
    if not (nic.port or nic.fixed_ip or nic.subnet or nic.network):
        return False
    subnets = [subnet for subnet, _ in interface.fixed_ips]
    addresses = [address for _, address in interface.fixed_ips]
    return (
        nic.port in (None, interface.port)
        and nic.network in (None, interface.network)
        and (nic.subnet is None or nic.subnet in subnets)
        and (nic.fixed_ip is None or nic.fixed_ip in addresses)
    )


def pair(
    nics: Sequence[Nic], interfaces: Sequence[ServerInterface], accepts: Accepts = fits
) -> dict[int, ServerInterface]:
    """Return the interface of each entry, by the entry's place; entries without one are absent."""
    free = list(interfaces)
    pairs = {}
    for place in sorted(range(len(nics)), key=lambda place: nics[place].rank):
        chosen = next((item for item in free if accepts(nics[place], item)), None)
        if chosen is not None:
            pairs[place] = chosen
            free.remove(chosen)
    return pairs


def interface_changes(
    old: Sequence[Nic], new: Sequence[Nic], interfaces: Sequence[ServerInterface]
) -> InterfaceChanges:
    """Return how the interfaces become those of the new property.

    Interfaces that somebody else has attached stay.  Where the old property is empty the compute service
    has chosen the network, so all interfaces are the server's own.
    """
    paired = pair(old, interfaces)
    before = {interface.port: old[place] for place, interface in paired.items()}
    own_interfaces = [item for item in interfaces if item.port in before or item.is_own or not old]

    def may_have(nic: Nic, interface: ServerInterface) -> bool:
        # A port that the former entry names may be deleted when no entry names it any more.
        former = before.get(interface.port)
        return fits(nic, interface) and (former is None or not former.port or bool(nic.port))

    def stays(nic: Nic, interface: ServerInterface) -> bool:
        return may_have(nic, interface) and _rest(nic) == _rest(before.get(interface.port))

    def may_become(nic: Nic, interface: ServerInterface) -> bool:
        return may_have(nic, interface) and _can_change(before.get(interface.port), nic, interface)

    chosen = pair(new, own_interfaces, stays)
    left = [place for place in range(len(new)) if place not in chosen]
    free = [item for item in own_interfaces if item not in chosen.values()]
    others = pair([new[place] for place in left], free, may_become)
    chosen |= {left[place]: interface for place, interface in others.items()}
    return InterfaceChanges(
        detach=[(item, before.get(item.port)) for item in own_interfaces if item not in chosen.values()],
        attach=[nic for place, nic in enumerate(new) if place not in chosen],
        kept=[(item, before.get(item.port), new[place]) for place, item in sorted(chosen.items())],
    )


def _rest(nic: Nic | None) -> tuple[str | None, str | None, Json]:
    return (nic.floating_ip, nic.tag, nic.extras) if nic is not None else (None, None, None)


def _can_change(before: Nic | None, after: Nic, interface: ServerInterface) -> bool:
    """Return whether the interface of an entry can stay where other things of the entry have changed."""
    former = before if before is not None else Nic()
    if former.tag != after.tag:
        return False
    if former.extras == after.extras:
        return True
    if after.extras is None or not interface.is_own:
        return False
    had = former.extras or {}
    return all(had.get(name) == after.extras.get(name) for name in FIXED_EXTRAS)
