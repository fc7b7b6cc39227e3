"""Ports and addresses of a server that is being replaced: its replacement gets what both cannot have."""

from collections.abc import Mapping, Sequence

from ...context import Json, ResourceView, StepContext
from ...errors import RetryableError
from ..service import ThingNotFound
from .calls import ServerCalls
from .networks import Nic, ServerInterface, pair
from .ports import ServerPorts, nics_of
from .states import SERVER_STATUS

WAITS = (0.2, 0.3, 0.5, 1.0, 1.0, 2.0, 2.0, 3.0, 5.0, 5.0, 10.0)
"""Seconds between two reads of a port that is being detached."""


class Replacement:
    """Calls that take interfaces from a server, and give them to it again."""

    def __init__(self, target: ResourceView, work: StepContext) -> None:
        self._work = work
        self._groups: Sequence[str] = target.properties["security_groups"] or ()
        self._ports = ServerPorts.of(target, work)
        self._calls = ServerCalls.of(target, work)
        entries = (target.previous or target.properties)["networks"]
        self._nics = nics_of(entries, work, strict=False)

    def prepare(self) -> None:
        """Detach the interfaces whose port or address the replacement needs; delete ports made for them."""
        try:
            is_broken = SERVER_STATUS.of(self._calls.get()) in SERVER_STATUS.bad
        except ThingNotFound:
            self._ports.delete_made()
            return
        interfaces = self._ports.interfaces(self._calls.id)
        needed = [interfaces_of for nic, interfaces_of in self._held(interfaces) if _is_exclusive(nic)]
        for interface in needed:
            if is_broken:  # The compute service detaches nothing from a server in this state.
                self._ports.release(interface.port)
            else:
                self._calls.detach(interface.port)
        for interface in needed:
            self._wait_until_free(interface.port)
            if interface.is_own:
                self._ports.delete(interface.port)

    def restore(self) -> None:
        """Attach what is missing of the interfaces, also where the replacement has it now."""
        held = dict(pair(self._nics, self._ports.interfaces(self._calls.id)))
        missing = [nic for place, nic in enumerate(self._nics) if place not in held and _is_exclusive(nic)]
        for nic in missing:
            for port in self._holders(nic):
                if port["device_id"]:
                    ServerCalls(self._calls.service, str(port["device_id"])).detach(str(port["id"]))
                    self._wait_until_free(str(port["id"]))
                if not nic.port:
                    self._ports.delete(str(port["id"]))
        for nic in self._ports.with_ports(missing, self._groups, all_need_one=True):
            self._calls.attach(str(nic.port), nic.tag)

    def _held(self, interfaces: Sequence[ServerInterface]) -> list[tuple[Nic, ServerInterface]]:
        return [(self._nics[place], item) for place, item in pair(self._nics, interfaces).items()]

    def _holders(self, nic: Nic) -> list[Mapping[str, Json]]:
        """Return the ports that have what an entry needs, and that this server or its replacement made."""
        if nic.port:
            port = self._ports.get(nic.port)
            return [port] if port["device_id"] not in ("", self._calls.id) else []
        network = nic.network or self._ports.network_of(str(nic.subnet))
        found = self._ports.service.list_all("/ports", "ports", network_id=network)
        ours = [port for port in found if str(port["name"]).startswith(self._ports.prefix)]
        mac = (nic.extras or {}).get("mac_address")
        return [
            port
            for port in ours
            if port["mac_address"] == mac
            or nic.fixed_ip in [item["ip_address"] for item in port["fixed_ips"]]
        ]

    def _wait_until_free(self, port: str) -> None:
        """Wait until a port belongs to no server.

        :raises RetryableError: it takes too long.
        """
        for seconds in WAITS:
            try:
                if not self._ports.get(port)["device_id"]:
                    return
            except ThingNotFound:
                return
            self._work.pause(seconds)
        raise RetryableError(f"port {port} is still attached to a server")


def _is_exclusive(nic: Nic) -> bool:
    """Return whether two servers cannot both have such an interface."""
    return bool(nic.port or nic.fixed_ip or (nic.extras or {}).get("mac_address"))
