"""Reads trees of stacks from Heat's database, page by page."""

import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ..shapes import Json, JsonMap
from . import heat_tables
from .crypt import HeatCipher, WrongKey
from .heat_rows import (
    HeatConfig,
    HeatDeployment,
    HeatEvent,
    HeatResource,
    HeatSnapshot,
    HeatStack,
    HeatTemplate,
    HeatTree,
)

PAGE = 100
"""Trees that are read together."""
IDS = 500
"""Ids in one statement."""
DEEPEST = 50
Row = Mapping[typing.Any, typing.Any]
T = typing.TypeVar("T")
REVISION = sa.table("alembic_version", sa.column("version_num"))
"""The table that names the revision of the schema."""


class UnfitDatabase(Exception):
    """The database is none of Heat's, or of a release that is not known; the text says which."""


@dataclass(frozen=True)
class Selection:
    """The root stacks to read.

    :ivar projects: ids of projects; empty: all.
    :ivar stacks: ids or names of stacks; empty: all.
    :ivar with_deleted: whether stacks are read that are deleted, and still stored.
    """

    projects: Sequence[str] = ()
    stacks: Sequence[str] = ()
    with_deleted: bool = False


class HeatDatabase:
    """A database of Heat's.  For one thread.

    :param engine: the engine of the database.
    :param cipher: opens encrypted values.
    """

    def __init__(self, engine: Engine, cipher: HeatCipher) -> None:
        self._engine = engine
        self._cipher = cipher
        self._absent: frozenset[heat_tables.Part] = frozenset()

    def check(self) -> None:
        """Check that the tables have the columns that are read.

        :raises UnfitDatabase: a table or a column is missing.
        """
        inspector = sa.inspect(self._engine)
        absent: set[heat_tables.Part] = set()
        for table in heat_tables.metadata.sorted_tables:
            if inspector.has_table(table.name):
                names = {column["name"] for column in inspector.get_columns(table.name)}
                absent.update(column for column in table.c if column.name not in names)
            elif table in heat_tables.LATER:
                absent.add(table)
            else:
                raise UnfitDatabase(f"it has no table {table.name}: it is none of Heat's")
            if missing := sorted(column.name for column in table.c if column in absent - heat_tables.LATER):
                raise UnfitDatabase(f"its table {table.name} has no column {', '.join(missing)}")
        self._absent = frozenset(absent)

    def notes(self) -> list[str]:
        """Return nothing: nothing of a database stays behind."""
        return []

    def check_schema(self, schemas: Mapping[str, str]) -> None:
        """Check that the schema is one of these, because rows are to be written.

        :param schemas: names of releases by the revisions of their schemas.
        :raises UnfitDatabase: it is of another revision.
        """
        revision = None
        if sa.inspect(self._engine).has_table(REVISION.name):
            with self._engine.connect() as conn:
                revision = conn.execute(sa.select(REVISION)).scalar()
        if revision not in schemas:
            names = ", ".join(f"{name} (revision {key})" for key, name in schemas.items())
            text = "has no revision" if revision is None else f"is of revision {revision}"
            raise UnfitDatabase(f"its schema {text}; stacks are written into that of {names} only")

    def check_key(self) -> None:
        """Check by a stored value, where there is one, that the key is Heat's.

        :raises WrongKey: it is another one, or none was given.
        """
        data = heat_tables.resource_data.c
        creds = heat_tables.user_creds.c
        with self._engine.connect() as conn:
            for method, value in ((data.decrypt_method, data.value), (creds.decrypt_method, creds.trust_id)):
                query = sa.select(method, value).where(method.is_not(None), method != "", value.is_not(None))
                for row in conn.execute(query.order_by(value.table.c.id.desc()).limit(1)):
                    self._cipher.open(*row)
        self._cipher.encrypt("")

    def write(self, function: Callable[[Connection], T]) -> T:
        """Return the result of a function that writes in one transaction."""
        with self._engine.begin() as conn:
            return function(conn)

    def count(self, selection: Selection) -> int:
        """Return the number of root stacks of a selection."""
        with self._engine.connect() as conn:
            query = sa.select(sa.func.count()).select_from(heat_tables.stack)
            return int(conn.execute(query.where(*_roots(selection))).scalar_one())

    def pages(
        self, selection: Selection, skip: Callable[[Sequence[str]], set[str]]
    ) -> Iterator[list[HeatTree]]:
        """Yield the trees of a selection, in the order of their ids.

        :param skip: function that returns the ids among those of a page whose trees are not to be read.
        """
        last = ""
        s = heat_tables.stack
        while True:
            with self._engine.connect() as conn:
                query = (
                    sa.select(s.c.id).where(s.c.id > last, *_roots(selection)).order_by(s.c.id).limit(PAGE)
                )
                ids = list(conn.execute(query).scalars())
                if not ids:
                    return
                last = ids[-1]
                skipped = skip(ids)
                chosen = [stack_id for stack_id in ids if stack_id not in skipped]
                yield _Page(conn, self._cipher, absent=self._absent).trees(
                    chosen, with_deleted=selection.with_deleted
                )

    def trees(self, ids: Sequence[str]) -> list[HeatTree]:
        """Return the trees of these root stacks with all nested stacks, deleted ones, too."""
        with self._engine.connect() as conn:
            return _Page(conn, self._cipher, absent=self._absent).trees(ids, with_deleted=True)

    def software(self, project_id: str, ids: Iterable[str]) -> tuple[list[HeatConfig], list[HeatDeployment]]:
        """Return a project's configs and deployments with these ids, and the configs of those deployments.

        Resources of a project can name things of other projects, to which they have no right.
        """
        of_deployments = heat_tables.software_deployment.c.tenant == project_id
        of_configs = heat_tables.software_config.c.tenant == project_id
        wanted_ids = set(ids)
        with self._engine.connect() as conn:
            rows = _of(conn, heat_tables.software_deployment, "id", wanted_ids, where=of_deployments)
            deployments = [_deployment(row) for row in rows]
            config_ids = {*wanted_ids, *(deployment.config_id for deployment in deployments)}
            rows = _of(conn, heat_tables.software_config, "id", config_ids, where=of_configs)
            return [_config(row) for row in rows], deployments

    def software_pages(self, selection: Selection) -> Iterator[tuple[list[HeatConfig], list[HeatDeployment]]]:
        """Yield all configs of the selection's projects, and then all their deployments, page by page.

        A deployment of another project's config is none: whoever named that config has no right to it.
        """
        c = heat_tables.software_config
        d = heat_tables.software_deployment
        of_project = sa.exists().where(c.c.id == d.c.config_id, c.c.tenant == d.c.tenant)
        for table in (c, d):
            last = ""
            while True:
                query = sa.select(table).where(table.c.id > last).order_by(table.c.id).limit(IDS)
                if selection.projects:
                    query = query.where(table.c.tenant.in_(list(selection.projects)))
                if table is d:
                    query = query.where(of_project)
                with self._engine.connect() as conn:
                    rows = list(conn.execute(query).mappings())
                if not rows:
                    break
                last = rows[-1]["id"]
                if table is c:
                    yield [_config(row) for row in rows], []
                else:
                    yield [], [_deployment(row) for row in rows]

    def claim(self, stack_ids: Sequence[str], engine_id: str, now: float) -> None:
        """Lock living root stacks for an engine that does not exist, and hide their trees as deleted ones.

        So Heat answers that there are no such stacks, and its engines leave them alone.

        :param now: seconds since the epoch; a whole number, by which `release` knows what was hidden.
        """
        table = heat_tables.stack_lock
        with self._engine.begin() as conn:
            conn.execute(sa.delete(table).where(table.c.stack_id.in_(stack_ids)))
            rows = [{"stack_id": key, "engine_id": engine_id, "created_at": now} for key in stack_ids]
            conn.execute(sa.insert(table), rows)
            _set_deleted(conn, stack_ids, before=None, after=now)

    def release(self, engine_id: str) -> int:
        """Take back all claims; return the number of root stacks."""
        table = heat_tables.stack_lock
        with self._engine.begin() as conn:
            query = sa.select(table.c.stack_id, table.c.created_at).where(table.c.engine_id == engine_id)
            claims = conn.execute(query).all()
            for stack_id, claimed_at in claims:
                _set_deleted(conn, [stack_id], before=claimed_at, after=None)
            conn.execute(sa.delete(table).where(table.c.engine_id == engine_id))
        return len(claims)


