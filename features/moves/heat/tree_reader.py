"""Reads the rows of some trees from Heat's database, and makes values of them whose types are known."""

import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ....shapes import Json, JsonMap
from . import tables
from .border import within
from .cipher import HeatCipher
from .fields import HeatFields, check_sections, numbers, texts_by_name
from .rows import (
    ACTIONS,
    STATUSES,
    HeatConfig,
    HeatDeployment,
    HeatEvent,
    HeatResource,
    HeatSnapshot,
    HeatStack,
    HeatTemplate,
    HeatTree,
)

IDS = 500
"""Ids in one statement."""
DEEPEST = 50
Row = Mapping[typing.Any, typing.Any]


def rows_of(
    conn: Connection,
    table: sa.Table,
    column: str,
    ids: Iterable[typing.Any],
    absent: Collection[tables.Part] = (),
    *,
    where: sa.ColumnElement[bool] | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table in which the column has one of these values, by few statements.

    :param ids: the values; those of another type than the column's are in no row.
    :param absent: tables, which have no rows, and columns, which the rows lack.
    :param where: a further condition; None: there is none.
    """
    if table in absent:
        return
    kind = int if isinstance(table.c[column].type, sa.Integer) else str
    ordered = sorted({key for key in ids if isinstance(key, kind) and not isinstance(key, bool)})
    columns = [item.label(item.key) for item in table.c if item not in absent]
    for start in range(0, len(ordered), IDS):
        part = ordered[start : start + IDS]
        query = (
            sa.select(*columns)
            .where(table.c[column].in_(part), sa.true() if where is None else where)
            .order_by(table.c[table.primary_key.columns.keys()[0]])
        )
        yield from map(dict, conn.execute(query).mappings())


def _grouped(rows: Iterable[Row], key: str) -> dict[typing.Any, list[Row]]:
    groups: dict[typing.Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


class TreeReader:
    """The rows of some trees; each table is read by few statements.

    :param absent: tables and columns that the database does not have.
    """

    def __init__(self, conn: Connection, cipher: HeatCipher, *, absent: frozenset[tables.Part]) -> None:
        self._conn = conn
        self._cipher = cipher
        self._absent = absent

    def trees(self, ids: Sequence[str], *, with_deleted: bool) -> list[HeatTree]:
        """Return the trees of these root stacks."""
        rows = self._stacks(ids, with_deleted=with_deleted)
        root_of = _root_of(rows)
        stack_ids = list(rows)
        resources = list(rows_of(self._conn, tables.resource, "stack_id", stack_ids))
        self._data = _grouped(
            rows_of(self._conn, tables.resource_data, "resource_id", (row["id"] for row in resources)),
            "resource_id",
        )
        events = list(rows_of(self._conn, tables.event, "stack_id", stack_ids))
        value_ids = {row[name] for row in resources for name in ("rsrc_prop_data_id", "attr_data_id")}
        value_ids |= {row["rsrc_prop_data_id"] for row in events}
        self._values = self._by_id(tables.resource_properties_data, value_ids)
        self._creds = self._by_id(tables.user_creds, (row["user_creds_id"] for row in rows.values()))
        self._tags = _grouped(rows_of(self._conn, tables.stack_tag, "stack_id", stack_ids), "stack_id")
        self._events = _grouped(events, "stack_id")
        snapshots = list(rows_of(self._conn, tables.snapshot, "stack_id", stack_ids, self._absent))
        self._snapshots = _grouped(snapshots, "stack_id")
        snapshot_ids = [row["id"] for row in snapshots]
        parts = rows_of(self._conn, tables.resource_snapshot, "snapshot_id", snapshot_ids, self._absent)
        self._parts = _grouped(parts, "snapshot_id")
        self._locks = {
            row["stack_id"]: row["engine_id"] or ""
            for row in rows_of(self._conn, tables.stack_lock, "stack_id", stack_ids)
        }
        self._resources = _grouped(resources, "stack_id")
        self._templates = self._read_templates(rows.values(), resources)
        members: dict[str, list[Row]] = {stack_id: [] for stack_id in ids if stack_id in rows}
        for stack_id, row in rows.items():
            members[root_of[stack_id]].append(row)
        return [self._tree(group) for group in members.values()]

    def _stacks(self, ids: Sequence[str], *, with_deleted: bool) -> dict[str, Row]:
        """Return the rows of the roots and of all stacks nested in them, those nearest to the roots first."""
        rows: dict[str, Row] = {row["id"]: row for row in rows_of(self._conn, tables.stack, "id", ids)}
        level = list(rows)
        for _ in range(DEEPEST):
            below = [
                row
                for row in rows_of(self._conn, tables.stack, "owner_id", level)
                if row["deleted_at"] is None or with_deleted
            ]
            level = [row["id"] for row in below if row["id"] not in rows]
            rows.update((row["id"], row) for row in below)
            if not level:
                break
        return rows

    def _by_id(self, table: sa.Table, ids: Iterable[int | None]) -> dict[int, Row]:
        """Return rows by their numbers, which Heat itself gives, and no user can name."""
        return {row["id"]: row for row in rows_of(self._conn, table, "id", {i for i in ids if i is not None})}

    def _read_templates(self, stacks: Iterable[Row], resources: Iterable[Row]) -> dict[int, Row]:
        ids = {row[name] for row in stacks for name in ("raw_template_id", "prev_raw_template_id")}
        rows = self._by_id(tables.raw_template, ids | {row["current_template_id"] for row in resources})
        files = self._by_id(tables.raw_template_files, {row["files_id"] for row in rows.values()})
        return {key: {**row, "files": _files_of(row, files)} for key, row in rows.items()}

    def _tree(self, rows: Sequence[Row]) -> HeatTree:
        """Return a tree; one with faults where a row of it cannot be read."""
        return within(lambda: self._read(rows), lambda reasons: HeatTree(root_alone(rows[0]), faults=reasons))

    def _read(self, rows: Sequence[Row]) -> HeatTree:
        root, *nested = [self._stack(row) for row in rows]
        ids = {stack.template_id for stack in (root, *nested)}
        ids |= {stack.previous_template_id or 0 for stack in (root, *nested)}
        ids |= {item.template_id or 0 for stack in (root, *nested) for item in stack.resources}
        templates = {
            key: self._template(self._templates[key]) for key in sorted(ids) if key in self._templates
        }
        return HeatTree(root, nested, templates)

    def _stack(self, row: Row) -> HeatStack:
        fields = fields_of(tables.stack, row)
        stack_id = fields.text("id")
        creds_id = fields.number_or_none("user_creds_id")
        creds = self._creds.get(creds_id or 0)
        return HeatStack(
            id=stack_id,
            name=fields.text("name"),
            project_id=fields.text("tenant"),
            action=fields.one_of("action", ACTIONS),
            status=fields.one_of("status", STATUSES),
            reason=fields.text_or_empty("status_reason"),
            created_at=fields.instant("created_at") or 0.0,
            updated_at=fields.instant("updated_at"),
            deleted_at=fields.instant("deleted_at"),
            template_id=fields.number("raw_template_id"),
            previous_template_id=fields.number_or_none("prev_raw_template_id"),
            username=fields.text_or_none("username"),
            owner_id=fields.text_or_none("owner_id"),
            parent_resource_name=fields.text_or_none("parent_resource_name"),
            timeout=fields.minutes("timeout"),
            disable_rollback=fields.flag("disable_rollback"),
            user_project_id=fields.text_or_none("stack_user_project_id"),
            is_backup=fields.flag("backup"),
            locked_by=self._locks.get(stack_id),
            traversal=fields.text_or_none("current_traversal"),
            creds_id=creds_id,
            trust_id=None if creds is None else self._trust(creds),
            trustor_id=None
            if creds is None
            else fields_of(tables.user_creds, creds).text_or_none("trustor_user_id"),
            tags=[fields_of(tables.stack_tag, tag).text("tag") for tag in self._tags.get(stack_id, ())],
            resources=[self._resource(item) for item in self._resources.get(stack_id, ())],
            events=[self._event(item) for item in self._events.get(stack_id, ())],
            snapshots=[
                _snapshot(item, self._parts.get(item["id"], ())) for item in self._snapshots.get(stack_id, ())
            ],
        )

    def _trust(self, row: Row) -> str | None:
        fields = fields_of(tables.user_creds, row)
        return self._cipher.open(fields.text_or_none("decrypt_method"), fields.text_or_none("trust_id"))

    def _resource(self, row: Row) -> HeatResource:
        fields = fields_of(tables.resource, row)
        subject = f"resource {fields.text('name')}"
        fields = fields.about(subject)
        number = fields.number("id")
        value_ids = [fields.number_or_none(name) for name in ("rsrc_prop_data_id", "attr_data_id")]
        values = [None if key is None else self._values.get(key) for key in value_ids]
        stored = [value for value in values if value is not None]
        properties = self._opened(values[0], subject)
        if value_ids[0] is None:  # Older releases have stored them in the resource's own row.
            is_encrypted = fields.flag("properties_data_encrypted")
            properties = self._in_clear(fields, "properties_data", is_encrypted=is_encrypted)
        return HeatResource(
            id=number,
            uuid=fields.text_or_empty("uuid"),
            stack_id=fields.text("stack_id"),
            name=fields.text("name"),
            action=fields.one_of("action", ACTIONS),
            status=fields.one_of("status", STATUSES),
            reason=fields.text_or_empty("status_reason"),
            created_at=fields.instant("created_at") or 0.0,
            updated_at=fields.instant("updated_at") or fields.instant("created_at") or 0.0,
            physical_id=fields.text_or_none("physical_id") or None,
            metadata=fields.map("metadata"),
            properties=properties,
            attributes=self._opened(values[1], subject) or {},
            is_secret=fields.flag("properties_data_encrypted")
            or any(fields_of(tables.resource_properties_data, row).flag("encrypted") for row in stored),
            requires=numbers(fields, "requires"),
            data=self._data_of(number, subject),
            replaces=fields.number_or_none("replaces"),
            replaced_by=fields.number_or_none("replaced_by"),
            template_id=fields.number_or_none("current_template_id"),
        )

    def _event(self, row: Row) -> HeatEvent:
        fields = fields_of(tables.event, row).about("an event")
        return HeatEvent(
            uuid=fields.text("uuid"),
            stack_id=fields.text("stack_id"),
            resource_name=fields.text_or_empty("resource_name"),
            resource_type=fields.text_or_empty("resource_type"),
            physical_id=fields.text_or_none("physical_resource_id"),
            action=fields.text_or_empty("resource_action"),
            status=fields.text_or_empty("resource_status"),
            reason=fields.text_or_empty("resource_status_reason"),
            at=fields.instant("created_at") or 0.0,
            properties=self._opened(
                self._values.get(fields.number_or_none("rsrc_prop_data_id") or 0), "an event"
            ),
        )

    def _data_of(self, number: int, subject: str) -> dict[str, str]:
        """Return the values that a resource's type has stored, in clear."""
        data = {}
        for item in self._data.get(number, ()):
            fields = fields_of(tables.resource_data, item).about(subject)
            value = self._cipher.open(fields.text_or_none("decrypt_method"), fields.text_or_none("value"))
            if value is not None:
                data[fields.text("key")] = value
        return data

    def _opened(self, row: Row | None, subject: str) -> JsonMap | None:
        """Return the values of a row, in clear; None: there is none."""
        if row is None:
            return None
        fields = fields_of(tables.resource_properties_data, row).about(subject)
        return self._in_clear(fields, "data", is_encrypted=fields.flag("encrypted"))

    def _in_clear(self, fields: HeatFields, name: str, *, is_encrypted: bool) -> JsonMap | None:
        values = fields.map(name)
        if values is None or not is_encrypted:
            return values
        if not all(_is_pair(value) for value in values.values()):
            raise fields.damaged(name, "is marked as encrypted, and is not")
        return {key: self._cipher.open_json(pair) for key, pair in values.items()}

    def _template(self, row: Row) -> HeatTemplate:
        fields = fields_of(tables.raw_template, row)
        environment = dict(fields.map("environment") or {})
        check_sections(fields, "environment", environment, ENVIRONMENT)
        names = environment.get("encrypted_param_names") or []
        parameters = dict(environment.get("parameters") or {})
        if not all(isinstance(name, str) for name in names):
            raise fields.damaged("environment", "has encrypted_param_names that are not names")
        for name in names:
            value: Json = parameters.get(name)
            if _is_pair(value):
                parameters[name] = self._cipher.open(*value)
        if names:
            environment["parameters"] = parameters
        files = texts_by_name(fields, "files", fields.map("files"))
        return HeatTemplate(fields.map("template") or {}, environment, files)


ENVIRONMENT: Mapping[str, type] = {
    "parameters": dict,
    "parameter_defaults": dict,
    "resource_registry": dict,
    "event_sinks": list,
    "encrypted_param_names": list,
}
"""The types of the sections of an environment."""
SNAPSHOT: Mapping[str, type] = {
    "environment": dict,
    "files": dict,
    "resources": dict,
    "tags": list,
    "template": dict,
}
"""The types of the sections of a snapshot's document."""
CONFIG: Mapping[str, type] = {"inputs": list, "outputs": list, "options": dict}
"""The types of the sections of a software config."""


def _files_of(row: Row, files: Mapping[int, Row]) -> typing.Any:
    """Return the files of a template, which newer releases store in a row of their own."""
    return row["files"] or (files[row["files_id"]]["files"] if row["files_id"] in files else None)


def fields_of(table: sa.Table, row: Row) -> HeatFields:
    """Return the fields of a row, whose errors name the column and the row."""
    key = next(iter(table.primary_key)).key
    return HeatFields(row, lambda name: f"{table.name}.{table.c[name].name}, id {row.get(key)}")


def root_alone(row: Row) -> HeatStack:
    """Return a root stack of whose rows one cannot be read: what the report shows of it."""
    texts = {name: str(row.get(name) or "") for name in ("id", "name", "tenant", "action", "status")}
    return HeatStack(
        id=texts["id"],
        name=texts["name"] or texts["id"],
        project_id=texts["tenant"],
        action=texts["action"],
        status=texts["status"],
        reason="",
        created_at=0.0,
        template_id=0,
    )


def _is_pair(value: Json) -> bool:
    """Return whether a value is a method with an encrypted text, as Heat stores both."""
    is_list = isinstance(value, list) and len(value) == 2
    return is_list and all(isinstance(item, str) for item in value)


def _root_of(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the id of each stack's root; the stacks around a stack come before it."""
    root_of: dict[str, str] = {}
    for stack_id, row in rows.items():
        owner = row["owner_id"]
        root_of[stack_id] = root_of.get(owner, stack_id)
    return root_of


def _snapshot(row: Row, parts: Sequence[Row]) -> HeatSnapshot:
    fields = fields_of(tables.snapshot, row).about("a snapshot")
    data = fields.map("data")
    if data is not None:
        check_sections(fields, "data", data, SNAPSHOT)
        check_sections(fields, "data", data.get("environment") or {}, ENVIRONMENT)
        resources = dict(data.get("resources") or {})
        for part in parts:
            of_resource = fields_of(tables.resource_snapshot, part).about("a snapshot")
            resources[of_resource.text("resource_name")] = of_resource.map("data")
        check_sections(fields, "data", resources, dict.fromkeys(resources, dict))
        for document in resources.values():
            check_sections(fields, "data", document or {}, {"resource_data": dict})
        data = {**data, "resources": resources}
    return HeatSnapshot(
        id=fields.text("id"),
        stack_id=fields.text("stack_id"),
        name=fields.text_or_none("name"),
        action="CREATE" if "action" not in row else fields.text_or_none("action") or "CREATE",
        status=fields.text_or_empty("status"),
        reason=fields.text_or_empty("status_reason"),
        created_at=fields.instant("created_at") or 0.0,
        data=data,
    )


def config_of(row: Row) -> HeatConfig:
    """Return a software config.

    :raises Damaged: it cannot be read.
    """
    fields = fields_of(tables.software_config, row).about("a software config")
    config = fields.map("config") or {}
    check_sections(fields, "config", config, CONFIG)
    for section in ("inputs", "outputs"):
        if not all(isinstance(item, dict) for item in config.get(section) or ()):
            raise fields.damaged("config", f"has {section} of a wrong type")
    return HeatConfig(
        fields.text("id"),
        fields.text("tenant"),
        fields.text_or_none("name"),
        fields.text_or_none("group"),
        config,
        fields.instant("created_at") or 0.0,
    )


def deployment_of(row: Row) -> HeatDeployment:
    """Return a software deployment.

    :raises Damaged: it cannot be read.
    """
    fields = fields_of(tables.software_deployment, row).about("a software deployment")
    return HeatDeployment(
        id=fields.text("id"),
        project_id=fields.text("tenant"),
        config_id=fields.text("config_id"),
        server_id=fields.text("server_id"),
        action=fields.text_or_none("action"),
        status=fields.text_or_none("status"),
        reason=fields.text_or_empty("status_reason"),
        created_at=fields.instant("created_at") or 0.0,
        updated_at=fields.instant("updated_at"),
        input_values=fields.map("input_values"),
        output_values=fields.map("output_values"),
    )
