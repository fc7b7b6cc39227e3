"""The networks of a container: which of its interfaces come and go with an update."""

import ipaddress
import urllib.parse
from collections.abc import Collection, Mapping, Sequence

from ....shapes import Json, JsonMap
from ..service import RemoteNotFound, Service, objects_of

Entry = Mapping[str, str]
"""An entry of the property ``networks``, with ids in place of names, and without nulls."""


def body_of(entry: Entry) -> dict[str, Json]:
    """Return the entry as a creation takes it."""
    body: dict[str, Json] = {name: entry[name] for name in ("network", "port") if name in entry}
    if "fixed_ip" in entry:
        version = ipaddress.ip_address(entry["fixed_ip"]).version
        body[f"v{version}-fixed-ip"] = entry["fixed_ip"]
    return body


class Interfaces:
    """The interfaces of one container.

    :param service: calls of the container's service.
    :param container: the container's path.
    """

    def __init__(self, service: Service, container: str) -> None:
        self._service = service
        self._container = container

    def converge(
        self, former: Sequence[Entry], after: Sequence[Entry], requested: Collection[str]
    ) -> set[str] | None:
        """Detach and attach interfaces; return what is requested so far, None: nothing is left to do.

        An interface that no former entry names was attached by somebody else, and stays; where there were
        no entries, the service had chosen all of them.  The service takes one interface of a network, so
        others are attached when the ones that go have gone.

        :param requested: the values of earlier calls.  A request is not repeated: the service works on it.
        """
        present = objects_of(self._service.get(f"{self._container}/network_list"), "networks")
        leaving = [
            str(interface["port_id"])
            for interface in present
            if not _is_named(interface, after) and (not former or _is_named(interface, former))
        ]
        missing = [entry for entry in after if not any(_fits(interface, entry) for interface in present)]
        if not leaving and not missing:
            return None
        calls = set(requested)
        for port in leaving:
            self._request(calls, "network_detach", {"port": port})
        if not leaving:
            for entry in missing:
                self._request(calls, "network_attach", entry)
        return calls

    def _request(self, calls: set[str], action: str, values: Mapping[str, str]) -> None:
        """Send a request, unless it was sent before."""
        path = f"{self._container}/{action}?{urllib.parse.urlencode(values)}"
        if path in calls:
            return
        try:
            self._service.post(path, None)
        except RemoteNotFound:
            if action != "network_detach":
                raise
        calls.add(path)


def _is_named(interface: JsonMap, entries: Collection[Entry]) -> bool:
    return any(_fits(interface, entry) for entry in entries)


def _fits(interface: JsonMap, entry: Entry) -> bool:
    """Return whether an interface is the one that an entry names."""
    if "port" in entry:
        return bool(interface["port_id"] == entry["port"])
    addresses = [str(fixed_ip["ip_address"]) for fixed_ip in objects_of(interface, "fixed_ips")]
    is_right = "fixed_ip" not in entry or entry["fixed_ip"] in addresses
    return bool(interface["net_id"] == entry["network"]) and is_right
