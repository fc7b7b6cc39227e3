"""The tables of Heat's database, as far as they are read or written.

The releases from 2023.1 to 2026.2 agree in the columns that are read, but those of `LATER`.
"""

import datetime
import json
import typing

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from .fields import NO_JSON

metadata = sa.MetaData()
Part = typing.Union[sa.Table, "sa.Column[typing.Any]"]
"""A table or a column."""


class HeatJson(sa.types.TypeDecorator[typing.Any]):
    """A JSON value, which Heat stores as text."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: typing.Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> typing.Any:
        """Return the value of a stored text; `NO_JSON` where it is none, which concerns its stack alone."""
        if value is None:
            return None
        try:
            return json.loads(value)
        except (ValueError, TypeError, RecursionError):
            return NO_JSON


class HeatTime(sa.types.TypeDecorator[float]):
    """An instant in UTC, as seconds since the epoch."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> datetime.datetime | None:
        """Return the time to store."""
        if value is None:
            return None
        return datetime.datetime.fromtimestamp(value, datetime.UTC).replace(tzinfo=None, microsecond=0)

    def process_result_value(self, value: datetime.datetime | None, dialect: Dialect) -> float | None:
        """Return the seconds of a stored time."""
        return None if value is None else value.replace(tzinfo=datetime.UTC).timestamp()


def _table(name: str, key: "sa.Column[typing.Any]", *columns: "sa.Column[typing.Any]") -> sa.Table:
    return sa.Table(name, metadata, key, *columns)


def _id() -> "sa.Column[int]":
    return sa.Column("id", sa.Integer, primary_key=True)


def _uuid() -> "sa.Column[str]":
    return sa.Column("id", sa.String(36), primary_key=True)


