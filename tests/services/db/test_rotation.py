"""Sealing again with another key: all of it, while others write, and however often it is broken off."""

import collections
import typing
from collections.abc import Callable

import sqlalchemy as sa
from services.db.rows import (
    NOW,
    a_resource,
    a_snapshot,
    a_stack,
    claim_all,
    new_id,
    on,
    outcome,
    resource,
    stack_of,
    step,
    store,
    store_graph,
    together,
)
from services.db.servers import SERVERS
from stoker.db import content, resources, snapshots, stacks
from stoker.db.engine import Database
from stoker.db.ids import ResourceId
from stoker.db.schema import tables
from stoker.db.schema.column_types import CleanText, JsonText
from stoker.db.sealed_rows import COLUMNS
from stoker.sealing.rotation import Rotation, RotationRound
from stoker.sealing.sealer import BoundSealer, Sealer
from stoker.template.residual import quote, retokened, sealed

OLD_KEY, NEW_KEY, LOST_KEY = (Sealer.generate_key() for _ in range(3))
OLD = Sealer([OLD_KEY])
NEW = Sealer([NEW_KEY])
BOTH = Sealer([NEW_KEY, OLD_KEY])
ROOT = "f0000000-0000-4000-8000-000000000000"
TREE = {"project_id": "acme", "root_id": ROOT}
OLD_PLACE = OLD.of_stack("acme", ROOT)
[OLD_ID] = OLD.fingerprints
[NEW_ID] = NEW.fingerprints
LIKE_A_TOKEN = {"$fn": "sealed", "args": [OLD.of_stack("other", ROOT).seal("the user's own text")]}
Json = typing.Any


def secret(value: Json, by: Sealer = OLD) -> Json:
    return sealed(by.of_stack("acme", ROOT).seal(value))


def rotation(
    database: Database, sealer: Sealer = BOTH, *, sleep: Callable[[float], None] = lambda seconds: None
) -> Rotation:
    moments = iter(range(1_000_000))
    return Rotation(database, sealer, clock=lambda: NOW + next(moments), sleep=sleep, batch=3)


def run(database: Database, **options: typing.Any) -> tuple[list[RotationRound], int]:
    rounds: list[RotationRound] = []
    _, remaining = rotation(database, **options).run(rounds.append, patience=100)
    return rounds, remaining


def everything(database: Database) -> str:
    """All text that is in the database."""

    def read(conn: sa.Connection) -> str:
        return "\n".join(
            str(tuple(row))
            for table in tables.metadata.tables.values()
            for row in conn.execute(sa.select(*(sa.type_coerce(c, sa.Text) for c in table.c)))
        )

    return database.read(read)


SHAPED: typing.Mapping[str, Callable[[Json], Json]] = {
    "setting.value": lambda value: value,
    "credential.body": lambda value: value,
    "imported_key.secret": lambda value: value,
    "content.body": lambda value: {"parameters": value, "parameter_defaults": {"d": value}},
    "stack.parameters": lambda value: {"p": value},
    "stack.previous": lambda value: {"environment": "e", "parameters": {"p": value}},
    "stack.outputs": lambda value: {"$fn": {"value": value, "description": "text"}},
    "resource.reference_id": lambda value: value,
    "resource.definition": lambda value: {"properties": {"p": value}, "metadata": {"metadata": [value]}},
    "resource.properties": lambda value: {"p": value},
    "resource.attributes": lambda value: {"a": value, "$fn": "sealed", "args": LIKE_A_TOKEN["args"]},
    "resource.metadata": lambda value: {"metadata": [value], "$fn": LIKE_A_TOKEN, "1": LIKE_A_TOKEN},
    "resource.data": lambda value: value,
    "snapshot.goal": lambda value: {"environment": "e", "parameters": {"p": value}},
    "task.definition": lambda value: {"properties": {"p": value}},
    "software_config.body": lambda value: value,
    "software_deployment.input_values": lambda value: value,
    "software_deployment.output_values": lambda value: value,
}
"""The form of a value in each column that may hold tokens."""
WHOLE = {
    *("setting.value", "credential.body", "resource.reference_id", "resource.attributes", "resource.data"),
    *("software_config.body", "software_deployment.input_values", "software_deployment.output_values"),
    "imported_key.secret",
}
"""Columns in which a value is sealed as a whole, or is not a secret."""
DEEP: list[Json] = [
    {"in a map": [1, {"deeper": secret({"a": ["list"]})}], "beside": "clear"},
    {"$fn": "list_join", "args": [["-", [secret("one"), secret("two")]]]},
    {"$fn": "literal", "args": [{"$fn": "user's", "inner": secret("below a quote")}]},
]
LITERAL: list[Json] = [quote({"looks": LIKE_A_TOKEN}), {"nothing": "sealed"}]


