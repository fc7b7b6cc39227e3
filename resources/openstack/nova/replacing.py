"""The ports, addresses and volumes of a server that its replacement needs: the two cannot both have them.

The compute service detaches any volume but the one that a server boots from.  So a server that boots from a
volume that its replacement names is deleted before the replacement is made; the volume stays.
"""

import contextlib
import functools
from collections.abc import Sequence

from ....shapes import JsonMap
from ...contract import PermanentError, Poll, ReplacementView, ReplaceNeeded, ResourceView, StepContext
from ..cinder.attachments import detach, ensure_attached
from ..marks import TagMark, mark_of, marked
from ..names import NameNotFound, resolve
from ..service import RemoteNotFound
from .compute import DELETING, SERVER_STATUS, TASK_STATE, ServerCalls
from .interfaces import MAC, Nic, ServerInterface, ServerPorts, nics_of, pair

AGAIN = Poll(progress={}, after=0.5)
"""An interface or a volume is being detached, or a server deleted: the step is called again."""
ATTACHED = "os-extended-volumes:volumes_attached"
FIRST = (None, 0)
"""Values of boot_index of the disk that a server boots from."""


class Replacement:
    """The release of what the replacement of a server needs, and its return."""

    def __init__(self, target: ResourceView, context: StepContext) -> None:
        self._target = target
        self._context = context
        self._calls = ServerCalls.of(target, context)

    def prepare(self) -> Poll | None:
        """Release volumes, ports and addresses; None: the replacement can be made.

        :raises PermanentError: a volume would be deleted with the server.
        """
        # A server that boots from a volume is deleted, and its ports are free then.
        return self._release_volumes() or self._release_interfaces()

    def restore(self) -> Poll | None:
        """Take volumes, ports and addresses again, also where the replacement has them now.

        :raises ReplaceNeeded: the server booted from one of the volumes, and is deleted.
        """
        return self._restore_volumes() or self._restore_interfaces()

    # -- ports and addresses -----------------------------------------------------------------------

    @functools.cached_property
    def _ports(self) -> ServerPorts:
        return ServerPorts.of(self._target, self._context)

    @functools.cached_property
    def _nics(self) -> Sequence[Nic]:
        entries = (self._target.previous or self._target.properties)["networks"]
        return nics_of(entries, self._context, strict=False)

    def _release_interfaces(self) -> Poll | None:
        """Detach the interfaces whose port or address the replacement needs; delete ports made for them."""
        server = _state(self._calls)
        if self._delete_failed(self._calls, server, self._nics):
            return AGAIN
        if server is not None and self._release(self._calls, server, self._exclusive()):
            return AGAIN
        self._ports.delete_marked(attached_to=self._calls.id)
        return None

    def _restore_interfaces(self) -> Poll | None:
        """Attach the missing interfaces."""
        interface_of = pair(self._nics, self._ports.interfaces(self._calls.id))
        missing = [
            index for index, nic in enumerate(self._nics) if index not in interface_of and _is_exclusive(nic)
        ]
        server = _state(self._calls)
        if not missing or server is None or SERVER_STATUS.of(server) in SERVER_STATUS.bad:
            return None
        replacement = self._context.replacement()
        if replacement is not None and self._take_from(replacement, [self._nics[index] for index in missing]):
            return AGAIN
        groups: Sequence[str] = self._target.properties["security_groups"] or ()
        nics = self._ports.with_ports(
            [self._nics[index] for index in missing], groups, all_need_one=True, places=missing
        )
        for nic in nics:
            self._calls.attach(str(nic.port), nic.tag)
        return None

    def _take_from(self, replacement: ReplacementView, missing: Sequence[Nic]) -> bool:
        """Take the missing interfaces from the replacement; return whether that is in progress."""
        ports = ServerPorts(self._target, self._context, mark_of(replacement.key))
        for calls in self._servers_of(replacement):
            server = _state(calls)
            if self._delete_failed(calls, server, missing):
                return True
            clashing = [item for item in ports.interfaces(calls.id) if _clashes(item, missing)]
            if server is not None and self._release(calls, server, clashing):
                return True
        for port in ports.marked_ports():
            if not port["device_id"]:
                ports.delete(str(port["id"]))
        return False

    def _delete_failed(self, calls: ServerCalls, server: JsonMap | None, nics: Sequence[Nic]) -> bool:
        """Delete a server in a bad state which has had a port that another one needs.

        The compute service detaches nothing from such a server, and lets no other one have the port while
        the server exists, even where the network service says that nobody uses the port.

        :param server: the server as the service shows it; None: it is gone.
        :returns: whether the deletion is in progress.
        """
        if server is None or SERVER_STATUS.of(server) not in SERVER_STATUS.bad:
            return False
        if not any(nic.port for nic in nics):
            return False
        _delete(calls, server)
        return True

    def _exclusive(self) -> list[ServerInterface]:
        """Return the interfaces that the server and its replacement cannot both have."""
        interface_of = pair(self._nics, self._ports.interfaces(self._calls.id))
        return [interface for index, interface in interface_of.items() if _is_exclusive(self._nics[index])]

    def _release(self, calls: ServerCalls, server: JsonMap, interfaces: Sequence[ServerInterface]) -> bool:
        """Detach interfaces from a server; return whether that is in progress."""
        is_left = SERVER_STATUS.of(server) in (*SERVER_STATUS.bad, *SERVER_STATUS.deleted)
        for interface in interfaces:
            if is_left or not _is_known(interface, server):
                # The compute service would detach nothing.
                self._ports.release(interface.port)
            else:
                calls.detach_within(interface.port, self._context)
        return bool(interfaces)

    # -- volumes -----------------------------------------------------------------------------------

    def _release_volumes(self) -> Poll | None:
        """Detach the volumes that the replacement names, too; delete a server that boots from one."""
        needed = self._named(self._target.properties)
        server = _undeleted(self._calls) if needed else None
        volumes = _volumes(server) & needed.keys()
        if server is None or not volumes:
            return None
        entries = self._named(self._target.previous or self._target.properties)
        booted = [volume for volume in sorted(volumes) if volume in entries and _is_first(entries[volume])]
        if not booted and SERVER_STATUS.of(server) not in SERVER_STATUS.bad:
            for volume in sorted(volumes):
                detach(self._context, self._calls.id, volume)
            return AGAIN
        for volume in volumes & entries.keys():
            if entries[volume].get("delete_on_termination"):
                text = f"The volume {volume} would be deleted with the server that is to be replaced"
                raise PermanentError(f"{text}: set its delete_on_termination to false first", kind="Error")
        _delete(self._calls, server)
        return AGAIN

    def _restore_volumes(self) -> Poll | None:
        """Attach the volumes again."""
        volumes = self._named(self._target.properties).keys()
        if not volumes:
            return None
        replacement = self._context.replacement()
        for calls in () if replacement is None else self._servers_of(replacement):
            other = _undeleted(calls)
            if other is not None and _volumes(other) & volumes:
                _delete(calls, other)
                return AGAIN
        server = _undeleted(self._calls)
        if server is None:
            raise ReplaceNeeded
        for volume in sorted(volumes - _volumes(server)):
            ensure_attached(self._context, self._calls.id, volume, None)
        return None

    def _named(self, properties: JsonMap) -> dict[str, JsonMap]:
        """Return the entries with volumes that a server has by name or id, by these ids."""
        entries: dict[str, JsonMap] = {}
        for name in ("block_device_mapping", "block_device_mapping_v2"):
            for entry in properties.get(name) or ():
                if entry.get("volume_id"):
                    with contextlib.suppress(NameNotFound):  # It is gone.
                        entries[resolve(self._context, "cinder.volume", entry["volume_id"])] = entry
        return entries

    def _servers_of(self, replacement: ReplacementView) -> Sequence[ServerCalls]:
        """Return the servers of the replacement: that of its row, and others that a lost step has made."""
        service = self._calls.service
        ids = {*marked(TagMark(), mark_of(replacement.key), service, "/servers/detail", "servers")}
        ids |= {replacement.physical_id} if replacement.physical_id else set()
        return [ServerCalls(service, server) for server in sorted(ids)]


def _state(calls: ServerCalls) -> JsonMap | None:
    """Return a server; None: it is gone."""
    try:
        return calls.get()
    except RemoteNotFound:
        return None


def _undeleted(calls: ServerCalls) -> JsonMap | None:
    """Return a server, unless it is gone, or kept for a while after its deletion."""
    server = _state(calls)
    return None if server is None or SERVER_STATUS.of(server) in SERVER_STATUS.deleted else server


def _delete(calls: ServerCalls, server: JsonMap) -> None:
    """Begin to delete a server, unless that has begun."""
    if server.get(TASK_STATE) not in DELETING:
        calls.delete()


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


def _is_first(entry: JsonMap) -> bool:
    """Return whether a server boots from the disk; entries of the older form have no index."""
    return entry["boot_index"] in FIRST if "boot_index" in entry else entry.get("device_name") == "vda"


def _volumes(server: JsonMap | None) -> set[str]:
    return {str(item["id"]) for item in (server or {}).get(ATTACHED) or ()}
