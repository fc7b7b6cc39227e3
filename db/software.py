"""Rows of software configs, of their deployments, and of the servers that read them.

Users, templates and documents may name any id.  So no function finds a row by an id alone: a row is found for
a project, or for the resource to which it belongs by its own column.
"""

import math
import typing
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import bulk, statements, usage
from .bulk import Write
from .errors import IdTaken, NotFound
from .ids import ConfigId, DeploymentId, ResourceId, StackId
from .schema import tables
from .usage import UsageChange

CONFIG = "Software config"
DEPLOYMENT = "Deployment"
"""The kinds of rows, as errors name them."""
REASON = 1000
"""Characters of a deployment's reason in a list."""


@dataclass(frozen=True, kw_only=True)
class ListedConfig:
    """A software config as lists show it; see tables.py for the meanings of the table.c."""

    id: ConfigId
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
    """A software deployment as lists show it; see tables.py for the meanings of the table.c.

    :ivar reason: the reason; in a list its first REASON characters.
    """

    id: DeploymentId
    project_id: str
    server_id: str
    config_id: ConfigId
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


@dataclass(frozen=True)
class OwningResource:
    """A resource to which configs and deployments belong, with its stack's project."""

    id: ResourceId
    stack_id: StackId
    project_id: str


def new_config_id() -> ConfigId:
    """Return the id of a config that is made now."""
    return ConfigId(str(uuid.uuid4()))


def derived_config_id(deployment_id: DeploymentId, key: str) -> ConfigId:
    """Return the id of the config that an action makes for a deployment; the same for each attempt."""
    return ConfigId(str(uuid.uuid5(uuid.UUID(deployment_id), key)))


def new_deployment_id() -> DeploymentId:
    """Return the id of a deployment that is made now."""
    return DeploymentId(str(uuid.uuid4()))


# -- configs ---------------------------------------------------------------------------------------


def config_made_by(key: str) -> ConfigId:
    """Return the id under which a resource stores a config; if it is another's, `insert_config` refuses it.

    :param key: the key of the resource's creation.
    """
    return ConfigId(key)


def insert_config(conn: Connection, config: StoredConfig) -> None:
    """Store a config.

    :raises IdTaken: there is one with its id.
    """
    _insert(conn, config, CONFIG)


def get_config(
    conn: Connection, config_id: str, project_id: str | None, *, lock: bool = False
) -> StoredConfig:
    """Return a config of a project.

    :param project_id: None: of any project; for callers who may see all.
    :param lock: whether the row is locked until the transaction ends, so that nobody deletes the config.
    :raises NotFound: the project has no such config.
    """
    c = tables.software_config
    row = _columns(conn, c, c.c.id == config_id, *_in(c, project_id), lock=lock)
    if row is None:
        raise NotFound(CONFIG, config_id)
    return StoredConfig(**row)


def configs_of(conn: Connection, owner: OwningResource) -> list[StoredConfig]:
    """Lock and return the configs that belong to a resource."""
    c = tables.software_config
    query = sa.select(c).where(*_owned(c, owner)).order_by(c.c.id).with_for_update()
    return [StoredConfig(**dict(row)) for row in conn.execute(query).mappings()]


def has_config(conn: Connection, owner: OwningResource, config_id: str) -> bool:
    """Return whether a config belongs to a resource."""
    c = tables.software_config
    query = sa.select(c.c.id).where(c.c.id == config_id, *_owned(c, owner))
    return conn.execute(query).scalar() is not None


def adopt_config(conn: Connection, owner: OwningResource, config_id: str) -> None:
    """Give a config that belongs to nobody to a resource of its project; one that it has already stays.

    :raises NotFound: the project has no such config, or it belongs to another resource.
    """
    c = tables.software_config
    adopted = sa.update(c).where(c.c.id == config_id, *_free(c, owner)).values(_owner_columns(owner))
    if conn.execute(adopted).rowcount == 0:
        raise NotFound(CONFIG, config_id)


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
        last = get_config(conn, marker, project_id)
        same = sa.and_(c.c.created_at == last.created_at, c.c.id < last.id)
        # The first condition says nothing new, but by it the databases begin in the index at the marker.
        is_later = sa.or_(c.c.created_at < last.created_at, same)
        query = query.where(c.c.created_at <= last.created_at, is_later)
    query = query.order_by(c.c.created_at.desc(), c.c.id.desc()).limit(limit)
    return [ListedConfig(**dict(row)) for row in conn.execute(query).mappings()]


def is_deployed(conn: Connection, config: StoredConfig) -> bool:
    """Return whether a deployment of the config's project refers to it."""
    d = tables.software_deployment.c
    query = sa.select(d.id).where(d.config_id == config.id, d.project_id == config.project_id)
    return conn.execute(query.limit(1)).scalar() is not None


