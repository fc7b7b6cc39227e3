"""The first schema."""

import typing

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None


def long_text() -> sa.types.TypeEngine[str]:
    """Return text without a limit that matters."""
    return sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")


def row_id() -> sa.types.TypeEngine[int]:
    """Return a 64-bit id; SQLite calls the type of its row ids INTEGER."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def create_table(name: str, *columns: typing.Any) -> None:
    """Create a table that keeps names apart which differ by case, or by a space at the end.

    Without a collation MariaDB would not, as the other databases do.
    """
    # MySQL has no such collation; its own utf8mb4_bin ignores spaces at the end.
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collate = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_bin"
    op.create_table(
        name,
        *columns,
        mysql_charset="utf8mb4",
        mysql_collate=collate,
        mariadb_charset="utf8mb4",
        mariadb_collate=collate,
    )


def _conductor() -> None:
    create_table(
        "conductor",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("incarnation", sa.String(length=320), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("wanted", sa.String(length=10), nullable=False),
        sa.Column("wanted_by", long_text(), nullable=False),
        sa.Column("wanted_at", sa.Double(), nullable=True),
        sa.Column("wanted_reason", long_text(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("shards_owned", sa.Integer(), nullable=False),
        sa.Column("ring_version", sa.String(length=64), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("threads_busy", sa.Integer(), nullable=False),
        sa.Column("threads_written_off", sa.Integer(), nullable=False),
        sa.Column("rpc_version", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("heartbeat_at", sa.Double(), nullable=False),
        sa.Column("schema_number", sa.Integer(), nullable=False),
        sa.Column("clock_ahead", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("host"),
    )


def _content() -> None:
    create_table(
        "content",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("body", long_text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _content_use() -> None:
    create_table(
        "content_use",
        sa.Column("content_id", sa.String(length=64), nullable=False),
        sa.Column("holder_id", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("content_id", "holder_id"),
    )
    op.create_index("ix_content_use_holder", "content_use", ["holder_id"])


def _credential() -> None:
    create_table(
        "credential",
        sa.Column("root_id", sa.String(length=36), nullable=False),
        sa.Column("body", long_text(), nullable=False),
        sa.Column("user_id", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("unused_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("root_id"),
    )
    op.create_index("ix_credential_unused", "credential", ["unused_at"])


def _drift() -> None:
    create_table(
        "drift_project",
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("observed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("project_id"),
    )
    op.create_index("ix_drift_project_due", "drift_project", ["due_at"])
    create_table(
        "drift_stack",
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("root_id", sa.String(length=36), nullable=False),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("healed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("stack_id"),
    )
    op.create_index("ix_drift_stack_root", "drift_stack", ["root_id"])
    create_table(
        "drift_resource",
        sa.Column("resource_id", row_id(), autoincrement=False, nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("properties", long_text(), nullable=False),
        sa.PrimaryKeyConstraint("resource_id"),
    )
    op.create_index("ix_drift_resource_stack", "drift_resource", ["stack_id"])


def _event() -> None:
    create_table(
        "event",
        sa.Column("id", row_id(), autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("resource_name", sa.String(length=255), nullable=False),
        sa.Column("resource_type", long_text(), nullable=False),
        sa.Column("physical_id", long_text(), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("properties", long_text(), nullable=True),
        sa.Column("conductor", sa.String(length=255), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("ready_at", sa.Double(), nullable=True),
        sa.Column("claimed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_event_at", "event", ["at"])
    op.create_index("ix_event_stack", "event", ["stack_id", "id"])
    op.create_index("ix_event_resource", "event", ["stack_id", "resource_name", "id"])
    op.create_index("ix_event_uuid", "event", ["uuid"], unique=True)


def _event_delivery() -> None:
    create_table(
        "event_delivery",
        sa.Column("id", row_id(), autoincrement=True, nullable=False),
        sa.Column("sink_id", sa.String(length=36), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("body", long_text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_event_delivery_sink", "event_delivery", ["sink_id", "id"])


def _event_sink() -> None:
    create_table(
        "event_sink",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("root_id", sa.String(length=36), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("ttl", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_event_sink_closed", "event_sink", ["closed_at"])
    op.create_index("ix_event_sink_root", "event_sink", ["root_id"])


def _imported_key() -> None:
    create_table(
        "imported_key",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("resource_id", row_id(), nullable=False),
        sa.Column("secret", long_text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_imported_key_key", "imported_key", ["key"])
    op.create_index("ix_imported_key_stack", "imported_key", ["stack_id"])


def _project() -> None:
    create_table(
        "project",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("quotas", long_text(), nullable=True),
        sa.Column("stacks", sa.BigInteger(), nullable=False),
        sa.Column("resources", sa.BigInteger(), nullable=False),
        sa.Column("snapshots", sa.BigInteger(), nullable=False),
        sa.Column("goal_bytes", sa.BigInteger(), nullable=False),
        sa.Column("software_configs", sa.BigInteger(), nullable=False),
        sa.Column("software_deployments", sa.BigInteger(), nullable=False),
        sa.Column("software_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _resource() -> None:
    create_table(
        "resource",
        sa.Column("id", row_id(), autoincrement=False, nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("type", long_text(), nullable=False),
        sa.Column("plugin", long_text(), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.Column("physical_id", long_text(), nullable=True),
        sa.Column("reference_id", long_text(), nullable=True),
        sa.Column("definition", long_text(), nullable=True),
        sa.Column("properties", long_text(), nullable=True),
        sa.Column("attributes", long_text(), nullable=True),
        sa.Column("metadata", long_text(), nullable=True),
        sa.Column("data", long_text(), nullable=True),
        sa.Column("requires", long_text(), nullable=False),
        sa.Column("replaces", row_id(), nullable=True),
        sa.Column("replaced_by", row_id(), nullable=True),
        sa.Column("reinstated", sa.Boolean(), nullable=False),
        sa.Column("unhealthy", sa.Boolean(), nullable=False),
        sa.Column("progress", long_text(), nullable=True),
        sa.Column("key", sa.String(length=36), nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_resource_stack", "resource", ["stack_id", "name"])


def _setting() -> None:
    create_table(
        "setting",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", long_text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _snapshot() -> None:
    create_table(
        "snapshot",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("goal", long_text(), nullable=False),
        sa.Column("goal_size", sa.Integer(), nullable=False),
        sa.Column("tags", long_text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_snapshot_stack", "snapshot", ["stack_id", "created_at"])
    op.create_index("ix_snapshot_traversal", "snapshot", ["traversal"])


def _software_config() -> None:
    create_table(
        "software_config",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=True),
        sa.Column("tool", sa.String(length=255), nullable=True),
        sa.Column("body", long_text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=True),
        sa.Column("resource_id", row_id(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_software_config_project", "software_config", ["project_id", "created_at", "id"])
    op.create_index("ix_software_config_resource", "software_config", ["resource_id"])


def _software_deployment() -> None:
    create_table(
        "software_deployment",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("server_id", sa.String(length=255), nullable=False),
        sa.Column("config_id", sa.String(length=36), nullable=False),
        sa.Column("action", sa.String(length=255), nullable=True),
        sa.Column("status", sa.String(length=255), nullable=True),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("input_values", long_text(), nullable=True),
        sa.Column("output_values", long_text(), nullable=True),
        sa.Column("input_size", sa.Integer(), nullable=False),
        sa.Column("output_size", sa.Integer(), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=True),
        sa.Column("resource_id", row_id(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_software_deployment_config", "software_deployment", ["config_id"])
    op.create_index(
        "ix_software_deployment_project", "software_deployment", ["project_id", "created_at", "id"]
    )
    op.create_index("ix_software_deployment_resource", "software_deployment", ["resource_id"])
    of_server = ["project_id", "server_id", "created_at", "id"]
    op.create_index("ix_software_deployment_server", "software_deployment", of_server)


def _software_server() -> None:
    create_table(
        "software_server",
        sa.Column("server_id", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("read_at", sa.Double(), nullable=True),
        sa.Column("read_version", sa.Double(), nullable=True),
        sa.Column("read_by", sa.String(length=32), nullable=True),
        sa.Column("unused_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("server_id", "project_id"),
    )
    op.create_index("ix_software_server_unused", "software_server", ["unused_at"])


def _stack() -> None:
    group = "CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END + CASE WHEN deleted_at IS NULL THEN 0 ELSE 2 END"
    create_table(
        "stack",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("tenant", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("live_name", sa.String(length=255), nullable=True),
        sa.Column("parent_id", sa.String(length=36), nullable=True),
        sa.Column("parent_resource_id", row_id(), nullable=True),
        sa.Column("root_id", sa.String(length=36), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=255), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", long_text(), nullable=False),
        sa.Column("failure_cause", long_text(), nullable=True),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("deadline_at", sa.Double(), nullable=True),
        sa.Column("remaining", sa.Double(), nullable=True),
        sa.Column("rollback_at", sa.Double(), nullable=True),
        sa.Column("timeout_mins", sa.Integer(), nullable=True),
        sa.Column("template_id", sa.String(length=64), nullable=False),
        sa.Column("environment_id", sa.String(length=64), nullable=False),
        sa.Column("files_id", sa.String(length=64), nullable=False),
        sa.Column("parameters", long_text(), nullable=False),
        sa.Column("goal_size", sa.Integer(), nullable=False),
        sa.Column("tree_resources", sa.Integer(), nullable=False),
        sa.Column("own_resources", sa.Integer(), nullable=False),
        sa.Column("excess_resources", sa.Integer(), nullable=False),
        sa.Column("previous", long_text(), nullable=True),
        sa.Column("parameter_view", long_text(), nullable=False),
        sa.Column("outputs", long_text(), nullable=False),
        sa.Column("description", long_text(), nullable=False),
        sa.Column("disable_rollback", sa.Boolean(), nullable=False),
        sa.Column("abort_on_breakpoint", sa.Boolean(), nullable=False),
        sa.Column("has_sinks", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.Column("list_group", sa.Integer(), sa.Computed(group, persisted=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tenant", "live_name", name="uq_stack_live_name"),
    )
    for column in ("deadline_at", "deleted_at", "rollback_at", "remaining"):
        some = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"ix_stack_{column.removesuffix('_at')}", "stack", [column], sqlite_where=some)
    op.create_index("ix_stack_name", "stack", ["tenant", "list_group", "name", "id"])
    nested = sa.text("parent_id IS NOT NULL")
    op.create_index("ix_stack_parent", "stack", ["parent_id", "parent_resource_id"], sqlite_where=nested)
    op.create_index("ix_stack_root", "stack", ["root_id"])
    op.create_index("ix_stack_list", "stack", ["tenant", "list_group", "created_at", "id"])
    op.create_index("ix_stack_status", "stack", ["tenant", "status", "list_group", "created_at", "id"])


def _stack_tag() -> None:
    create_table(
        "stack_tag",
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("tag", sa.String(length=80), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("stack_id", "tag"),
    )
    op.create_index("ix_stack_tag_tag", "stack_tag", ["tag"])
    op.create_index("ix_stack_tag_project", "stack_tag", ["project_id", "tag", "created_at", "stack_id"])


def _task() -> None:
    create_table(
        "task",
        sa.Column("id", row_id(), autoincrement=False, nullable=False),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("resource_id", row_id(), nullable=True),
        sa.Column("spare_id", row_id(), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("pending", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("member", sa.String(length=320), nullable=True),
        sa.Column("ready_at", sa.Double(), nullable=True),
        sa.Column("claimed_at", sa.Double(), nullable=True),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("timeout", sa.Double(), nullable=True),
        sa.Column("stop_by", sa.Double(), nullable=True),
        sa.Column("retries_left", sa.Integer(), nullable=False),
        sa.Column("redelivered", sa.Integer(), nullable=False),
        sa.Column("finish_id", row_id(), nullable=True),
        sa.Column("definition", long_text(), nullable=True),
        sa.Column("standing", sa.String(length=8), nullable=False),
        sa.Column("restricted", long_text(), nullable=False),
        sa.Column("inputs", long_text(), nullable=False),
        sa.Column("successors", long_text(), nullable=False),
        sa.Column("waits_on", sa.String(length=64), nullable=True),
        sa.Column("hooks", long_text(), nullable=True),
        sa.Column("hook", sa.String(length=16), nullable=True),
        sa.Column("stepped", sa.Boolean(), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=True),
        sa.Column("losses", long_text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_task_due", "task", ["due_at", "shard"])
    op.create_index("ix_task_member", "task", ["member"])
    op.create_index("ix_task_stack", "task", ["stack_id"])
    op.create_index("ix_task_traversal", "task", ["traversal", "state"])
    waiting = sa.text("waits_on IS NOT NULL")
    op.create_index("ix_task_waits_on", "task", ["waits_on"], sqlite_where=waiting)


def _traversal() -> None:
    create_table(
        "traversal",
        sa.Column("id", row_id(), autoincrement=False, nullable=False),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("open_tasks", sa.Integer(), nullable=False),
        sa.Column("held_tasks", sa.Integer(), nullable=False),
        sa.Column("failure", long_text(), nullable=True),
        sa.Column("failure_cause", long_text(), nullable=True),
        sa.Column("aborted", sa.Boolean(), nullable=False),
        sa.Column("deadline_policy", sa.String(length=10), nullable=False),
        sa.Column("waits_for_paused_children", sa.Boolean(), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_traversal_due", "traversal", ["due_at", "shard"])
    op.create_index("ix_traversal_stack", "traversal", ["stack_id"])
    op.create_index("ix_traversal_traversal", "traversal", ["traversal"])


def upgrade() -> None:
    """Create all tables."""
    _conductor()
    _content()
    _content_use()
    _credential()
    _drift()
    _event()
    _event_delivery()
    _event_sink()
    _imported_key()
    _project()
    _resource()
    _setting()
    _snapshot()
    _software_config()
    _software_deployment()
    _software_server()
    _stack()
    _stack_tag()
    _task()
    _traversal()