def _set_deleted(
    conn: Connection, stack_ids: Sequence[str], *, before: float | None, after: float | None
) -> None:
    """Change the time of deletion of root stacks and of all stacks nested in them, where it is `before`."""
    s = heat_tables.stack
    level: Sequence[str] = list(stack_ids)
    is_before = s.c.deleted_at.is_(None) if before is None else s.c.deleted_at == before
    for _ in range(DEEPEST):
        if not level:
            return
        conn.execute(sa.update(s).where(s.c.id.in_(level), is_before).values(deleted_at=after))
        level = list(conn.execute(sa.select(s.c.id).where(s.c.owner_id.in_(level))).scalars())


def _roots(selection: Selection) -> list[sa.ColumnElement[bool]]:
    s = heat_tables.stack
    conditions: list[sa.ColumnElement[bool]] = [
        s.c.owner_id.is_(None),
        sa.or_(s.c.backup.is_(None), ~s.c.backup),
    ]
    if not selection.with_deleted:
        conditions.append(s.c.deleted_at.is_(None))
    if selection.projects:
        conditions.append(s.c.tenant.in_(list(selection.projects)))
    if selection.stacks:
        names = list(selection.stacks)
        conditions.append(sa.or_(s.c.id.in_(names), s.c.name.in_(names)))
    return conditions


