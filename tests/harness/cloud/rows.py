"""Things of a project as the services' databases have them: one query in place of a list for each kind."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import sqlalchemy


@dataclasses.dataclass(frozen=True)
class Table:
    """The table of one kind of things.

    :ivar name: name of the table with its database.
    :ivar key: column of the id, by which the service's API knows a thing.
    :ivar title: column of the name.
    :ivar owner: column of the project, or of the user.
    :ivar only: condition for rows that count; compute and volumes keep those of what is deleted.
    """

    name: str
    key: str = "id"
    title: str = "name"
    owner: str = "project_id"
    only: str = "TRUE"

    def query(self, kind: str) -> str:
        """The query of kinds, ids and names."""
        owner = ":user" if self.owner == "user_id" else ":project"
        # Each service has a character set of its own, which a UNION does not mix.
        key, title = (f"CONVERT({column} USING utf8mb4)" for column in (self.key, self.title))
        return (
            f"SELECT '{kind}', {key}, {title} FROM {self.name} WHERE {self.owner} = {owner} AND {self.only}"
        )


THERE = "deleted = 0"
RUNS = f"{THERE} AND COALESCE(vm_state, '') <> 'deleted'"
"""A server in this state has nothing any more; its row is marked as deleted a moment later."""
TABLES: Mapping[str, Sequence[Table]] = {
    "alarms": [Table("aodh.alarm", key="alarm_id")],
    "servers": [
        Table("nova_cell1.instances", key="uuid", title="display_name", only=RUNS),
        Table("nova_cell0.instances", key="uuid", title="display_name", only=RUNS),
        Table("nova_api.build_requests", key="instance_uuid", title="instance_uuid"),
    ],
    "server groups": [Table("nova_api.instance_groups", key="uuid")],
    "key pairs": [Table("nova_api.key_pairs", key="name", owner="user_id")],
    "backups": [Table("cinder.backups", title="display_name", only=THERE)],
    "snapshots": [Table("cinder.snapshots", title="display_name", only=THERE)],
    "volumes": [Table("cinder.volumes", title="display_name", only=THERE)],
    "load balancers": [Table("octavia.load_balancer", only="provisioning_status <> 'DELETED'")],
    "share snapshots": [Table("manila.share_snapshots", title="display_name", only="deleted = 'False'")],
    "shares": [Table("manila.shares", title="display_name", only="deleted = 'False'")],
    "share networks": [Table("manila.share_networks", only="deleted = 'False'")],
    "security services": [Table("manila.security_services", only="deleted = 'False'")],
    "images": [Table("glance.images", owner="owner", only=THERE)],
    "floating IPs": [Table("neutron.floatingips", title="floating_ip_address")],
    "routers": [Table("neutron.routers")],
    "trunks": [Table("neutron.trunks")],
    "ports": [Table("neutron.ports")],
    "subnets": [Table("neutron.subnets")],
    "networks": [Table("neutron.networks")],
    "cron triggers": [Table("mistral.cron_triggers_v2", key="name")],
    "executions": [Table("mistral.workflow_executions_v2")],
    "workflows": [Table("mistral.workflow_definitions_v2", key="name")],
    "DNS zones": [Table("designate.zones", owner="tenant_id", only="deleted = '0'")],
    "subnet pools": [Table("neutron.subnetpools")],
    "address scopes": [Table("neutron.address_scopes")],
    "address groups": [Table("neutron.address_groups")],
    "security groups": [Table("neutron.securitygroups", only="name <> 'default'")],
    "QoS policies": [Table("neutron.qos_policies")],
    "compute quotas": [Table("nova_api.quotas", title="resource")],
    "volume quotas": [Table("cinder.quotas", title="resource", only=THERE)],
    "network quotas": [Table("neutron.quotas", title="resource")],
}


class Rows:
    """The databases of a cloud.  Any thread may call it.

    :param url: SQLAlchemy URL of the database server.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def of(self, project: str, user: str) -> dict[str, dict[str, str]]:
        """All things of a project and its user: kind -> id -> name, or the id where there is no name."""
        rows: dict[str, dict[str, str]] = {}
        with self._engine.connect() as connection:
            for kind, key, name in connection.execute(QUERY, {"project": project, "user": user}):
                names = rows.setdefault(kind, {})
                names[key] = names.get(key) or name or key
        return rows

    def disable_flavor(self, key: str) -> None:
        """Disable a flavor, for which the service has no call any more."""
        text = sqlalchemy.text("UPDATE nova_api.flavors SET disabled = 1 WHERE flavorid = :key")
        with self._engine.connect() as connection:
            connection.execute(text, {"key": key})

    @functools.cached_property
    def _engine(self) -> sqlalchemy.Engine:
        return sqlalchemy.create_engine(self._url, isolation_level="AUTOCOMMIT")


QUERY = sqlalchemy.text(
    " UNION ALL ".join(table.query(kind) for kind, tables in TABLES.items() for table in tables)
)