def delete_config(conn: Connection, config: StoredConfig) -> None:
    """Delete a config; one that does not exist any more is ignored."""
    c = tables.software_config
    deleted = sa.delete(c).where(c.c.id == config.id, c.c.project_id == config.project_id)
    usage.write(conn, Write(deleted, {}), [_counted(config, -1)])


# -- deployments -----------------------------------------------------------------------------------


def deployment_made_by(key: str) -> DeploymentId:
    """Return the id under which a resource stores a deployment; see `config_made_by`."""
    return DeploymentId(key)


def insert_deployment(conn: Connection, deployment: StoredDeployment) -> None:
    """Store a deployment; its server's guest has something new to read.

    :raises IdTaken: there is one with its id.
    """
    _insert(conn, deployment, DEPLOYMENT)
    touch_server(conn, deployment, deployment.created_at)


def get_deployment(
    conn: Connection, deployment_id: str, project_id: str | None, *, lock: bool = False
) -> StoredDeployment:
    """Return a deployment of a project.

    :param project_id: None: of any project; for callers who may see all.
    :param lock: whether the row is locked until the transaction ends, so that nobody changes it.
    :raises NotFound: the project has no such deployment.
    """
    d = tables.software_deployment
    row = _columns(conn, d, d.c.id == deployment_id, *_in(d, project_id), lock=lock)
    if row is None:
        raise NotFound(DEPLOYMENT, deployment_id)
    return StoredDeployment(**row)


def deployment_of(
    conn: Connection, owner: OwningResource, deployment_id: str, *, lock: bool = False
) -> StoredDeployment | None:
    """Return a deployment that belongs to a resource; None: it does not, or there is none.

    :param lock: whether the row is locked until the transaction ends, so that nobody changes it.
    """
    d = tables.software_deployment
    row = _columns(conn, d, d.c.id == deployment_id, *_owned(d, owner), lock=lock)
    return None if row is None else StoredDeployment(**row)


def deployments_of(conn: Connection, owner: OwningResource) -> list[StoredDeployment]:
    """Lock and return the deployments that belong to a resource: one, or none."""
    d = tables.software_deployment
    query = sa.select(d).where(*_owned(d, owner)).order_by(d.c.id).with_for_update()
    return [StoredDeployment(**dict(row)) for row in conn.execute(query).mappings()]


def adopt_deployment(conn: Connection, owner: OwningResource, deployment_id: str) -> None:
    """Give a deployment that belongs to nobody to a resource of its project, with its derived config.

    One that the resource has already stays.

    :raises NotFound: the project has no such deployment, or it belongs to another resource.
    """
    d = tables.software_deployment
    c = tables.software_config
    free = sa.select(d).where(d.c.id == deployment_id, *_free(d, owner)).with_for_update()
    row = conn.execute(free).mappings().first()
    if row is None:
        raise NotFound(DEPLOYMENT, deployment_id)
    is_it = sa.and_(d.c.id == deployment_id, *_free(d, owner))
    conn.execute(sa.update(d).where(is_it).values(_owner_columns(owner)))
    if row["resource_id"] is not None:
        # Its former resource has made the config for it; one that the API has made stays the project's.
        is_derived = sa.and_(c.c.id == row["config_id"], c.c.resource_id == row["resource_id"])
        conn.execute(sa.update(c).where(is_derived, *_free(c, owner)).values(_owner_columns(owner)))


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
        last = get_deployment(conn, marker, project_id)
        same = sa.and_(d.c.created_at == last.created_at, d.c.id > last.id)
        query = query.where(d.c.created_at >= last.created_at, sa.or_(d.c.created_at > last.created_at, same))
    rows = conn.execute(query.order_by(d.c.created_at, d.c.id).limit(limit))
    return [ListedDeployment(**dict(row)) for row in rows.mappings()]


def change_deployment(
    conn: Connection, deployment: StoredDeployment, changes: JsonMap, now: float
) -> StoredDeployment:
    """Change columns of a deployment, whose row the caller has locked; return it as it is then.

    A new config is something new for the server's guest to read.

    :param deployment: the deployment as its row is now.
    """
    d = tables.software_deployment
    is_it = sa.and_(d.c.id == deployment.id, d.c.project_id == deployment.project_id)
    changed = replace(deployment, **changes, updated_at=now)
    change = Write(sa.update(d).where(is_it).values(**changes, updated_at=now), {})
    more = UsageChange(deployment.project_id, {"software_bytes": _bytes(changed) - _bytes(deployment)})
    usage.write(conn, change, [more])
    if changed.config_id != deployment.config_id:
        touch_server(conn, deployment, now)
    return changed


def delete_deployment(conn: Connection, deployment: StoredDeployment, now: float) -> None:
    """Delete a deployment, whose row the caller has locked; its server's guest has less to read."""
    d = tables.software_deployment
    deleted = sa.delete(d).where(d.c.id == deployment.id, d.c.project_id == deployment.project_id)
    usage.write(conn, Write(deleted, {}), [_counted(deployment, -1)])
    touch_server(conn, deployment, now)


