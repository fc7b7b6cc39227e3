"""Ports and addresses of a server that is being replaced: they go to the replacement."""

from collections.abc import Sequence

from ....shapes import JsonMap
from ...contract import Poll, ReplacementView, ResourceView, StepContext
from ..marks import TagMark, mark_of, marked
from ..service import RemoteNotFound
from .compute import DELETING, SERVER_STATUS, TASK_STATE, ServerCalls
from .interfaces import MAC, Nic, ServerInterface, ServerPorts, nics_of, pair

AGAIN = Poll(progress={}, after=0.5)
"""An interface is being detached: the step is called again."""


class Replacement:
    """The release of interfaces of a server, and their return."""

    def __init__(self, target: ResourceView, context: StepContext) -> None:
        self._target = target
        self._context = context
        self._ports = ServerPorts.of(target, context)
        self._calls = ServerCalls.of(target, context)
        self._groups: Sequence[str] = target.properties["security_groups"] or ()
        entries = (target.previous or target.properties)["networks"]
        self._nics = nics_of(entries, context, strict=False)

    def prepare(self) -> Poll | None:
        """Detach the interfaces whose port or address the replacement needs; delete ports made for them."""
        if self._delete_failed(self._calls, self._nics):
            return AGAIN
        if self._release(self._calls, self._exclusive()):
            return AGAIN
        self._ports.delete_marked(attached_to=self._calls.id)
        return None

    def restore(self) -> Poll | None:
        """Attach the missing interfaces, also where the replacement has it now."""
        held = pair(self._nics, self._ports.interfaces(self._calls.id))
        missing = [place for place, nic in enumerate(self._nics) if place not in held and _is_exclusive(nic)]
        server = self._state(self._calls)
        if not missing or server is None or SERVER_STATUS.of(server) in SERVER_STATUS.bad:
            return None
        replacement = self._context.replacement()
        if replacement is not None and self._take_from(replacement, [self._nics[place] for place in missing]):
            return AGAIN
        nics = self._ports.with_ports(
            [self._nics[place] for place in missing], self._groups, all_need_one=True, places=missing
        )
        for nic in nics:
            self._calls.attach(str(nic.port), nic.tag)
        return None

    def _take_from(self, replacement: ReplacementView, missing: Sequence[Nic]) -> bool:
        """Take the missing interfaces from the replacement; return whether that is in progress."""
        mark = mark_of(replacement.key)
        ports = ServerPorts(self._target, self._context, mark)
        ids = marked(TagMark(), mark, self._calls.service, "/servers/detail", "servers")
        for server in {*ids, *([replacement.physical_id] if replacement.physical_id else [])}:
            calls = ServerCalls(self._calls.service, server)
            if self._delete_failed(calls, missing):
                return True
            clashing = [item for item in ports.interfaces(server) if _clashes(item, missing)]
            if self._release(calls, clashing):
                return True
        for port in ports.marked_ports():
            if not port["device_id"]:
                ports.delete(str(port["id"]))
        return False

    def _delete_failed(self, calls: ServerCalls, nics: Sequence[Nic]) -> bool:
        """Delete a server in a bad state which has had a port that another one needs.

        The compute service detaches nothing from such a server, and lets no other one have the port while
        the server exists, even where the network service says that nobody uses the port.

        :returns: whether the deletion is in progress.
        """
        server = self._state(calls)
        if server is None or SERVER_STATUS.of(server) not in SERVER_STATUS.bad:
            return False
        if not any(nic.port for nic in nics):
            return False
        if server.get(TASK_STATE) not in DELETING:
            calls.delete()
        return True

    def _exclusive(self) -> list[ServerInterface]:
        """Return the interfaces that the server and its replacement cannot both have."""
        held = pair(self._nics, self._ports.interfaces(self._calls.id))
        return [interface for place, interface in held.items() if _is_exclusive(self._nics[place])]

    def _release(self, calls: ServerCalls, interfaces: Sequence[ServerInterface]) -> bool:
        """Detach interfaces from a server; return whether that is in progress."""
        server = self._state(calls)
        if server is None or not interfaces:
            return False
        is_left = SERVER_STATUS.of(server) in (*SERVER_STATUS.bad, *SERVER_STATUS.deleted)
        for interface in interfaces:
            if is_left or not _is_known(interface, server):
                # The compute service would detach nothing.
                self._ports.release(interface.port)
            else:
                calls.detach(interface.port)
        return True

    def _state(self, calls: ServerCalls) -> JsonMap | None:
        try:
            return calls.get()
        except RemoteNotFound:
            return None


def _is_known(interface: ServerInterface, server: JsonMap) -> bool:
    """Return whether the compute service knows of the interface; not where its attachment failed halfway."""
    addresses = [item for network in server["addresses"].values() for item in network]
    # Only addresses are listed there: of an interface without one nothing is known.
    return not interface.fixed_ips or any(interface.mac == item.get(MAC) for item in addresses)


def _is_exclusive(nic: Nic) -> bool:
    """Return whether two servers cannot both have such an interface."""
    return bool(nic.port or nic.fixed_ip or (nic.extras or {}).get("mac_address"))


def _clashes(interface: ServerInterface, nics: Sequence[Nic]) -> bool:
    """Return whether an interface has what one of the entries needs for itself."""
    addresses = {address for _, address in interface.fixed_ips}
    return any(
        nic.port == interface.port
        or nic.fixed_ip in addresses
        or interface.mac == (nic.extras or {}).get("mac_address")
        for nic in nics
    )
