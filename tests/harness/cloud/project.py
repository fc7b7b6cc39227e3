"""A project of a cloud: what is in it, and how all of it is removed."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping

from harness.cloud.rows import Rows
from openstack import exceptions
from openstack.connection import Connection

GONE_WITHIN = 300.0
"""Seconds for the deletion of all things of one kind."""
AGAIN = 0.5
"""Seconds after which a deletion that was refused is tried again."""
Delete = Callable[[Connection, str], object]


def _delete_router(connection: Connection, router: str) -> None:
    """Delete a router with its interfaces."""
    connection.network.update_router(router, routes=[])
    for port in connection.network.ports(device_id=router):
        if port.device_owner.startswith("network:router_interface"):
            connection.network.remove_interface_from_router(router, port_id=port.id)
    connection.network.delete_router(router)


DELETE: Mapping[str, Delete] = {
    "alarms": lambda c, key: c.alarm.delete(f"/alarms/{key}"),
    "load balancers": lambda c, key: c.load_balancer.delete_load_balancer(key, cascade=True),
    "servers": lambda c, key: c.compute.delete_server(key),
    "server groups": lambda c, key: c.compute.delete_server_group(key),
    "key pairs": lambda c, key: c.compute.delete_keypair(key),
    "backups": lambda c, key: c.block_storage.delete_backup(key),
    "snapshots": lambda c, key: c.block_storage.delete_snapshot(key),
    "volumes": lambda c, key: c.block_storage.delete_volume(key),
    "share snapshots": lambda c, key: c.shared_file_system.delete(f"/snapshots/{key}"),
    "shares": lambda c, key: c.shared_file_system.delete(f"/shares/{key}"),
    "share networks": lambda c, key: c.shared_file_system.delete(f"/share-networks/{key}"),
    "security services": lambda c, key: c.shared_file_system.delete(f"/security-services/{key}"),
    "images": lambda c, key: c.image.delete_image(key),
    "floating IPs": lambda c, key: c.network.delete_ip(key),
    "routers": _delete_router,
    "trunks": lambda c, key: c.network.delete_trunk(key),
    "ports": lambda c, key: c.network.delete_port(key),
    "subnets": lambda c, key: c.network.delete_subnet(key),
    "networks": lambda c, key: c.network.delete_network(key),
    "cron triggers": lambda c, key: c.workflow.delete_cron_trigger(key),
    "executions": lambda c, key: c.workflow.delete(f"/executions/{key}?force=true"),
    "workflows": lambda c, key: c.workflow.delete_workflow(key),
    "DNS zones": lambda c, key: c.dns.delete_zone(key),
    "subnet pools": lambda c, key: c.network.delete_subnet_pool(key),
    "address scopes": lambda c, key: c.network.delete_address_scope(key),
    "address groups": lambda c, key: c.network.delete_address_group(key),
    "security groups": lambda c, key: c.network.delete_security_group(key),
    "QoS policies": lambda c, key: c.network.delete_qos_policy(key),
}
"""How a thing of each kind is deleted, in the order in which that can be done."""
LIMITS: Mapping[str, Delete] = {
    "compute quotas": lambda c, project: c.compute.revert_quota_set(project),
    "volume quotas": lambda c, project: c.block_storage.revert_quota_set(project),
    "network quotas": lambda c, project: c.network.delete_quota(project),
}
"""How the operator takes back what differs from the limits of all projects."""


@dataclasses.dataclass(frozen=True)
class Project:
    """A project and its one user.

    :ivar name: the user's, too.
    :ivar connection: the user's: the independent witness of what is there.
    :ivar admin: the operator's.
    :ivar rows: rows of the cloud's databases, which hold all kinds of objects.
    """

    id: str
    name: str
    user_id: str
    connection: Connection
    admin: Connection
    rows: Rows

    @property
    def token(self) -> str:
        """A token of the user's for the project."""
        token: str = self.connection.session.get_token()
        return token

    def leftovers(self) -> dict[str, list[str]]:
        """All things in the project: kind -> names or ids; empty: nothing at all."""
        remaining = self._objects()
        return {kind: list(remaining[kind].values()) for kind in DELETE if kind in remaining}

    def clean(self) -> None:
        """Delete whatever is in it, and give it the limits of all projects.

        :raises TimeoutError: something stays.
        """
        remaining = self._objects()
        for kind, delete in DELETE.items():
            if kind in remaining:
                self._remove(kind, remaining[kind], delete)
                remaining = self._objects()
        for kind, revert in LIMITS.items():
            if kind in remaining:
                revert(self.admin, self.id)

    def _objects(self) -> dict[str, dict[str, str]]:
        return self.rows.of(self.id, self.user_id)

    def _remove(self, kind: str, objects: Mapping[str, str], delete: Delete) -> None:
        """Delete things of one kind; a deletion that is refused, as during a creation, is tried again."""
        end = time.monotonic() + GONE_WITHIN
        refused = self._delete(delete, objects)
        while remaining := self._objects().get(kind):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"these {kind} of {self.name} stay: {sorted(remaining.values())}: {refused}"
                )
            time.sleep(AGAIN if refused else 0.05)
            refused = self._delete(delete, [key for key in refused if key in remaining])

    def _delete(self, delete: Delete, keys: Iterable[str]) -> dict[str, str]:
        """Delete things; return those that are refused, with the reasons."""
        refused = {}
        for key in keys:
            try:
                self._delete_one(delete, key)
            except exceptions.HttpException as error:
                refused[key] = str(error)
        return refused

    def _delete_one(self, delete: Delete, key: str) -> None:
        try:
            delete(self.connection, key)
        except exceptions.NotFoundException:
            return  # It went with another one.
        except exceptions.HttpException:
            # The operator may delete what is shared, protected or in a strange state.
            with contextlib.suppress(exceptions.NotFoundException):
                delete(self.admin, key)
