"""Rows of software configs, of their deployments, and of the servers that read them."""

import math
import typing
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import statements
from .errors import NotFound
from .ids import ResourceId, StackId
from .schema import tables

REASON = 1000
"""Characters of a deployment's reason in a list."""


@dataclass(frozen=True, kw_only=True)
class ListedConfig:
    """A software config as lists show it; see tables.py for the meanings of the columns."""

    id: str
    project_id: str
    name: str | None
    tool: str | None
    created_at: float


@dataclass(frozen=True, kw_only=True)
class StoredConfig(ListedConfig):
    """A software config.

    :ivar body: content, inputs, outputs and options of the config, sealed.
    """

    body: Json
    size: int
    stack_id: StackId | None = None
    resource_id: ResourceId | None = None


@dataclass(frozen=True, kw_only=True)
class ListedDeployment:
    """A software deployment as lists show it; see tables.py for the meanings of the columns.

    :ivar reason: the reason; in a list its first REASON characters.
    """

    id: str
    project_id: str
    server_id: str
    config_id: str
    action: str | None
    status: str | None
    reason: str
    created_at: float
    updated_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class StoredDeployment(ListedDeployment):
    """A software deployment.

    :ivar input_values, output_values: values by name, sealed; None: no values.
    """

    input_values: Json = None
    output_values: Json = None
    input_size: int = 0
    output_size: int = 0
    stack_id: StackId | None = None
    resource_id: ResourceId | None = None


class ServerKey(typing.NamedTuple):
    """A server of a project, by the name that its deployments give it."""

    server_id: str
    project_id: str


# -- configs ---------------------------------------------------------------------------------------


def insert_config(conn: Connection, config: StoredConfig) -> None:
    """Store a config; one with its id, which a lost attempt has stored, stays as it is."""
    conn.execute(statements.insert_or_update(conn, tables.software_config, asdict(config), []))


def get_config(conn: Connection, config_id: str, *, lock: bool = False) -> StoredConfig:
    """Return a config.

    :param lock: whether the row is locked until the transaction ends, so that nobody deletes the config.
    :raises NotFound: no such config.
    """
    row = _columns(conn, tables.software_config, config_id, lock=lock)
    if row is None:
        raise NotFound("Software config", config_id)
    return StoredConfig(**row)


def list_configs(
    conn: Connection, project_id: str | None, *, limit: int | None, marker: str | None
) -> list[ListedConfig]:
    """Return configs, the newest first.

    :param project_id: id of the project; None: all projects.
    :param marker: id of the last config already seen.
    :raises NotFound: the marker is no config, or belongs to another project.
    """
    c = tables.software_config
    query = sa.select(*(c.c[field.name] for field in fields(ListedConfig)))
    if project_id is not None:
        query = query.where(c.c.project_id == project_id)
    if marker is not None:
        last = get_config(conn, marker)
        if project_id not in (None, last.project_id):
            raise NotFound("Software config", marker)
        same = sa.and_(c.c.created_at == last.created_at, c.c.id < last.id)
        query = query.where(sa.or_(c.c.created_at < last.created_at, same))
    query = query.order_by(c.c.created_at.desc(), c.c.id.desc()).limit(limit)
    return [ListedConfig(**dict(row)) for row in conn.execute(query).mappings()]


def count_configs(conn: Connection, project_id: str) -> int:
    """Return how many configs a project has."""
    return _count(conn, tables.software_config, project_id)


def is_deployed(conn: Connection, config_id: str) -> bool:
    """Return whether a deployment refers to the config."""
    d = tables.software_deployment
    return conn.execute(sa.select(d.c.id).where(d.c.config_id == config_id).limit(1)).scalar() is not None


def delete_config(conn: Connection, config_id: str) -> None:
    """Delete a config; one that does not exist is ignored."""
    c = tables.software_config
    conn.execute(sa.delete(c).where(c.c.id == config_id))


# -- deployments -----------------------------------------------------------------------------------


def insert_deployment(conn: Connection, deployment: StoredDeployment) -> None:
    """Store a deployment; its server's guest has something new to read."""
    conn.execute(sa.insert(tables.software_deployment).values(**asdict(deployment)))
    touch_server(conn, deployment, deployment.created_at)


def get_deployment(conn: Connection, deployment_id: str, *, lock: bool = False) -> StoredDeployment:
    """Return a deployment.

    :param lock: whether the row is locked until the transaction ends, so that nobody changes it.
    :raises NotFound: no such deployment.
    """
    row = _columns(conn, tables.software_deployment, deployment_id, lock=lock)
    if row is None:
        raise NotFound("Deployment", deployment_id)
    return StoredDeployment(**row)


def list_deployments(
    conn: Connection,
    project_id: str,
    server_id: str | None = None,
    *,
    limit: int | None = None,
    marker: str | None = None,
) -> list[ListedDeployment]:
    """Return the deployments of a project, or to one server, the oldest first.

    :param marker: id of the last deployment already seen.
    :raises NotFound: the marker is no deployment, or belongs to another project.
    """
    d = tables.software_deployment
    columns = [d.c[field.name] for field in fields(ListedDeployment) if field.name != "reason"]
    query = sa.select(*columns, sa.func.substr(d.c.reason, 1, REASON).label("reason"))
    query = query.where(d.c.project_id == project_id)
    if server_id is not None:
        query = query.where(d.c.server_id == server_id)
    if marker is not None:
        last = get_deployment(conn, marker)
        if last.project_id != project_id:
            raise NotFound("Deployment", marker)
        same = sa.and_(d.c.created_at == last.created_at, d.c.id > last.id)
        query = query.where(sa.or_(d.c.created_at > last.created_at, same))
    rows = conn.execute(query.order_by(d.c.created_at, d.c.id).limit(limit))
    return [ListedDeployment(**dict(row)) for row in rows.mappings()]