# -- imported rows ---------------------------------------------------------------------------------


Imported = Sequence[StoredConfig | StoredDeployment]
"""Rows of one kind that another installation has made, with their ids."""


def missing(conn: Connection, rows: Imported) -> list[StoredConfig | StoredDeployment]:
    """Return the rows whose ids do not exist."""
    existing: set[str] = set()
    for ids in bulk.chunks([row.id for row in rows]):
        table = _table(rows)
        existing.update(conn.execute(sa.select(table.c.id).where(table.c.id.in_(ids))).scalars())
    return [row for row in rows if row.id not in existing]


def insert_missing(conn: Connection, rows: Imported) -> int:
    """Store the rows whose ids do not exist; return their number."""
    new = missing(conn, rows)
    if new:
        insertion = bulk.insertion(conn, _table(rows), [asdict(row) for row in new])
        usage.write(conn, insertion, map(_counted, new))
    return len(new)


def delete_free(conn: Connection, rows: Imported, project_id: str) -> None:
    """Delete those stored rows of a project with the ids of these that belong to no resource."""
    for ids in bulk.chunks([row.id for row in rows]):
        table = _table(rows)
        is_free = (table.c.id.in_(ids), table.c.resource_id.is_(None), table.c.project_id == project_id)
        query = sa.select(table).where(*is_free).order_by(table.c.id).with_for_update()
        free = [type(rows[0])(**dict(row)) for row in conn.execute(query).mappings()]
        usage.write(conn, Write(sa.delete(table).where(*is_free), {}), [_counted(row, -1) for row in free])


def _table(rows: Imported) -> sa.Table:
    return tables.software_config if isinstance(rows[0], StoredConfig) else tables.software_deployment


# -- servers ---------------------------------------------------------------------------------------


def deployed_configs(conn: Connection, project_id: str, server_id: str) -> list[StoredConfig]:
    """Return the configs that are deployed to a server, in the order of their names."""
    c = tables.software_config
    d = tables.software_deployment
    query = (
        sa.select(c)
        .join(d, _deploys(d, c))
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
    deployed = sa.select(sa.func.sum(c.c.size)).join_from(d, c, _deploys(d, c))
    return int(conn.execute(deployed.where(*of_server)).scalar() or 0)


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


def _deploys(deployment: sa.Table, config: sa.Table) -> sa.ColumnElement[bool]:
    """Return the condition of a join: a deployment refers to configs of its own project only."""
    same_project = deployment.c.project_id == config.c.project_id
    return sa.and_(deployment.c.config_id == config.c.id, same_project)


def _columns(
    conn: Connection, table: sa.Table, *conditions: sa.ColumnElement[bool], lock: bool
) -> dict[str, Json] | None:
    query = sa.select(table).where(*conditions)
    row = conn.execute(query.with_for_update() if lock else query).mappings().first()
    return None if row is None else dict(row)


def _insert(conn: Connection, row: StoredConfig | StoredDeployment, kind: str) -> None:
    try:
        usage.write(conn, Write(sa.insert(_table([row])).values(asdict(row)), {}), [_counted(row)])
    except oslo_errors.DBDuplicateEntry as error:
        raise IdTaken(kind, row.id) from error


def _in(table: sa.Table, project_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [] if project_id is None else [table.c.project_id == project_id]


def _owned(table: sa.Table, owner: OwningResource) -> list[sa.ColumnElement[bool]]:
    return [table.c.resource_id == owner.id, table.c.project_id == owner.project_id]


def _free(table: sa.Table, owner: OwningResource) -> list[sa.ColumnElement[bool]]:
    """Return the conditions under which a resource may adopt a row: it is of its project, and nobody's.

    The row of an abandoned or retained thing names a resource that does not exist any more; no other one gets
    its id, see id_source.py.
    """
    r = tables.resource
    lives = sa.exists(sa.select(r.c.id).where(r.c.id == table.c.resource_id))
    is_free = sa.or_(table.c.resource_id.is_(None), table.c.resource_id == owner.id, sa.not_(lives))
    return [table.c.project_id == owner.project_id, is_free]


def _owner_columns(owner: OwningResource) -> dict[str, Json]:
    return {"resource_id": owner.id, "stack_id": owner.stack_id}


def _counted(row: StoredConfig | StoredDeployment, sign: int = 1) -> UsageChange:
    """Return the difference that a row makes which is stored, or with sign -1 deleted."""
    counter = "software_configs" if isinstance(row, StoredConfig) else "software_deployments"
    return UsageChange(row.project_id, {counter: sign, "software_bytes": sign * _bytes(row)})


def _bytes(row: StoredConfig | StoredDeployment) -> int:
    return row.size if isinstance(row, StoredConfig) else row.input_size + row.output_size