def filled(table: sa.Table, number: int, value: Json, stack_id: str) -> dict[str, Json]:
    """A row of any table with this value wherever it can hold one; other JSON looks like a token."""
    row: dict[str, Json] = {}
    for column in table.c:
        if column.name in COLUMNS[table]:
            row[column.key] = SHAPED[f"{table.name}.{column.name}"](value)
        elif column.name == "stack_id":
            row[column.key] = stack_id
        elif isinstance(column.type, JsonText):
            row[column.key] = LIKE_A_TOKEN
        elif isinstance(column.type, sa.String | CleanText):
            row[column.key] = f"{number}-{new_id()}"[: getattr(column.type, "length", None)]
        elif not column.nullable:
            row[column.key] = isinstance(column.type, sa.Boolean) or number
    if "project_id" in row:
        row["project_id"] = "acme"
    if table is tables.stack:
        row["root_id"] = ROOT
    if table is tables.credential:
        row["root_id"] = ROOT
    return row


def test_every_value_is_sealed_again_in_its_place_wherever_it_has_a_secret(database: Database) -> None:
    stack = store(database, a_stack(id=ROOT, root_id=ROOT, project_id="acme"))
    places = {
        "setting": lambda by: by.of_installation("signal_key"),
        "credential": lambda by: by.of_credential(ROOT),
        "software_config": lambda by: by.of_software("acme"),
        "software_deployment": lambda by: by.of_software("acme"),
    }

    def place(table: sa.Table, keys: Sealer) -> BoundSealer:
        return places.get(table.name, lambda keys: keys.of_stack("acme", ROOT))(keys)

    def sealed_for(tree: Json, table: sa.Table) -> Json:
        return retokened(tree, lambda token: place(table, OLD).seal(OLD_PLACE.open(token)))

    def fill(conn: sa.Connection) -> None:
        for table in COLUMNS:
            names = {f"{table.name}.{name}" for name in COLUMNS[table]}
            values = [secret("plain"), *([] if names & WHOLE else DEEP), *LITERAL]
            for index, value in enumerate(values[:1] if table is tables.credential else values):
                row = filled(table, 900_000 + index, sealed_for(value, table), stack.id)
                if table is tables.setting:
                    row["name"] = "signal_key" if index == 0 else f"other{index}"
                conn.execute(sa.insert(table).values(**row))
                if table is tables.content:
                    stacks.insert(conn, a_stack(environment_id=row["id"], **TREE))

    database.write(fill)
    rounds, remaining = run(database)
    assert remaining == 0
    assert set(rounds[0].sealed_anew) == {table.name for table in COLUMNS}
    assert rounds[-1].quiet
    assert set(rounds[-1].held) == {NEW_ID}
    text = everything(database).replace(LIKE_A_TOKEN["args"][0], "")
    assert NEW_ID in text
    assert OLD_ID not in text

    for table in COLUMNS:
        for name in COLUMNS[table]:
            for value in (secret("plain"), *LITERAL):
                new = retokened(
                    value, lambda token, table=table: place(table, NEW).seal(OLD_PLACE.open(token))
                )
                stored = database.read(
                    lambda conn, c=table.c[name]: list(conn.execute(sa.select(c)).scalars())
                )
                if table is not tables.credential or value == secret("plain"):
                    assert SHAPED[f"{table.name}.{name}"](new) in stored, (table.name, name)


OTHER = {
    "project": {"quotas"},
    "stack": {"parameter_view", "failure_cause"},
    "traversal": {"failure_cause"},
    "resource": {"requires", "progress"},
    "snapshot": {"tags"},
    "task": {"restricted", "inputs", "successors", "hooks", "losses"},
    "drift_resource": {"properties"},
    "event": {"properties"},
    "event_delivery": {"body"},
}
"""Columns in which no secret is ever sealed: they are read as they are."""


def test_each_column_of_json_either_may_hold_secrets_or_may_not() -> None:
    for table in tables.metadata.tables.values():
        columns = {column.name for column in table.c if isinstance(column.type, JsonText)}
        held = set(COLUMNS.get(table, ()))
        assert (columns - held, columns & held) == (OTHER.get(table.name, set()), held), table.name


def test_a_template_that_looks_like_a_secret_stays_what_the_user_wrote(database: Database) -> None:
    template = {"heat_template_version": "wallaby", "resources": {"r": LIKE_A_TOKEN}}
    key = database.write(lambda conn: content.put(conn, template, NOW))
    store(database, a_stack(template_id=key))
    rounds, _ = run(database)
    assert (rounds[-1].moved, dict(rounds[0].held)) == (0, {})
    assert database.read(lambda conn: content.get(conn, key)) == template


def an_environment(by: Sealer) -> Json:
    return {"parameters": {"password": secret("s3cret", by), "plain": 1}}