stack = _table(
    "stack",
    _uuid(),
    sa.Column("name", sa.String(255)),
    sa.Column("created_at", HeatTime),
    sa.Column("updated_at", HeatTime),
    sa.Column("deleted_at", HeatTime),
    sa.Column("action", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("status_reason", sa.Text),
    sa.Column("raw_template_id", sa.Integer, nullable=False),
    sa.Column("prev_raw_template_id", sa.Integer),
    sa.Column("username", sa.String(256)),
    sa.Column("tenant", sa.String(256)),
    sa.Column("user_creds_id", sa.Integer),
    sa.Column("owner_id", sa.String(36)),
    sa.Column("parent_resource_name", sa.String(255)),
    sa.Column("timeout", sa.Integer),
    sa.Column("disable_rollback", sa.Boolean, nullable=False),
    sa.Column("stack_user_project_id", sa.String(64)),
    sa.Column("backup", sa.Boolean),
    sa.Column("nested_depth", sa.Integer),
    sa.Column("convergence", sa.Boolean),
    sa.Column("current_traversal", sa.String(36)),
    sa.Column("current_deps", HeatJson),
)
stack_lock = _table(
    "stack_lock",
    sa.Column("stack_id", sa.String(36), primary_key=True),
    sa.Column("engine_id", sa.String(36)),
    sa.Column("created_at", HeatTime),
)
stack_tag = _table(
    "stack_tag",
    _id(),
    sa.Column("created_at", HeatTime),
    sa.Column("tag", sa.Unicode(80)),
    sa.Column("stack_id", sa.String(36), nullable=False),
)
raw_template = _table(
    "raw_template",
    _id(),
    sa.Column("created_at", HeatTime),
    sa.Column("template", HeatJson),
    sa.Column("files", HeatJson),
    sa.Column("files_id", sa.Integer),
    sa.Column("environment", HeatJson),
)
raw_template_files = _table(
    "raw_template_files",
    _id(),
    sa.Column("files", HeatJson),
    sa.Column("created_at", HeatTime),
)
user_creds = _table(
    "user_creds",
    _id(),
    sa.Column("created_at", HeatTime),
    sa.Column("decrypt_method", sa.String(64)),
    sa.Column("auth_url", sa.Text),
    sa.Column("region_name", sa.String(255)),
    sa.Column("tenant_id", sa.String(256)),
    sa.Column("trust_id", sa.String(255)),
    sa.Column("trustor_user_id", sa.String(64)),
)
resource = _table(
    "resource",
    _id(),
    sa.Column("uuid", sa.String(36)),
    sa.Column("name", sa.String(255)),
    sa.Column("nova_instance", sa.String(255), key="physical_id"),
    sa.Column("rsrc_metadata", HeatJson, key="metadata"),
    sa.Column("created_at", HeatTime),
    sa.Column("updated_at", HeatTime),
    sa.Column("action", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("status_reason", sa.Text),
    sa.Column("stack_id", sa.String(36), nullable=False),
    sa.Column("rsrc_prop_data_id", sa.Integer),
    # Properties of a resource that has not changed since the releases before Pike.
    sa.Column("properties_data", HeatJson),
    sa.Column("properties_data_encrypted", sa.Boolean),
    sa.Column("attr_data_id", sa.Integer),
    sa.Column("replaces", sa.Integer),
    sa.Column("replaced_by", sa.Integer),
    sa.Column("requires", HeatJson),
    sa.Column("needed_by", HeatJson),
    sa.Column("root_stack_id", sa.String(36)),
    sa.Column("atomic_key", sa.Integer),
    sa.Column("current_template_id", sa.Integer),
)
resource_data = _table(
    "resource_data",
    _id(),
    sa.Column("created_at", HeatTime),
    sa.Column("key", sa.String(255)),
    sa.Column("value", sa.Text),
    sa.Column("redact", sa.Boolean),
    sa.Column("decrypt_method", sa.String(64)),
    sa.Column("resource_id", sa.Integer, nullable=False),
)
resource_properties_data = _table(
    "resource_properties_data",
    _id(),
    sa.Column("created_at", HeatTime),
    sa.Column("data", HeatJson),
    sa.Column("encrypted", sa.Boolean),
)
event = _table(
    "event",
    _id(),
    sa.Column("uuid", sa.String(36)),
    sa.Column("stack_id", sa.String(36), nullable=False),
    sa.Column("created_at", HeatTime),
    sa.Column("resource_action", sa.String(255)),
    sa.Column("resource_status", sa.String(255)),
    sa.Column("resource_name", sa.String(255)),
    sa.Column("physical_resource_id", sa.String(255)),
    sa.Column("resource_status_reason", sa.String(255)),
    sa.Column("resource_type", sa.String(255)),
    sa.Column("rsrc_prop_data_id", sa.Integer),
)
snapshot = _table(
    "snapshot",
    _uuid(),
    sa.Column("stack_id", sa.String(36), nullable=False),
    sa.Column("tenant", sa.String(64)),
    sa.Column("name", sa.String(255)),
    sa.Column("data", HeatJson),
    sa.Column("action", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("status_reason", sa.String(255)),
    sa.Column("created_at", HeatTime),
)
resource_snapshot = _table(
    "resource_snapshot",
    _uuid(),
    sa.Column("resource_name", sa.String(255), nullable=False),
    sa.Column("snapshot_id", sa.String(36), nullable=False),
    sa.Column("data", HeatJson),
)
software_config = _table(
    "software_config",
    _uuid(),
    sa.Column("name", sa.String(255)),
    sa.Column("group", sa.String(255)),
    sa.Column("config", HeatJson),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("created_at", HeatTime),
)
software_deployment = _table(
    "software_deployment",
    _uuid(),
    sa.Column("config_id", sa.String(36), nullable=False),
    sa.Column("server_id", sa.String(36), nullable=False),
    sa.Column("input_values", HeatJson),
    sa.Column("output_values", HeatJson),
    sa.Column("action", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("status_reason", sa.Text),
    sa.Column("tenant", sa.String(64), nullable=False),
    sa.Column("stack_user_project_id", sa.String(64)),
    sa.Column("created_at", HeatTime),
    sa.Column("updated_at", HeatTime),
)

LATER: frozenset[Part] = frozenset({resource_snapshot, snapshot.c.action})
"""Tables and columns that releases before 2026.1 do not have."""
