"""The tables.  Everything that must survive is a row; memory and messages are caches of it.

Instants are seconds since the epoch (UTC) as double floats, so that one comparison means the same on
SQLite, PostgreSQL and MariaDB.  Migrations in `migrations/` bring a database to exactly this state (a
test compares them).
"""

import typing

import sqlalchemy as sa

from .column_types import CleanText, Instant, JsonText, LongText, RowId

metadata = sa.MetaData()


def _uuid(name: str, **options: typing.Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(36), **options)


#: Facts about the installation that must never change under running daemons, such as the shard count.
setting = sa.Table(
    "setting",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", JsonText, nullable=False),
)

#: Projects that have or had something: their rows are locks, see projects.py.
project = sa.Table(
    "project",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    # {name: limit}, where an admin has set another than the default; -1: no limit.
    sa.Column("quotas", JsonText(dict)),
    # How much it has of what quotas limit: see usage.py.
    *(
        sa.Column(name, sa.BigInteger, nullable=False, default=0)
        for name in ("stacks", "resources", "snapshots", "goal_bytes")
    ),
    *(
        sa.Column(name, sa.BigInteger, nullable=False, default=0)
        for name in ("software_configs", "software_deployments", "software_bytes")
    ),
)

#: Templates, environments and file sets, addressed by the SHA-256 of their canonical JSON text.
content = sa.Table(
    "content",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("body", JsonText(dict), nullable=False),
    # When it was put first, or marked again; see content.py.
    sa.Column("created_at", Instant, nullable=False),
)

#: Which contents a stack holds on to, by its current goal and by the last complete one, or a snapshot.
content_use = sa.Table(
    "content_use",
    metadata,
    sa.Column("content_id", sa.String(64), primary_key=True),
    _uuid("holder_id", primary_key=True),
    sa.Index("ix_content_use_holder", "holder_id"),
)