def count_deployments(conn: Connection, project_id: str) -> int:
    """Return how many deployments a project has."""
    return _count(conn, tables.software_deployment, project_id)


def change_deployment(conn: Connection, deployment: StoredDeployment, changes: JsonMap, now: float) -> None:
    """Change columns of a deployment, whose row the caller has locked.

    A new config is something new for the server's guest to read.
    """
    d = tables.software_deployment
    conn.execute(sa.update(d).where(d.c.id == deployment.id).values(**changes, updated_at=now))
    if changes.get("config_id", deployment.config_id) != deployment.config_id:
        touch_server(conn, deployment, now)


def delete_deployment(conn: Connection, deployment: StoredDeployment, now: float) -> None:
    """Delete a deployment, whose row the caller has locked; its server's guest has less to read."""
    d = tables.software_deployment
    conn.execute(sa.delete(d).where(d.c.id == deployment.id))
    touch_server(conn, deployment, now)


# -- servers ---------------------------------------------------------------------------------------


def deployed_configs(conn: Connection, project_id: str, server_id: str) -> list[StoredConfig]:
    """Return the configs that are deployed to a server, in the order of their names."""
    c = tables.software_config
    d = tables.software_deployment
    query = (
        sa.select(c)
        .join(d, d.c.config_id == c.c.id)
        .where(d.c.server_id == server_id, d.c.project_id == project_id)
        .order_by(d.c.created_at, d.c.id)
    )
    configs = [StoredConfig(**dict(row)) for row in conn.execute(query).mappings()]
    return sorted(configs, key=lambda config: config.name or "")


def server_bytes(conn: Connection, project_id: str, server_id: str) -> int:
    """Return the bytes of all configs that are deployed to a server."""
    c = tables.software_config
    d = tables.software_deployment
    of_server = (d.c.server_id == server_id, d.c.project_id == project_id)
    deployed = sa.select(sa.func.sum(c.c.size)).join_from(d, c, d.c.config_id == c.c.id)
    return int(conn.execute(deployed.where(*of_server)).scalar() or 0)


def total_bytes(conn: Connection, project_id: str) -> int:
    """Return the bytes of all configs of a project, and of the values of its deployments."""
    c = tables.software_config.c
    d = tables.software_deployment.c
    configs = sa.select(sa.func.sum(c.size)).where(c.project_id == project_id)
    values = sa.select(sa.func.sum(d.input_size + d.output_size)).where(d.project_id == project_id)
    return sum(int(conn.execute(query).scalar() or 0) for query in (configs, values))


def touch_server(conn: Connection, deployment: StoredDeployment, now: float) -> None:
    """Store that the metadata of a server's guest has changed, because a deployment of it has."""
    s = tables.software_server
    d = tables.software_deployment
    key = _server_of(deployment)
    conn.execute(statements.insert_or_update(conn, s, {**key, "changed_at": 0.0}, []))
    is_key = sa.and_(*(s.c[name] == value for name, value in key.items()))
    before = conn.execute(sa.select(s.c.changed_at).where(is_key).with_for_update()).scalar_one()
    remaining = sa.select(d.c.id).where(*(d.c[name] == value for name, value in key.items())).limit(1)
    unused_at = now if conn.execute(remaining).scalar() is None else None
    changed_at = max(float(math.floor(now)), before + 1)
    conn.execute(sa.update(s).where(is_key).values(changed_at=changed_at, unused_at=unused_at))


def unused_servers(conn: Connection, before: float, *, limit: int) -> list[ServerKey]:
    """Return servers that have had no deployment since, the oldest first."""
    s = tables.software_server
    old = sa.select(s.c.server_id, s.c.project_id).where(s.c.unused_at < before)
    return [ServerKey(*row) for row in conn.execute(old.order_by(s.c.unused_at).limit(limit))]


def forget_servers(conn: Connection, servers: Sequence[ServerKey], before: float) -> int:
    """Delete the rows of such servers; return how many.

    A server that still exists loses nothing: its next deployment stores a newer row.
    """
    s = tables.software_server
    count = 0
    for server_id, project_id in sorted(servers):
        condition = sa.and_(s.c.server_id == server_id, s.c.project_id == project_id, s.c.unused_at < before)
        count += conn.execute(sa.delete(s).where(condition)).rowcount
    return count


def _server_of(deployment: StoredDeployment) -> dict[str, str]:
    return {"server_id": deployment.server_id, "project_id": deployment.project_id}


def _columns(conn: Connection, table: sa.Table, row_id: str, *, lock: bool) -> dict[str, Json] | None:
    query = sa.select(table).where(table.c.id == row_id)
    row = conn.execute(query.with_for_update() if lock else query).mappings().first()
    return None if row is None else dict(row)


def _count(conn: Connection, table: sa.Table, project_id: str) -> int:
    counted = sa.select(sa.func.count()).select_from(table).where(table.c.project_id == project_id)
    return int(conn.execute(counted).scalar_one())
