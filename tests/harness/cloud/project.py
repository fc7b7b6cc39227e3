"""A project of a cloud: what is in it, and how all of it is removed."""

import dataclasses
import time
import typing
from collections.abc import Callable, Iterable, Mapping

from openstack import exceptions
from openstack.connection import Connection

GONE_WITHIN = 120.0
"""Seconds for the deletion of all things of one kind."""
Thing = typing.Any
List = Callable[[Connection, str], Iterable[Thing]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of things.

    :ivar all: those of a project, asked for with its own connection.
    :ivar delete: deletes one, with the connection of the project's.
    """

    all: List
    delete: Callable[[Connection, Thing], object]


def _routers(connection: Connection, router: Thing) -> None:
    """Delete a router with its interfaces."""
    connection.network.update_router(router, routes=[])
    for port in connection.network.ports(device_id=router.id):
        if port.device_owner.startswith("network:router_interface"):
            connection.network.remove_interface_from_router(router, port_id=port.id)
    connection.network.delete_router(router)


def _own(list_of: Callable[[Connection], Callable[..., Iterable[Thing]]]) -> List:
    return lambda connection, project: list_of(connection)(project_id=project)


KINDS: Mapping[str, Kind] = {
    "servers": Kind(lambda c, _: c.compute.servers(details=False), lambda c, t: c.compute.delete_server(t)),
    "server groups": Kind(
        lambda c, _: c.compute.server_groups(), lambda c, t: c.compute.delete_server_group(t)
    ),
    "key pairs": Kind(lambda c, _: c.compute.keypairs(), lambda c, t: c.compute.delete_keypair(t)),
    "backups": Kind(
        lambda c, _: c.block_storage.backups(details=False), lambda c, t: c.block_storage.delete_backup(t)
    ),
    "snapshots": Kind(
        lambda c, _: c.block_storage.snapshots(details=False), lambda c, t: c.block_storage.delete_snapshot(t)
    ),
    "volumes": Kind(
        lambda c, _: c.block_storage.volumes(details=False), lambda c, t: c.block_storage.delete_volume(t)
    ),
    "images": Kind(lambda c, project: c.image.images(owner=project), lambda c, t: c.image.delete_image(t)),
    "floating IPs": Kind(_own(lambda c: c.network.ips), lambda c, t: c.network.delete_ip(t)),
    "routers": Kind(_own(lambda c: c.network.routers), _routers),
    "trunks": Kind(_own(lambda c: c.network.trunks), lambda c, t: c.network.delete_trunk(t)),
    "ports": Kind(_own(lambda c: c.network.ports), lambda c, t: c.network.delete_port(t)),
    "subnets": Kind(_own(lambda c: c.network.subnets), lambda c, t: c.network.delete_subnet(t)),
    "networks": Kind(_own(lambda c: c.network.networks), lambda c, t: c.network.delete_network(t)),
    "subnet pools": Kind(
        _own(lambda c: c.network.subnet_pools), lambda c, t: c.network.delete_subnet_pool(t)
    ),
    "address scopes": Kind(
        _own(lambda c: c.network.address_scopes), lambda c, t: c.network.delete_address_scope(t)
    ),
    "security groups": Kind(
        lambda c, project: (
            group for group in c.network.security_groups(project_id=project) if group.name != "default"
        ),
        lambda c, t: c.network.delete_security_group(t),
    ),
    "QoS policies": Kind(_own(lambda c: c.network.qos_policies), lambda c, t: c.network.delete_qos_policy(t)),
}
"""In the order in which they can be deleted."""


@dataclasses.dataclass(frozen=True)
class Project:
    """A project and its one user.

    :ivar name: the user's, too.
    :ivar connection: the user's: the independent witness of what is there.
    :ivar admin: the operator's.
    """

    id: str
    name: str
    user_id: str
    connection: Connection
    admin: Connection

    @property
    def token(self) -> str:
        """A token of the user's for the project."""
        found: str = self.connection.session.get_token()
        return found

    def leftovers(self) -> dict[str, list[str]]:
        """What is in the project, service by service: kind -> names or ids; empty: nothing at all."""
        found = {name: [_called(thing) for thing in self._all(kind)] for name, kind in KINDS.items()}
        return {name: things for name, things in found.items() if things}

    def clean(self) -> None:
        """Delete whatever is in it.

        :raises TimeoutError: something stays.
        """
        for name, kind in KINDS.items():
            for thing in self._all(kind):
                self._delete(kind, thing)
            end = time.monotonic() + GONE_WITHIN
            while left := self._all(kind):
                if time.monotonic() > end:
                    raise TimeoutError(
                        f"these {name} of {self.name} stay: {[_called(thing) for thing in left]}"
                    )
                time.sleep(0.2)
        for group in self.connection.network.security_groups(project_id=self.id):
            self.admin.network.delete_security_group(group)

    def _all(self, kind: Kind) -> list[Thing]:
        return list(kind.all(self.connection, self.id))

    def _delete(self, kind: Kind, thing: Thing) -> None:
        try:
            kind.delete(self.connection, thing)
        except exceptions.NotFoundException:
            return  # It went with another one.
        except exceptions.HttpException:
            # The operator may delete what is shared, protected or in a strange state.
            kind.delete(self.admin, thing)


def _called(thing: Thing) -> str:
    return str(getattr(thing, "name", None) or thing.id)