LIVING = (0, 1)
"""Values of `list_group` of top-level and of nested stacks that are not deleted."""
_LIST_GROUP = "CASE WHEN parent_id IS NULL THEN 0 ELSE 1 END + CASE WHEN deleted_at IS NULL THEN 0 ELSE 2 END"
stack = sa.Table(
    "stack",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("tenant", sa.String(64), key="project_id", nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    # The name while a top-level stack lives, NULL for nested and deleted ones: NULLs never collide, so
    # one unique constraint works alike on all three databases.
    sa.Column("live_name", sa.String(255)),
    _uuid("parent_id"),
    sa.Column("parent_resource_id", RowId),
    _uuid("root_id", nullable=False),
    sa.Column("depth", sa.Integer, nullable=False, default=0),
    sa.Column("owner", sa.String(255)),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", CleanText, nullable=False, default=""),
    # Of a FAILED one: see rows.FailureCause.
    sa.Column("failure_cause", JsonText(dict)),
    _uuid("traversal", nullable=False),
    sa.Column("shard", sa.Integer, nullable=False),
    sa.Column("deadline_at", Instant),
    # Seconds that were left when the clock stopped, because all that is unfinished is held at breakpoints.
    sa.Column("remaining", Instant),
    # Since when a failed stack waits to be rolled back.
    sa.Column("rollback_at", Instant),
    sa.Column("timeout_mins", sa.Integer),
    sa.Column("template_id", sa.String(64), nullable=False),
    sa.Column("environment_id", sa.String(64), nullable=False),
    sa.Column("files_id", sa.String(64), nullable=False),
    # As supplied, hidden ones sealed.
    sa.Column("parameters", JsonText(dict), nullable=False),
    # Of a root: bytes of its goal, and resources of the whole tree, as its last request has counted them.
    sa.Column("goal_size", sa.Integer, nullable=False, default=0),
    sa.Column("tree_resources", sa.Integer, nullable=False, default=0),
    # Resources of the stack's own goal.
    sa.Column("own_resources", sa.Integer, nullable=False, default=0),
    # Of a root: resources of the tree by which it has grown above tree_resources.
    sa.Column("excess_resources", sa.Integer, nullable=False, default=0),
    # The last complete goal, for rollback: {"template", "environment", "files", "parameters"}.
    sa.Column("previous", JsonText(dict)),
    # As the API shows them: every parameter's value as a string, hidden ones masked.
    sa.Column("parameter_view", JsonText(dict), nullable=False),
    # {name: {"value": residual, "description": text}}
    sa.Column("outputs", JsonText(dict), nullable=False),
    sa.Column("description", CleanText, nullable=False, default=""),
    sa.Column("disable_rollback", sa.Boolean, nullable=False, default=True),
    sa.Column("abort_on_breakpoint", sa.Boolean, nullable=False, default=False),
    # Whether its root has event sinks.
    sa.Column("has_sinks", sa.Boolean, nullable=False, default=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant),
    sa.Column("deleted_at", Instant),
    # By which lists find it: 1 for a nested one, and 2 more for a deleted one.  The database computes it.
    sa.Column("list_group", sa.Integer, sa.Computed(_LIST_GROUP, persisted=True)),
    sa.UniqueConstraint("project_id", "live_name", name="uq_stack_live_name"),
    # On SQLite without the rows that have NULL, which are most: its planner (3.46) takes them for rows with
    # one value of many, and would read them all.  PostgreSQL and MariaDB have statistics of the values.
    sa.Index("ix_stack_list", "project_id", "list_group", "created_at", "id"),
    sa.Index("ix_stack_status", "project_id", "status", "list_group", "created_at", "id"),
    sa.Index("ix_stack_remaining", "remaining", sqlite_where=sa.text("remaining IS NOT NULL")),
    sa.Index("ix_stack_deadline", "deadline_at", sqlite_where=sa.text("deadline_at IS NOT NULL")),
    sa.Index("ix_stack_rollback", "rollback_at", sqlite_where=sa.text("rollback_at IS NOT NULL")),
    sa.Index("ix_stack_deleted", "deleted_at", sqlite_where=sa.text("deleted_at IS NOT NULL")),
    sa.Index("ix_stack_root", "root_id"),
    sa.Index(
        "ix_stack_parent", "parent_id", "parent_resource_id", sqlite_where=sa.text("parent_id IS NOT NULL")
    ),
    sa.Index("ix_stack_name", "project_id", "list_group", "name", "id"),
)
STACK_COLUMNS = tuple(column.label(column.key) for column in stack.c if column.computed is None)
"""To select stacks: a column's name in the database may differ from its name here."""

#: Credentials that users have delegated, so that work continues when their tokens have expired.  A root stack
#: has one for all stacks nested in it.
credential = sa.Table(
    "credential",
    metadata,
    _uuid("root_id", primary_key=True),
    sa.Column("body", JsonText, nullable=False),  # sealed
    # Of the user whose rights it gives: a user's name is unique in one domain only.
    sa.Column("user_id", sa.String(64)),
    sa.Column("created_at", Instant, nullable=False),
    # From when on it may be revoked, because the stack is deleted.
    sa.Column("unused_at", Instant),
    sa.Index("ix_credential_unused", "unused_at"),
)

#: Keys and accounts by which guests and clients of imported resources act, made by the service before.
imported_key = sa.Table(
    "imported_key",
    metadata,
    _uuid("id", primary_key=True),  # Made of the key and the resource.
    # The access key, or the id of a user at Keystone; several resources may have one.
    sa.Column("key", sa.String(64), nullable=False),
    _uuid("stack_id", nullable=False),
    sa.Column("resource_id", RowId, nullable=False),
    sa.Column("secret", JsonText),  # sealed; NULL: an account
    sa.Index("ix_imported_key_key", "key"),
    sa.Index("ix_imported_key_stack", "stack_id"),
)

stack_tag = sa.Table(
    "stack_tag",
    metadata,
    _uuid("stack_id", primary_key=True),
    sa.Column("tag", sa.String(80), primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    # The stack's, for the lists of the stacks with a tag.
    sa.Column("project_id", sa.String(64), nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Index("ix_stack_tag_tag", "tag"),
    sa.Index("ix_stack_tag_project", "project_id", "tag", "created_at", "stack_id"),
)

resource = sa.Table(
    "resource",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=False),
    _uuid("stack_id", nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("type", LongText, nullable=False),  # as written in the template; may be a URL
    sa.Column("plugin", LongText, nullable=False),  # after the environment's mapping
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", CleanText, nullable=False, default=""),
    # Of a FAILED one: whether its action was cancelled before its end.
    sa.Column("cancelled", sa.Boolean, nullable=False, default=False),
    # However long: an object that a plugin has made outside is never forgotten.
    sa.Column("physical_id", CleanText),
    # The value of get_resource (JSON), known once the resource is created.
    sa.Column("reference_id", JsonText),
    # The goal last applied: the task's definition, see engine/planning/plan.py.
    sa.Column("definition", JsonText(dict)),
    # As given to the plugin; sealed values stay sealed.
    sa.Column("properties", JsonText(dict)),
    sa.Column("attributes", JsonText(dict)),
    sa.Column("metadata", JsonText(dict)),
    # The plugin's own memory.
    sa.Column("data", JsonText(dict)),
    # Ids of the resource rows this one needs; deletion runs against these edges.
    sa.Column("requires", JsonText(list), nullable=False),
    sa.Column("replaces", RowId),
    sa.Column("replaced_by", RowId),
    # Whether it takes the place of its own replacement again, until it is updated.
    sa.Column("reinstated", sa.Boolean, nullable=False, default=False),
    # Whether a user has marked it unhealthy since its last action: an update replaces it.
    sa.Column("unhealthy", sa.Boolean, nullable=False, default=False),
    # Progress token of the action that runs now, as the plugin returned it.
    sa.Column("progress", JsonText(dict)),
    # Idempotency key of the action that runs now, stored before anything is made outside.
    _uuid("key"),
    # Grows with every change of metadata; the fence for signals.
    sa.Column("generation", sa.Integer, nullable=False, default=0),
    # The snapshot that keeps the row: a copy of a resource, which is no resource of the stack itself.
    _uuid("snapshot_id"),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Index("ix_resource_stack", "stack_id", "name"),
)

snapshot = sa.Table(
    "snapshot",
    metadata,
    _uuid("id", primary_key=True),
    _uuid("stack_id", nullable=False),
    sa.Column("name", sa.String(255)),
    # CREATE, then DELETE.
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", CleanText, nullable=False, default=""),
    # Its present or last traversal: one of the stack, or one that deletes the snapshot alone.
    _uuid("traversal", nullable=False),
    # The stack's goal of that time: {"template", "environment", "files", "parameters"}.
    sa.Column("goal", JsonText(dict), nullable=False),
    sa.Column("goal_size", sa.Integer, nullable=False, default=0),
    sa.Column("tags", JsonText(list), nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Index("ix_snapshot_stack", "stack_id", "created_at"),
    sa.Index("ix_snapshot_traversal", "traversal"),
)

#: One attempt to bring a stack to one goal; each deletion of a single snapshot is a further one.
traversal = sa.Table(
    "traversal",
    metadata,
    # The traversal number: task.finish_id refers to it.
    sa.Column("id", RowId, primary_key=True, autoincrement=False),
    _uuid("traversal", nullable=False),
    _uuid("stack_id", nullable=False),
    sa.Column("shard", sa.Integer, nullable=False),
    # Its action on the stack; NULL: no action, it only brings the purge of a task.
    sa.Column("action", sa.String(16)),
    sa.Column("state", sa.String(10), nullable=False),
    # Numbers of its tasks that are not final, and of its tasks that are held.
    sa.Column("open_tasks", sa.Integer, nullable=False),
    sa.Column("held_tasks", sa.Integer, nullable=False, default=0),
    # Why it fails: the first cause; and whether that is a breakpoint that ends the action.
    sa.Column("failure", CleanText),
    sa.Column("failure_cause", JsonText(dict)),
    sa.Column("aborted", sa.Boolean, nullable=False, default=False),
    # Whether the stack's deadline pauses while all that is unfinished is held.
    sa.Column("deadline_policy", sa.String(10), nullable=False),
    # The deadline of a nested stack that one of its tasks waits for was paused: it may pause with that one.
    sa.Column("waits_for_paused_children", sa.Boolean, nullable=False, default=False),
    sa.Column("request", sa.String(64)),
    # When the purge may take it, with its tasks; NULL while it is running.
    sa.Column("due_at", Instant),
    sa.Index("ix_traversal_due", "due_at", "shard"),
    sa.Index("ix_traversal_traversal", "traversal"),
    sa.Index("ix_traversal_stack", "stack_id"),
)

task = sa.Table(
    "task",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=False),
    _uuid("traversal", nullable=False),
    _uuid("stack_id", nullable=False),
    sa.Column("resource_id", RowId, nullable=False),
    # For an update: the id of the resource's replacement, should it need one.  For a snapshot: of its copy.
    sa.Column("spare_id", RowId),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    # Unfinished predecessors.
    sa.Column("pending", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("member", sa.String(320)),
    # Since when it is ready to be claimed; NULL: a predecessor's conductor has claimed it at once.
    sa.Column("ready_at", Instant),
    # The instant of its last claim, which diagnoses of unfinished tasks read.
    sa.Column("claimed_at", Instant),
    sa.Column("shard", sa.Integer, nullable=False),
    sa.Column("due_at", Instant),
    # When the resource's own timeout strikes; counted from the first claim, kept over retries of polls.
    sa.Column("expires_at", Instant),
    sa.Column("timeout", Instant),  # seconds
    # Until when the step that was asked to stop may run; then the task is taken away from its conductor.
    sa.Column("stop_by", Instant),
    sa.Column("retries_left", sa.Integer, nullable=False, default=0),
    sa.Column("redelivered", sa.Integer, nullable=False, default=0),
    sa.Column("finish_id", RowId),  # the id of the traversal's row
    sa.Column("definition", JsonText(dict)),
    sa.Column("standing", sa.String(8), nullable=False, default="own"),  # see `states.py`
    sa.Column("restricted", JsonText(list), nullable=False),  # forbidden of an update: update, replace
    sa.Column("inputs", JsonText(dict), nullable=False),  # {resource name: resource id}
    sa.Column("successors", JsonText(list), nullable=False),  # [task id]
    # resource:ID (its metadata), stack:ID (its end), step:TASK:ATTEMPT (a thread's end).
    sa.Column("waits_on", sa.String(64)),
    # Breakpoints still ahead: {"pre-create": {"timeout": seconds, "then": "fail", "abort": true}}.
    sa.Column("hooks", JsonText(dict)),
    # The breakpoint at which it is held now.
    sa.Column("hook", sa.String(16)),
    # The user single-steps: the task is held before it starts, even without hooks.
    sa.Column("stepped", sa.Boolean, nullable=False, default=False),
    # The user's request that it belongs to; NULL: a duty started it.
    sa.Column("request", sa.String(64)),
    # Conductors that were lost while they held it, since a step of it ended last; see losses.py.
    sa.Column("losses", JsonText),
    sa.Index("ix_task_due", "due_at", "shard"),
    sa.Index("ix_task_traversal", "traversal", "state"),
    sa.Index("ix_task_stack", "stack_id"),
    sa.Index("ix_task_member", "member"),
    # Without the rows that wait for nothing: see the indexes of the stacks.
    sa.Index("ix_task_waits_on", "waits_on", sqlite_where=sa.text("waits_on IS NOT NULL")),
)

#: Software configs, which users or resources have made; a deployment's own one has its inputs' values.
software_config = sa.Table(
    "software_config",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("project_id", sa.String(64), nullable=False),
    sa.Column("name", sa.String(255)),
    # Its `group`, a reserved word of SQL.
    sa.Column("tool", sa.String(255)),
    # Sealed: see sealing/software.py.
    sa.Column("body", JsonText, nullable=False),
    # Bytes of the body in clear, as JSON.
    sa.Column("size", sa.Integer, nullable=False, default=0),
    # The resource to which it belongs, and which alone changes and deletes it; NULL: the API has made it.
    _uuid("stack_id"),
    sa.Column("resource_id", RowId),
    sa.Column("created_at", Instant, nullable=False),
    sa.Index("ix_software_config_project", "project_id", "created_at", "id"),
    sa.Index("ix_software_config_resource", "resource_id"),
)

#: Configs that servers are to apply.
software_deployment = sa.Table(
    "software_deployment",
    metadata,
    _uuid("id", primary_key=True),
    sa.Column("project_id", sa.String(64), nullable=False),
    sa.Column("server_id", sa.String(255), nullable=False),
    _uuid("config_id", nullable=False),
    sa.Column("action", sa.String(255)),
    sa.Column("status", sa.String(255)),
    sa.Column("reason", CleanText, nullable=False, default=""),
    # Values, sealed; NULL: none.
    sa.Column("input_values", JsonText),
    sa.Column("output_values", JsonText),
    # Bytes of both in clear, as JSON.
    sa.Column("input_size", sa.Integer, nullable=False, default=0),
    sa.Column("output_size", sa.Integer, nullable=False, default=0),
    # The resource that it belongs to, whose tasks wait for its end; NULL: the API has made it.
    _uuid("stack_id"),
    sa.Column("resource_id", RowId),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant),
    sa.Index("ix_software_deployment_project", "project_id", "created_at", "id"),
    sa.Index("ix_software_deployment_server", "project_id", "server_id", "created_at", "id"),
    sa.Index("ix_software_deployment_config", "config_id"),
    sa.Index("ix_software_deployment_resource", "resource_id"),
)

#: Servers that have or had deployments, and the instants at which their guests' metadata has changed.
software_server = sa.Table(
    "software_server",
    metadata,
    sa.Column("server_id", sa.String(255), primary_key=True),
    sa.Column("project_id", sa.String(64), primary_key=True),
    # Whole seconds, and later with each change: the Last-Modified of HTTP.
    sa.Column("changed_at", Instant, nullable=False),
    # When its guest read it last, the `changed_at` of that, and by which transport; NULL: never.
    sa.Column("read_at", Instant),
    sa.Column("read_version", Instant),
    sa.Column("read_by", sa.String(32)),
    # Since when it has no deployment; NULL: it has some.
    sa.Column("unused_at", Instant),
    sa.Index("ix_software_server_unused", "unused_at"),
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=True),
    _uuid("uuid", nullable=False),
    _uuid("stack_id", nullable=False),
    sa.Column("resource_name", sa.String(255), nullable=False),
    sa.Column("resource_type", LongText, nullable=False),
    sa.Column("physical_id", CleanText),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", CleanText, nullable=False, default=""),
    sa.Column("properties", JsonText(dict)),
    # Which conductor wrote it; NULL for the API.
    sa.Column("conductor", sa.String(255)),
    sa.Column("at", Instant, nullable=False),
    # The attempt of the task that wrote it, and since when that was ready and claimed; NULL for the API.
    sa.Column("attempt", sa.Integer),
    sa.Column("ready_at", Instant),
    sa.Column("claimed_at", Instant),
    sa.Index("ix_event_stack", "stack_id", "id"),
    sa.Index("ix_event_resource", "stack_id", "resource_name", "id"),
    sa.Index("ix_event_at", "at"),
    sa.Index("ix_event_uuid", "uuid", unique=True),
)

#: Projects whose stacks are observed, and when they are next; see drift.py.
drift_project = sa.Table(
    "drift_project",
    metadata,
    sa.Column("project_id", sa.String(64), primary_key=True),
    sa.Column("shard", sa.Integer, nullable=False),  # of the project, by its id
    sa.Column("due_at", Instant, nullable=False),
    # When the last observation of its stacks ended; NULL: there was none.
    sa.Column("observed_at", Instant),
    sa.Index("ix_drift_project_due", "due_at"),
)

#: The outcome of the last observation of a stack that has resources which are observed.
drift_stack = sa.Table(
    "drift_stack",
    metadata,
    _uuid("stack_id", primary_key=True),
    _uuid("root_id", nullable=False),
    # The stack's at the observation: another one now means that the outcome is out of date.
    _uuid("traversal", nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # Of an UNKNOWN one.
    sa.Column("reason", CleanText, nullable=False, default=""),
    # Since when it has the state.
    sa.Column("since", Instant, nullable=False),
    # When the stack began to heal itself last.
    sa.Column("healed_at", Instant),
    sa.Index("ix_drift_stack_root", "root_id"),
)

#: Resources whose things are gone, or differ from the template.
drift_resource = sa.Table(
    "drift_resource",
    metadata,
    sa.Column("resource_id", RowId, primary_key=True, autoincrement=False),
    _uuid("stack_id", nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("since", Instant, nullable=False),
    # {name: {"template": value, "cloud": value}}, secrets masked.
    sa.Column("properties", JsonText(dict), nullable=False),
    sa.Index("ix_drift_resource_stack", "stack_id"),
)

#: Queues to which the events of a root stack, and of all stacks nested in it, are sent.
event_sink = sa.Table(
    "event_sink",
    metadata,
    _uuid("id", primary_key=True),
    _uuid("root_id", nullable=False),
    sa.Column("shard", sa.Integer, nullable=False),  # the root's
    sa.Column("target", sa.String(64), nullable=False),
    sa.Column("ttl", sa.Integer, nullable=False),  # seconds
    # When its owner may send; later than now while one sends, and after a failure.
    sa.Column("due_at", Instant, nullable=False),
    # Times in a row that sending failed.
    sa.Column("failures", sa.Integer, nullable=False, default=0),
    # Since when it gets no events any more: the stack does not name it, or is deleted.
    sa.Column("closed_at", Instant),
    sa.Index("ix_event_sink_root", "root_id"),
    sa.Index("ix_event_sink_closed", "closed_at"),
)

#: Messages for event sinks that are not sent yet, stored with their events.
event_delivery = sa.Table(
    "event_delivery",
    metadata,
    sa.Column("id", RowId, primary_key=True, autoincrement=True),
    _uuid("sink_id", nullable=False),
    sa.Column("at", Instant, nullable=False),  # the event's
    # Whole, because the event's row, and its stack's, may be purged before.
    sa.Column("body", JsonText, nullable=False),
    sa.Index("ix_event_delivery_sink", "sink_id", "id"),
)

conductor = sa.Table(
    "conductor",
    metadata,
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("incarnation", sa.String(320), nullable=False),
    # The state that the conductor reports: active, draining, stopped.
    sa.Column("state", sa.String(10), nullable=False),
    # The state that the operator wants: active or draining.
    sa.Column("wanted", sa.String(10), nullable=False, default="active"),
    # Who asked for that, when, and why; "" and NULL: nobody did, or said.
    sa.Column("wanted_by", CleanText, nullable=False, default=""),
    sa.Column("wanted_at", Instant),
    sa.Column("wanted_reason", CleanText, nullable=False, default=""),
    sa.Column("weight", Instant, nullable=False, default=1.0),
    sa.Column("shards_owned", sa.Integer, nullable=False, default=0),
    sa.Column("ring_version", sa.String(64), nullable=False, default=""),
    sa.Column("threads", sa.Integer, nullable=False, default=0),
    sa.Column("threads_busy", sa.Integer, nullable=False, default=0),
    sa.Column("threads_written_off", sa.Integer, nullable=False, default=0),
    # Of the messages that it understands; "" if it never said.
    sa.Column("rpc_version", sa.String(16), nullable=False, default=""),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("heartbeat_at", Instant, nullable=False),
    # revisions.NUMBER of its code.
    sa.Column("schema_number", sa.Integer, nullable=False),
    # Seconds by which its host's clock is ahead of the database's.
    sa.Column("clock_ahead", Instant, nullable=False, default=0.0),
)