def _of(
    conn: Connection,
    table: sa.Table,
    column: str,
    ids: Iterable[typing.Any],
    absent: Collection[heat_tables.Part] = (),
    *,
    where: sa.ColumnElement[bool] | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table in which the column has one of these values, by few statements.

    :param absent: tables, which have no rows, and columns, which the rows lack.
    :param where: a further condition; None: there is none.
    """
    if table in absent:
        return
    ordered = sorted(set(ids))
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


class _Page:
    """The rows of some trees; each table is read by few statements.

    :param absent: tables and columns that the database does not have.
    """

    def __init__(self, conn: Connection, cipher: HeatCipher, *, absent: frozenset[heat_tables.Part]) -> None:
        self._conn = conn
        self._cipher = cipher
        self._absent = absent

    def trees(self, ids: Sequence[str], *, with_deleted: bool) -> list[HeatTree]:
        """Return the trees of these root stacks."""
        rows = self._stacks(ids, with_deleted=with_deleted)
        root_of = _root_of(rows)
        stack_ids = list(rows)
        resources = list(_of(self._conn, heat_tables.resource, "stack_id", stack_ids))
        self._data = _grouped(
            _of(self._conn, heat_tables.resource_data, "resource_id", (row["id"] for row in resources)),
            "resource_id",
        )
        value_ids = {row[name] for row in resources for name in ("rsrc_prop_data_id", "attr_data_id")}
        self._values = self._by_id(heat_tables.resource_properties_data, value_ids)
        self._creds = self._by_id(heat_tables.user_creds, (row["user_creds_id"] for row in rows.values()))
        self._tags = _grouped(_of(self._conn, heat_tables.stack_tag, "stack_id", stack_ids), "stack_id")
        self._events = _grouped(_of(self._conn, heat_tables.event, "stack_id", stack_ids), "stack_id")
        snapshots = list(_of(self._conn, heat_tables.snapshot, "stack_id", stack_ids, self._absent))
        self._snapshots = _grouped(snapshots, "stack_id")
        snapshot_ids = [row["id"] for row in snapshots]
        parts = _of(self._conn, heat_tables.resource_snapshot, "snapshot_id", snapshot_ids, self._absent)
        self._parts = _grouped(parts, "snapshot_id")
        self._locks = {
            row["stack_id"]: row["engine_id"] or ""
            for row in _of(self._conn, heat_tables.stack_lock, "stack_id", stack_ids)
        }
        self._resources = _grouped(resources, "stack_id")
        self._templates = self._read_templates(rows.values(), resources)
        members: dict[str, list[Row]] = {stack_id: [] for stack_id in ids if stack_id in rows}
        for stack_id, row in rows.items():
            members[root_of[stack_id]].append(row)
        return [self._tree(group) for group in members.values()]

    def _stacks(self, ids: Sequence[str], *, with_deleted: bool) -> dict[str, Row]:
        """Return the rows of the roots and of all stacks nested in them, those nearest to the roots first."""
        rows: dict[str, Row] = {row["id"]: row for row in _of(self._conn, heat_tables.stack, "id", ids)}
        level = list(rows)
        for _ in range(DEEPEST):
            below = [
                row
                for row in _of(self._conn, heat_tables.stack, "owner_id", level)
                if row["deleted_at"] is None or with_deleted
            ]
            level = [row["id"] for row in below if row["id"] not in rows]
            rows.update((row["id"], row) for row in below)
            if not level:
                break
        return rows

    def _by_id(self, table: sa.Table, ids: Iterable[int | None]) -> dict[int, Row]:
        return {row["id"]: row for row in _of(self._conn, table, "id", {i for i in ids if i is not None})}

    def _read_templates(self, stacks: Iterable[Row], resources: Iterable[Row]) -> dict[int, Row]:
        ids = {row[name] for row in stacks for name in ("raw_template_id", "prev_raw_template_id")}
        rows = self._by_id(heat_tables.raw_template, ids | {row["current_template_id"] for row in resources})
        files = self._by_id(heat_tables.raw_template_files, {row["files_id"] for row in rows.values()})
        return {
            key: {
                **row,
                "files": row["files"]
                or (files[row["files_id"]]["files"] if row["files_id"] in files else None),
            }
            for key, row in rows.items()
        }

    def _tree(self, rows: Sequence[Row]) -> HeatTree:
        try:
            root, *nested = [self._stack(row) for row in rows]
            ids = {stack.template_id for stack in (root, *nested)}
            ids |= {stack.previous_template_id or 0 for stack in (root, *nested)}
            ids |= {item.template_id or 0 for stack in (root, *nested) for item in stack.resources}
            templates = {
                key: self._template(self._templates[key]) for key in sorted(ids) if key in self._templates
            }
        except WrongKey as error:
            fault = f"{error}: give Heat's auth_encryption_key"
            return HeatTree(self._stack(rows[0], alone=True), faults=[fault])
        return HeatTree(root, nested, templates)

    def _stack(self, row: Row, *, alone: bool = False) -> HeatStack:
        creds = self._creds.get(row["user_creds_id"] or 0)
        stack = HeatStack(
            id=row["id"],
            name=row["name"],
            project_id=row["tenant"],
            action=row["action"],
            status=row["status"],
            reason=row["status_reason"] or "",
            created_at=row["created_at"] or 0.0,
            updated_at=row["updated_at"],
            deleted_at=row["deleted_at"],
            template_id=row["raw_template_id"],
            previous_template_id=row["prev_raw_template_id"],
            username=row["username"],
            owner_id=row["owner_id"],
            parent_resource_name=row["parent_resource_name"],
            timeout=row["timeout"],
            disable_rollback=bool(row["disable_rollback"]),
            user_project_id=row["stack_user_project_id"],
            is_backup=bool(row["backup"]),
            locked_by=self._locks.get(row["id"]),
            traversal=row["current_traversal"],
            creds_id=row["user_creds_id"],
        )
        if alone:
            return stack
        return replace(
            stack,
            trust_id=None if creds is None else self._cipher.open(creds["decrypt_method"], creds["trust_id"]),
            trustor_id=None if creds is None else creds["trustor_user_id"],
            tags=[item["tag"] for item in self._tags.get(stack.id, ())],
            resources=[self._resource(item) for item in self._resources.get(stack.id, ())],
            events=[_event(item) for item in self._events.get(stack.id, ())],
            snapshots=[
                _snapshot(item, self._parts.get(item["id"], ())) for item in self._snapshots.get(stack.id, ())
            ],
        )

    def _resource(self, row: Row) -> HeatResource:
        data = self._data.get(row["id"], ())
        return HeatResource(
            id=row["id"],
            uuid=row["uuid"] or "",
            stack_id=row["stack_id"],
            name=row["name"],
            action=row["action"],
            status=row["status"],
            reason=row["status_reason"] or "",
            created_at=row["created_at"] or 0.0,
            updated_at=row["updated_at"] or row["created_at"] or 0.0,
            physical_id=row["physical_id"] or None,
            metadata=row["metadata"],
            properties=self._properties(row),
            attributes=self._stored_values(row["attr_data_id"]) or {},
            is_secret=bool(row["properties_data_encrypted"])
            or any(
                self._values[key]["encrypted"]
                for key in (row["rsrc_prop_data_id"], row["attr_data_id"])
                if key in self._values
            ),
            requires=row["requires"] or (),
            data={
                item["key"]: str(self._cipher.open(item["decrypt_method"], item["value"]))
                for item in data
                if item["value"] is not None
            },
            replaces=row["replaces"],
            replaced_by=row["replaced_by"],
            template_id=row["current_template_id"],
        )

    def _stored_values(self, key: int | None) -> JsonMap | None:
        row = None if key is None else self._values.get(key)
        return None if row is None else self._opened(row["data"], row["encrypted"])

    def _properties(self, row: Row) -> JsonMap | None:
        """Return the properties of a resource, which older releases have stored in its own row."""
        if row["rsrc_prop_data_id"] is None:
            return self._opened(row["properties_data"], row["properties_data_encrypted"])
        return self._stored_values(row["rsrc_prop_data_id"])

    def _opened(self, values: JsonMap | None, is_encrypted: bool | None) -> JsonMap | None:
        if values is None or not is_encrypted:
            return values
        return {name: self._cipher.open_json(pair) for name, pair in values.items()}

    def _template(self, row: Row) -> HeatTemplate:
        environment = dict(row["environment"] or {})
        names = environment.get("encrypted_param_names") or []
        parameters = dict(environment.get("parameters") or {})
        for name in names:
            value: Json = parameters.get(name)
            if isinstance(value, list) and len(value) == 2:
                parameters[name] = self._cipher.open(*value)
        if names:
            environment["parameters"] = parameters
        return HeatTemplate(row["template"] or {}, environment, row["files"] or {})


def _root_of(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the id of each stack's root; the stacks around a stack come before it."""
    root_of: dict[str, str] = {}
    for stack_id, row in rows.items():
        owner = row["owner_id"]
        root_of[stack_id] = root_of.get(owner, stack_id)
    return root_of


def _event(row: Row) -> HeatEvent:
    return HeatEvent(
        uuid=row["uuid"],
        stack_id=row["stack_id"],
        resource_name=row["resource_name"] or "",
        resource_type=row["resource_type"] or "",
        physical_id=row["physical_resource_id"],
        action=row["resource_action"] or "",
        status=row["resource_status"] or "",
        reason=row["resource_status_reason"] or "",
        at=row["created_at"] or 0.0,
    )


def _snapshot(row: Row, parts: Sequence[Row]) -> HeatSnapshot:
    data = row["data"]
    if data is not None and parts:
        resources = {part["resource_name"]: part["data"] for part in parts}
        data = {**data, "resources": {**(data.get("resources") or {}), **resources}}
    return HeatSnapshot(
        id=row["id"],
        stack_id=row["stack_id"],
        name=row["name"],
        action=row.get("action") or "CREATE",
        status=row["status"] or "",
        reason=row["status_reason"] or "",
        created_at=row["created_at"] or 0.0,
        data=data,
    )


def _config(row: Row) -> HeatConfig:
    return HeatConfig(
        row["id"], row["tenant"], row["name"], row["group"], row["config"] or {}, row["created_at"] or 0.0
    )


def _deployment(row: Row) -> HeatDeployment:
    return HeatDeployment(
        id=row["id"],
        project_id=row["tenant"],
        config_id=row["config_id"],
        server_id=row["server_id"],
        action=row["action"],
        status=row["status"],
        reason=row["status_reason"] or "",
        created_at=row["created_at"] or 0.0,
        updated_at=row["updated_at"],
        input_values=row["input_values"],
        output_values=row["output_values"],
    )