def test_an_environment_that_many_share_is_shared_afterwards_by_all_and_by_those_who_come(
    database: Database,
) -> None:
    keys = database.write(
        lambda conn: [content.put(conn, body, NOW) for body in ({"a": 1}, an_environment(OLD), {})]
    )
    template, old, files = keys
    goal = {"template": template, "environment": old, "files": files, "parameters": {}}
    ids = {"template_id": template, "environment_id": old, "files_id": files}
    both = [a_stack(**ids, **TREE), a_stack(**ids, previous=goal, **TREE)]
    former = a_stack(previous=goal, **TREE)
    store(database, *both, former)
    snapshot = a_snapshot(both[0], goal=goal)
    database.write(lambda conn: snapshots.insert(conn, both[0], snapshot))

    run(database)
    new = database.write(lambda conn: content.put(conn, an_environment(NEW), NOW))
    assert new != old
    current = [stack_of(database, stack.id) for stack in (*both, former)]
    assert [stack.environment_id for stack in current] == [new, new, "e"]
    assert [stack.previous and stack.previous["environment"] for stack in current] == [None, new, new]
    [after] = database.read(lambda conn: snapshots.of_stack(conn, both[0].id))
    assert after.contents == [template, new, files]
    bodies = database.read(lambda conn: content.get_many(conn, [new, old, template, files]))
    assert bodies[new] == bodies[old] == an_environment(NEW), "who has just read the old id still finds it"

    later = NOW + 10 * content.KEEP_UNUSED
    database.write(lambda conn: content.purge_unused(conn, later, limit=100))
    remaining = database.read(lambda conn: content.get_many(conn, [new, old, template, files]))
    assert set(remaining) == {new, template, files}


class Interrupted(Exception):
    """Somebody has pressed Ctrl-C."""


class Once(Database):
    """Writes once, and is interrupted then."""

    def __init__(self, real: Database) -> None:
        self._real = real
        self._written = False

    def read(self, operation: Callable[[sa.Connection], Json]) -> Json:
        return self._real.read(operation)

    def write(self, operation: Callable[[sa.Connection], Json]) -> Json:
        if self._written:
            raise Interrupted
        self._written = True
        return self._real.write(operation)


def is_interrupted(database: Database) -> bool:
    try:
        rotation(Once(database)).round()
    except Interrupted:
        return True
    return False


def test_what_was_broken_off_is_finished_by_the_next_one(database: Database) -> None:
    old = database.write(lambda conn: content.put(conn, an_environment(OLD), NOW))
    stacks = [a_stack(environment_id=old, parameters={"p": secret(number)}, **TREE) for number in range(4)]
    store(database, *stacks)
    assert sum(is_interrupted(database) for _ in range(20)) in range(6, 20)
    assert OLD_ID not in everything(database)
    new = content.content_id(an_environment(NEW))
    assert {stack_of(database, stack.id).environment_id for stack in stacks} == {new}


@on(*SERVERS)
def test_nothing_is_lost_that_others_write_meanwhile(database: Database) -> None:
    stack = store(database, a_stack(**TREE))
    definitions = [{"metadata": {"s": secret(n)}} for n in range(4)]
    rows = [
        a_resource(
            stack.id, 800_000 + n, f"r{n}", definition=definitions[n], metadata={"n": 0, "s": secret(n)}
        )
        for n in range(4)
    ]
    database.write(lambda conn: resources.insert_many(conn, rows))

    def count(row: ResourceId) -> int:
        """Act as a signal: read, then compare and swap; it may store a value sealed with the old key."""
        done = 0
        for _ in range(40):
            current = resource(database, row)
            metadata = {**(current.metadata or {}), "n": (current.metadata or {})["n"] + 1}
            done += database.write(
                lambda conn, current=current, metadata=metadata: resources.set_metadata(
                    conn, row, generation=current.generation, metadata=metadata, now=NOW
                )
            )
        return done

    def rounds() -> int:
        return sum(rotation(database).round().sealed_anew["resource"] for _ in range(15))

    jobs = [lambda row=row: count(row.id) for row in rows for _ in range(2)]
    *counts, sealed_anew = together(*jobs, rounds)
    assert isinstance(sealed_anew, int), sealed_anew
    assert sealed_anew >= 4
    run(database)
    for number, row in enumerate(rows):
        done = sum(typing.cast(list[int], counts[2 * number : 2 * number + 2]))
        final = resource(database, row.id).metadata
        assert final == {"n": done, "s": secret(number, NEW)}
        assert done >= 40


def test_it_waits_for_steps_that_began_before_and_seals_again_what_they_stored(database: Database) -> None:
    graph = store_graph(database, {"one": []}, stack=a_stack(**TREE))
    [claim] = claim_all(database, graph.ids)

    def sleep(seconds: float) -> None:
        step(database, [outcome(claim, changes={"properties": {"late": secret("x")}})])

    rounds, remaining = run(database, sleep=sleep)
    assert remaining == 0
    assert [dict(rotation_round.sealed_anew) for rotation_round in rounds] == [{}, {"resource": 1}, {}]
    assert resource(database, graph.resources["one"]).properties == {"late": secret("x", NEW)}


