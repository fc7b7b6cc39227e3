"""No request costs more where its project, its neighbours, or the history of its stack have grown."""

import contextlib
import pathlib
import typing
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import sqlalchemy as sa
from fuzz.installation import SERVER, Installation
from fuzz.routes import PATHS
from harness.route_bodies import TEMPLATE, right_body
from services.db import crowd
from services.db.crowd import Original
from simulation.console import Callers, console_of
from stoker.api.openapi import describe
from stoker.cli.wiring.policy import RULES
from stoker.cli.wiring.routes import ROUTES
from stoker.db import usage
from stoker.db.connections import DatabaseLimits
from stoker.db.engine import Database
from stoker.db.schema import tables, upgrade

SMALL = 100
LARGE = {"sqlite": 2_000, "postgresql": 10_000, "mariadb": 10_000}
"""Enough for each planner to leave whole tables alone."""
HUGE = 100_000
"""Copies of each project's stack; the first stack has ten times as many events."""
PAGE = 20
GROWTH = 1.2
SLACK = {"sqlite": 2_000, "postgresql": 60, "mysql": 60}
"""Rows that a request may read more in the large database; on SQLite instructions, as it counts no rows."""
Json = typing.Any


def _each(*names: str) -> Callable[..., dict[str, Json]]:
    return lambda value: dict.fromkeys(names, value)


VALUES: Mapping[str, tuple[str, ...]] = {
    **_each("tags", "tags_any", "not_tags", "not_tags_any")(("common", "rare", "none")),
    **_each("not-tags", "not-tags-any")(("common",)),
    "tags-any": ("rare",),
    **_each("show_deleted", "show_nested", "show_hidden", "with_count", "with_detail", "shards")(("true",)),
    **_each("with_description", "with_condition_func")(("true",)),
    **_each("resolve_outputs", "check_cloud")(("false",)),
    **_each("status", "stack_status")(("FAILED", "COMPLETE", "SNAPSHOT_FAILED", "IN_PROGRESS")),
    **_each("action", "stack_action")(("SNAPSHOT", "CREATE")),
    **_each("tenant", "stack_user_project_id")(("$mine.tenant_id", "none")),
    **_each("username", "stack_owner")(("ann", "none")),
    **_each("owner_id", "parent")(("$mine.stack_id",)),
    **_each("name", "stack_name")(("mine", "c40", "none")),
    **_each("stack_status_reason", "physical_resource_id")(("none",)),
    **_each("resource_type", "type")(("OS::Heat::TestResource", "none")),
    "id": ("$mine.stack_id",),
    "ignore_errors": ("99001",),
    "marker": ("$copy",),
    "nested_depth": ("5",),
    "resource_action": ("SNAPSHOT", "CREATE", "ROLLBACK"),
    "resource_name": ("r", "none"),
    "resource_status": ("COMPLETE", "FAILED"),
    "server_id": ("$server",),
    "since": ("0",),
    "sort_dir": ("asc", "desc"),
    "sort_keys": ("name", "id", "status", "updated_time", "creation_time", "event_time", "resource_type"),
    "uuid": ("$mine.event_id",),
    # Without rows: a page and a signature are part of each request, the policy denies the next to all, and
    # the others choose texts of the program.
    **_each("limit", "Signature", "global_tenant")(()),
    **_each("support_status", "template_type", "version", "with_attr")(()),
}
"""Values of the parameters of queries, by their names."""
SKIMS = "no index leads to these: stacks of the project are read until the page is full"
SORTS = "no index has this order: all stacks of the list are sorted"
STAYS = "the tags of deleted stacks stay until the purge takes them"
COUNTS = "it counts all stacks"
EVENTS = "reads the stack's events, which the purge limits: [stacks] max_events_per_stack"
_STACKS: Mapping[str, str] = {
    **_each("action", "stack_action", "username", "stack_owner", "stack_status_reason")(SKIMS),
    **_each("not_tags", "not_tags_any", "not-tags", "not-tags-any")(SKIMS),
    **_each("sort_keys=id", "sort_keys=status", "sort_keys=updated_time")(SORTS),
    **_each("tags", "tags_any")(STAYS),
}
_EVENTS = _each(
    *("nested_depth", "physical_resource_id", "resource_action", "resource_status", "resource_type"),
    "sort_keys=resource_type",
)(EVENTS)
UNBOUNDED: Mapping[str, Mapping[str, str]] = {
    "GET /v1/{tenant_id}/stacks": {**_STACKS, "with_count": COUNTS},
    "GET /v1/{tenant_id}/stacks/detail": _STACKS,
    "GET /v1/{tenant_id}/stack_counts": _each("", "show_nested")(COUNTS),
    "GET /v1/admin/stack_counts": _each("", "show_nested")(COUNTS),
    "GET /v1/{tenant_id}/stacks/{stack_name}/{stack_id}/events": _EVENTS,
    "GET /v1/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events": _EVENTS,
}
"""Requests whose cost grows, and why that may be: by operation and parameter, "" for none."""
PATIENT = DatabaseLimits(statement=1800.0, idle=1800.0)
"""A million rows are made by one statement."""
BACKWARDS = {"marker"}
"""Lists that MariaDB (10.11) reads from their beginning: see DESCENDING in test_rows_read.py."""
NEW = {"stack_name": "new", "template": TEMPLATE}
BODIES: Mapping[str, Json] = {
    "POST /v1/{tenant_id}/stacks": NEW,
    "POST /v1/{tenant_id}/stacks/preview": NEW,
    "POST /v1/{tenant_id}/validate": {"template": TEMPLATE},
    "POST /v1/{tenant_id}/software_configs": {"name": "n", "config": "c"},
    "POST /v1/{tenant_id}/software_deployments": {"server_id": SERVER, "config_id": "$mine.config_id"},
    "PUT /v1/admin/quotas/{project_id}": {"quotas": {"stacks": 5}},
    "POST /v1/admin/ring/plan": {"join": {"host2": 1}},
}
SIGNED = {
    "POST /v1",
    "POST /v1/identity/v3/auth/tokens",
    "POST /v1/signal/{arn}",
    "PUT /v1/waitcondition/{arn}",
}
"""Operations that need a signature instead of a token: they find one resource, or are views of others."""


