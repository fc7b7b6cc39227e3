"""Floating IPs of a port that is being replaced: the service frees no address of a port that has one.

A tag at the floating IP says of which port and address it was, so that nothing has to be stored first.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence

from ....shapes import JsonMap
from ..marks import PREFIX
from ..service import RemoteNotFound, Service

PATH = "/floatingips"


class ReleasedAddresses:
    """The floating IPs that a port has, or had until room was made for its replacement.

    :param addresses: the port's fixed addresses, which count as those that it had.
    """

    def __init__(self, service: Service, port: str, addresses: Sequence[str]) -> None:
        self._service = service
        self._port = port
        self._addresses = addresses

    def release(self) -> bool:
        """Tag the port's floating IPs, and end their associations; return whether there were any."""
        floating_ips = self._list(port_id=self._port)
        for floating_ip in floating_ips:
            path = f"{PATH}/{floating_ip['id']}"
            self._service.put(f"{path}/tags/{self._tag(str(floating_ip['fixed_ip_address']))}", None)
            self._associate(floating_ip, None)
        return bool(floating_ips)

    def take_from(self, ports: Collection[str]) -> None:
        """End the associations of the released floating IPs with these ports."""
        for floating_ip, _ in self._released():
            if floating_ip["port_id"] in ports:
                self._associate(floating_ip, None)

    def give_to(self, port: str) -> None:
        """Associate the released floating IPs with a port, but for those that another has; untag all."""
        for floating_ip, address in self._released():
            if floating_ip["port_id"] is None:
                self._associate(floating_ip, port, address)
            with contextlib.suppress(RemoteNotFound):
                self._service.delete(f"{PATH}/{floating_ip['id']}/tags/{self._tag(address)}")

    def _released(self) -> Iterator[tuple[JsonMap, str]]:
        for address in self._addresses:
            for floating_ip in self._list(tags=self._tag(address)):
                yield floating_ip, address

    def _associate(self, floating_ip: JsonMap, port: str | None, address: str | None = None) -> None:
        body = {"port_id": port, **({"fixed_ip_address": address} if address else {})}
        self._service.put(f"{PATH}/{floating_ip['id']}", {"floatingip": body})

    def _list(self, **query: str) -> Sequence[JsonMap]:
        try:
            return self._service.list_all(PATH, "floatingips", **query)
        except RemoteNotFound:
            return ()  # The service has no routers.

    def _tag(self, address: str) -> str:
        return f"{PREFIX}{self._port}-{address}"