def test_a_step_that_does_not_end_is_counted(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": []})
    claim_all(database, graph.ids)
    assert run(database)[1] == 2


def test_values_that_no_key_opens_are_left_as_they_are_and_named(database: Database) -> None:
    lost = Sealer([LOST_KEY])
    token = OLD_PLACE.seal("x")
    broken = sealed(f"{token[:-6]}AAAAA=")
    stack = a_stack(parameters={"a": secret("a", lost), "b": broken, "c": secret("c")}, **TREE)
    store(database, stack)
    last = run(database)[0][-1]
    assert {key: dict(counts) for key, counts in last.held.items()} == {
        lost.fingerprints[0]: {"stack": 1},
        OLD_ID: {"stack": 1},
        NEW_ID: {"stack": 1},
    }
    assert last.broken == [f"stack {stack.id}"]
    assert stack_of(database, stack.id).parameters == {
        "a": secret("a", lost),
        "b": broken,
        "c": secret("c", NEW),
    }


def test_a_look_counts_and_changes_nothing(database: Database) -> None:
    store(database, a_stack(parameters={"a": secret(1), "b": [secret(2), secret(3, NEW)]}, **TREE))
    before = everything(database)
    counted = rotation(database).count()
    assert {key: dict(counts) for key, counts in counted.held.items()} == {
        OLD_ID: {"stack": 2},
        NEW_ID: {"stack": 1},
    }
    assert everything(database) == before


@on("sqlite")
def test_a_round_tells_how_far_it_has_come_in_each_table(database: Database) -> None:
    store(database, *(a_stack(parameters={"p": secret(number)}, **TREE) for number in range(4)))
    calls: list[tuple[str, int, int]] = []
    Rotation(
        database,
        BOTH,
        clock=lambda: NOW,
        sleep=lambda seconds: None,
        batch=3,
        progress=lambda *parts: calls.append(parts),
    ).round()
    assert [parts for parts in calls if parts[0] == "stack"] == [("stack", 3, 4), ("stack", 4, 4)]


@on("sqlite")
def test_a_content_counts_and_moves_with_those_who_hold_it(database: Database) -> None:
    old = database.write(lambda conn: content.put(conn, an_environment(OLD), NOW))
    assert (rotation(database).count().held, rotation(database).round().moved) == ({}, 0)
    old = database.write(lambda conn: content.put(conn, an_environment(OLD), NOW))
    store(database, a_stack(environment_id=old, **TREE))
    counted = rotation(database).count()
    assert {key: set(counts) for key, counts in counted.held.items()} == {OLD_ID: {"content"}}
    assert counted.broken == []
    assert rotation(database).round().moved == 1


@on("sqlite")
def test_a_content_that_no_key_opens_stays_as_it_is(database: Database) -> None:
    body = an_environment(Sealer([LOST_KEY]))
    lost = database.write(lambda conn: content.put(conn, body, NOW))
    store(database, a_stack(environment_id=lost, **TREE))
    assert rotation(database).round().quiet
    assert database.read(lambda conn: content.get(conn, lost)) == body


@on("sqlite")
def test_a_value_whose_stack_is_gone_is_counted_and_named(database: Database) -> None:
    row = a_resource(new_id(), 900_000, data=secret("x"))
    database.write(lambda conn: resources.insert_many(conn, [row]))
    counted = rotation(database).round()
    assert {key: dict(counts) for key, counts in counted.held.items()} == {OLD_ID: {"resource": 1}}
    assert counted.broken == ["resource 900000"]
    assert resource(database, row.id).data == secret("x")


def test_a_round_is_quiet_where_it_has_neither_sealed_nor_moved_anything() -> None:
    assert RotationRound().quiet
    assert not RotationRound(moved=1).quiet
    assert not RotationRound(sealed_anew=collections.Counter(stack=1)).quiet


def test_a_process_that_seals_with_an_old_key_does_not_delay_it_without_end(database: Database) -> None:
    stack = store(database, a_stack(**TREE))
    database.write(lambda conn: resources.insert_many(conn, [a_resource(stack.id, 700_000)]))
    numbers = iter(range(1000))

    def seal_again(rotation_round: RotationRound) -> None:
        changes = {ResourceId(700_000): {"data": secret(next(numbers))}}
        database.write(lambda conn: resources.change_many(conn, changes))

    last, remaining = rotation(database).run(seal_again, patience=20)
    assert (last.quiet, remaining) == (False, 0)
    assert dict(last.held[OLD_ID]) == {"resource": 1}