class UndoneWrites(Database):
    """A database that executes all that is written, and undoes it."""

    def write(self, transaction: Callable[[sa.Connection], Json], *, brief: bool = False) -> Json:
        def undone(conn: sa.Connection) -> Json:
            savepoint = conn.begin_nested()
            try:
                answer = transaction(conn)
                usage.store(conn)
            finally:
                savepoint.rollback()
            return answer

        return super().write(undone, brief=brief)


class Request(typing.NamedTuple):
    """A request of an operation, with a parameter and its value, or without."""

    operation: str
    parameter: str
    value: str

    @property
    def may_grow(self) -> bool:
        allowed = UNBOUNDED.get(self.operation, {})
        return self.parameter in allowed or f"{self.parameter}={self.value}" in allowed


class Api:
    """The API of an installation; no answer is kept from one object to the next.

    :param folder: empty.
    """

    def __init__(self, installation: Installation, database: Database) -> None:
        installation.names["$copy"] = crowd.copied(1, 40)
        self._filled = installation.filled
        self._database = database
        world = installation.world
        world.database = typing.cast(Json, database)
        settings = replace(world.context.settings, max_snapshots=0)
        world.context = replace(world.context, database=database, settings=settings)
        self._callers = Callers(world, console_of(world))
        self.operations: dict[str, list[str]] = {
            f"{method.upper()} {path}": [
                item["name"] for item in operation["parameters"] if item["in"] == "query"
            ]
            for path, operations in describe(ROUTES, RULES)["paths"].items()
            for method, operation in operations.items()
        }

    def requests(self) -> Iterator[Request]:
        """Yield each operation, and with each value of each of its parameters.

        :raises KeyError: a parameter has no values.
        """
        for operation, parameters in self.operations.items():
            yield Request(operation, "", "")
            for name in parameters:
                yield from (Request(operation, name, value) for value in VALUES[name])

    def cost(self, request: Request) -> int:
        """Return the rows that a request reads, and check that it is accepted."""
        statuses: list[int] = []
        counted = COSTS[self._database.dialect](self._database, lambda: statuses.append(self._send(request)))
        assert (statuses[0] >= 400) == (request.operation in SIGNED), (request, statuses)
        return counted

    def costs(self) -> dict[Request, int]:
        """Return the rows that each request reads."""
        return {request: self.cost(request) for request in self.requests()}

    def _send(self, request: Request) -> int:
        method, _, path = request.operation.partition(" ")
        for name, value in self._names(request.operation).items():
            path = path.replace(f"{{{name}}}", urllib.parse.quote(self._filled(value), safe=""))
        operators = path.startswith("/v1/admin/") or path.endswith("/services")
        caller = self._callers.operator if operators else self._callers.owner
        body = self._filled(BODIES.get(request.operation, right_body(method, request.operation)))
        query = self._query(request)
        answer = caller.call(
            method, path.replace("/v1/tenant/services", "/v1/operators/services"), body, query
        )
        return answer.status_code

    def _query(self, request: Request) -> str:
        parameters = self.operations[request.operation]
        pairs = [("limit", str(PAGE))] if "limit" in parameters else []
        if "Signature" in parameters:
            is_signal = "/signal" in request.operation
            pairs.append(("Signature", "$mine.handle.signal" if is_signal else "$mine.server.metadata"))
        if request.parameter:
            pairs.append((request.parameter, request.value))
        return urllib.parse.urlencode([(name, self._filled(value)) for name, value in pairs])

    def _names(self, operation: str) -> dict[str, str]:
        """Return values for the variables of a path, in Stoker's own names for the rows."""
        names = {name: words[0] for name, words in PATHS.items()}
        if "/signal" in operation:
            names |= {"resource_name": "handle", "row": "$mine.handle.row"}
        elif "{row}" in operation:
            names |= {"resource_name": "server", "row": "$mine.server.row"}
        elif "{event_id}" in operation:
            names["resource_name"] = "mine"
        elif operation.startswith("DELETE") and "{config_id}" in operation:
            names["config_id"] = "$copy"  # It is not deployed.
        return names


