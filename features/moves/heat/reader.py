"""Reads trees of stacks from Heat's database, page by page."""

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from . import tables
from .border import within
from .cipher import HeatCipher, WrongKey
from .fields import Damaged, sound
from .rows import HeatConfig, HeatDeployment, HeatTree, Refused
from .selection import Selection
from .stored_roots import RootColumns, resolve_stored
from .tree_reader import DEEPEST, IDS, TreeReader, config_of, deployment_of, root_alone, rows_of

PAGE = 100
"""Trees that are read together."""
TRIED = 10
"""Encrypted values by which a key is checked."""
T = typing.TypeVar("T")
REVISION = sa.table("alembic_version", sa.column("version_num"))
"""The table that names the revision of the schema."""


class UnfitDatabase(Exception):
    """The database is none of Heat's, or of a release that is not known; the text says which."""


class HeatDatabase:
    """A database of Heat's.  For one thread.

    :param engine: the engine of the database.
    :param cipher: opens encrypted values.
    """

    def __init__(self, engine: Engine, cipher: HeatCipher) -> None:
        self._engine = engine
        self._cipher = cipher
        self._absent: frozenset[tables.Part] = frozenset()
        self._notes: list[str] = []

    def check(self) -> None:
        """Check that the tables have the columns that are read.

        :raises UnfitDatabase: a table or a column is missing.
        """
        inspector = sa.inspect(self._engine)
        every = tables.metadata.sorted_tables
        absent: set[tables.Part] = {table for table in every if not inspector.has_table(table.name)}
        if missing_tables := sorted(table.name for table in absent - tables.LATER):
            raise UnfitDatabase(
                f"the table {', '.join(missing_tables)} is missing: it is not a database of Heat"
            )
        for table in every:
            if table not in absent:
                names = {column["name"] for column in inspector.get_columns(table.name)}
                absent.update(column for column in table.c if column.name not in names)
            if missing := sorted(column.name for column in table.c if column in absent - tables.LATER):
                raise UnfitDatabase(f"its table {table.name} has no column {', '.join(missing)}")
        self._absent = frozenset(absent)

    def notes(self) -> list[str]:
        """Return which software configs and deployments stay behind, because they are damaged."""
        return list(self._notes)

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
        """Check by stored values, where there are any, that the key is Heat's.

        It is wrong where it opens none of the latest values: one may be damaged.

        :raises WrongKey: it is another one, or none was given.
        """
        data = tables.resource_data.c
        creds = tables.user_creds.c
        refusal: WrongKey | None = None
        with self._engine.connect() as conn:
            for method, value in ((creds.decrypt_method, creds.trust_id), (data.decrypt_method, data.value)):
                query = sa.select(method, value).where(method.is_not(None), method != "", value.is_not(None))
                for row in conn.execute(query.order_by(value.table.c.id.desc()).limit(TRIED)):
                    try:
                        self._cipher.open(*row)
                    except WrongKey as error:
                        refusal = refusal or error
                    else:
                        return
        if refusal is not None:
            raise refusal

    def write(self, function: Callable[[Connection], T]) -> T:
        """Return the result of a function that writes in one transaction."""
        with self._engine.begin() as conn:
            return function(conn)

    def resolve(self, selection: Selection) -> Selection:
        """Return a selection in which stacks are named by their ids.

        :raises WrongSelection: what is named does not exist, or is not only one.
        """
        s = tables.stack.c
        columns = RootColumns(
            id=s.id,
            name=s.name,
            project_id=s.tenant,
            deleted_at=s.deleted_at,
            projects=[s.tenant, tables.software_config.c.tenant],
            conditions=_living_or_not(selection.projects),
        )
        with self._engine.connect() as conn:
            return resolve_stored(conn, selection, columns)

    def count(self, selection: Selection) -> int:
        """Return the number of root stacks of a selection."""
        with self._engine.connect() as conn:
            query = sa.select(sa.func.count()).select_from(tables.stack)
            return int(conn.execute(query.where(*_roots(selection))).scalar_one())

    def pages(
        self, selection: Selection, skip: Callable[[Sequence[str]], set[str]]
    ) -> Iterator[list[HeatTree]]:
        """Yield the trees of a selection, in the order of their ids.

        :param skip: function that returns the ids among those of a page whose trees are not to be read.
        """
        last = ""
        s = tables.stack
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
                yield self._trees(conn, chosen, with_deleted=selection.with_deleted)

    def trees(self, ids: Sequence[str]) -> list[HeatTree]:
        """Return the trees of these root stacks with all nested stacks, deleted ones, too."""
        with self._engine.connect() as conn:
            return self._trees(conn, ids, with_deleted=True)

    def _trees(self, conn: Connection, ids: Sequence[str], *, with_deleted: bool) -> list[HeatTree]:
        """Return trees, read together; one by one where a row of one of them breaks the reading of all."""

        def one_by_one(reasons: list[str]) -> list[HeatTree]:
            if len(ids) == 1:
                return [HeatTree(root_alone({"id": ids[0]}), faults=reasons)]
            return [tree for key in ids for tree in self._trees(conn, [key], with_deleted=with_deleted)]

        reader = TreeReader(conn, self._cipher, absent=self._absent)
        return within(lambda: reader.trees(ids, with_deleted=with_deleted), one_by_one)

    def software(self, project_id: str, ids: Iterable[str]) -> tuple[list[HeatConfig], list[HeatDeployment]]:
        """Return a project's configs and deployments with these ids, and the configs of those deployments.

        Resources of a project can name things of other projects, to which they have no right.

        :raises Refused: one of them is damaged.
        """
        of_deployments = tables.software_deployment.c.tenant == project_id
        of_configs = tables.software_config.c.tenant == project_id
        wanted_ids = set(ids)
        with self._engine.connect() as conn:
            rows = rows_of(conn, tables.software_deployment, "id", wanted_ids, where=of_deployments)
            try:
                deployments = [deployment_of(row) for row in rows]
                config_ids = {*wanted_ids, *(deployment.config_id for deployment in deployments)}
                rows = rows_of(conn, tables.software_config, "id", config_ids, where=of_configs)
                return [config_of(row) for row in rows], deployments
            except Damaged as error:
                raise Refused(f"{error}: repair it in Heat's database") from error

    def software_pages(self, selection: Selection) -> Iterator[tuple[list[HeatConfig], list[HeatDeployment]]]:
        """Yield all configs of the selection's projects, and then all their deployments, page by page.

        A deployment of another project's config is none: whoever named that config has no right to it.
        """
        c = tables.software_config
        d = tables.software_deployment
        of_project = sa.exists().where(c.c.id == d.c.config_id, c.c.tenant == d.c.tenant)
        for table in (c, d):
            last = ""
            while True:
                columns = [column.label(column.key) for column in table.c]
                query = sa.select(*columns).where(table.c.id > last).order_by(table.c.id).limit(IDS)
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
                    yield sound(rows, config_of, self._notes), []
                else:
                    yield [], sound(rows, deployment_of, self._notes)

    def claim(self, stack_ids: Sequence[str], engine_id: str, now: float) -> None:
        """Lock living root stacks for an engine that does not exist, and hide their trees as deleted ones.

        So Heat answers that there are no such stacks, and its engines leave them alone.

        :param now: seconds since the epoch; a whole number, by which `release` knows what was hidden.
        """
        table = tables.stack_lock
        with self._engine.begin() as conn:
            conn.execute(sa.delete(table).where(table.c.stack_id.in_(stack_ids)))
            rows = [{"stack_id": key, "engine_id": engine_id, "created_at": now} for key in stack_ids]
            conn.execute(sa.insert(table), rows)
            _set_deleted(conn, stack_ids, before=None, after=now)

    def release(self, engine_id: str) -> int:
        """Take back all claims; return the number of root stacks."""
        table = tables.stack_lock
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
    s = tables.stack
    level: Sequence[str] = list(stack_ids)
    is_before = s.c.deleted_at.is_(None) if before is None else s.c.deleted_at == before
    for _ in range(DEEPEST):
        if not level:
            return
        conn.execute(sa.update(s).where(s.c.id.in_(level), is_before).values(deleted_at=after))
        level = list(conn.execute(sa.select(s.c.id).where(s.c.owner_id.in_(level))).scalars())


def _roots(selection: Selection) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of the root stacks of a resolved selection."""
    s = tables.stack
    conditions = _living_or_not(selection.projects)
    if not selection.with_deleted:
        conditions.append(s.c.deleted_at.is_(None))
    if selection.stacks:
        conditions.append(s.c.id.in_(list(selection.stacks)))
    return conditions


def _living_or_not(projects: Sequence[str]) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of the root stacks of some projects; of all, where none is named."""
    s = tables.stack
    conditions: list[sa.ColumnElement[bool]] = [
        s.c.owner_id.is_(None),
        sa.or_(s.c.backup.is_(None), ~s.c.backup),
    ]
    return [*conditions, s.c.tenant.in_(list(projects))] if projects else conditions