def _steps(database: Database, call: Callable[[], object]) -> int:
    steps: list[None] = []
    with database.engine.connect() as conn:
        own: Json = conn.connection.driver_connection
    own.set_progress_handler(lambda: steps.append(None), 100)
    call()
    own.set_progress_handler(None, 0)
    return 100 * len(steps)


def _between(reads: Callable[[sa.Connection], int]) -> Callable[[Database, Callable[[], object]], int]:
    """Return a function that counts by a counter of the only connection."""

    def read(database: Database) -> int:
        with database.engine.connect() as conn:
            return reads(conn)

    def cost(database: Database, call: Callable[[], object]) -> int:
        before = read(database)
        call()
        return read(database) - before

    return cost


def _tuples(conn: sa.Connection) -> int:
    conn.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    conn.commit()
    sums = (
        "(SELECT sum(seq_tup_read) FROM pg_stat_user_tables)",
        "(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)",
    )
    return int(conn.exec_driver_sql(f"SELECT {' + '.join(sums)}").scalar_one())


def _handled(conn: sa.Connection) -> int:
    shown = conn.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'")
    return sum(int(value) for name, value in shown if name != "Handler_read_rnd_deleted")


COSTS = {"sqlite": _steps, "postgresql": _between(_tuples), "mysql": _between(_handled)}


def copy_rows(source: Database, target: Database) -> None:
    """Copy all rows, in place of those that there are."""
    for table in tables.metadata.sorted_tables:
        columns = [column.label(column.key) for column in table.c if column.computed is None]
        with source.engine.connect() as conn:
            rows = [dict(row) for row in conn.execute(sa.select(*columns)).mappings()]
        with target.engine.begin() as conn:
            conn.execute(sa.delete(table))
            if rows:
                conn.execute(sa.insert(table), rows)
            if target.dialect == "postgresql" and rows and table.name in ("event", "event_delivery"):
                serial = f"pg_get_serial_sequence('{table.name}', 'id')"
                conn.exec_driver_sql(f"SELECT setval({serial}, max(id)) FROM {table.name}")


def grown(installation: Installation, database: Database, size: int) -> set[Request]:
    """Return the requests that cost more in a large database than in a small one."""
    names = installation.names
    kinds = ("tenant_id", "stack_id", "config_id", "deployment_id", "snapshot_id")
    originals = [
        Original(*(names[f"${name}.{kind}"] for kind in kinds), digit=digit)
        for digit, name in ((1, "mine"), (2, "victim"))
    ]
    crowd.grow(database, 0, SMALL, *originals)
    small = Api(installation, database).costs()
    crowd.grow(database, SMALL, size, *originals)
    large = Api(installation, database).costs()
    print(*(f"{small[each]} -> {large[each]} {' '.join(each)}" for each in large), sep="\n")
    return {each for each in large if large[each] > GROWTH * small[each] + SLACK[database.dialect]}


def check(folder: pathlib.Path, server: str, request: pytest.FixtureRequest, size: int) -> None:
    installation = Installation(folder)
    source = installation.world.database
    if server == "sqlite":
        database = UndoneWrites(str(source.engine.url), limits=PATIENT)
    else:
        url = request.getfixturevalue(server).create_database()
        with contextlib.closing(Database(url)) as new:
            upgrade.upgrade(new)
        database = UndoneWrites(url, limits=PATIENT)
        copy_rows(source, database)
    source.close()
    try:
        more = grown(installation, database, size)
    finally:
        database.close()
    if server == "mariadb":
        more = {each for each in more if each.parameter not in BACKWARDS}
    assert sorted(each for each in more if not each.may_grow) == []
    if server == "sqlite":  # Where others have grown less, that is no rule for their next versions.
        allowed = {(key, name.partition("=")[0]) for key, names in UNBOUNDED.items() for name in names}
        assert allowed == {(each.operation, each.parameter) for each in more}


@pytest.mark.parametrize(
    "server",
    ["sqlite", *(pytest.param(server, marks=pytest.mark.full) for server in ("postgresql", "mariadb"))],
)
def test_no_request_reads_more_in_a_large_database(
    tmp_path: pathlib.Path, server: str, request: pytest.FixtureRequest
) -> None:
    check(tmp_path, server, request, LARGE[server])


@pytest.mark.long
@pytest.mark.parametrize("server", ["sqlite", "postgresql", "mariadb"])
def test_no_request_reads_more_in_a_huge_database(
    tmp_path: pathlib.Path, server: str, request: pytest.FixtureRequest
) -> None:
    check(tmp_path, server, request, HUGE)
