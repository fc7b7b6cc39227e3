"""Whatever is damaged in Heat's database keeps its own stack there: the others move, the report says why."""

import json
import pathlib
import sqlite3
import typing
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from harness.heat_database import CREATED, KEY, HeatRow, HeatStore, encrypted
from harness.heat_installation import VALUE, Installation, installed, template, value_row
from stoker.features.moves.heat import tables as heat_tables
from stoker.features.moves.heat.cipher import HeatCipher
from stoker.features.moves.heat.reader import HeatDatabase
from stoker.features.moves.heat.report import Disposition, MovedStack
from stoker.features.moves.heat.tables import HeatJson, HeatTime

Json = typing.Any
DEEP = "[" * 100_000
OF_JSON = (
    "{",
    "",
    "[]",
    '["a"]',
    "[[]]",
    '"text"',
    "5",
    "null",
    "{}",
    '{"a": 1}',
    '{"a": {"b": [null]}}',
    DEEP,
    None,
)
OF_TEXT = ("", "x" * 70_000, "\x00\ud7ff\x1b[2J", 5, b"\xff\xfe", None)
OF_NUMBER = (-5, 0, 2**62, "abc", 1.5, None)
OF_FLAG = (2, "abc", None)
OF_TIME = ("rubbish", "0000-00-00 00:00:00", 5, None)
SECTIONS = (
    {"encrypted_param_names": [[]]},
    {"encrypted_param_names": "p"},
    {"parameters": ["a"]},
    {"parameters": {"p": ["rot13", "x"]}, "encrypted_param_names": ["p"]},
    {"parameter_defaults": "a"},
    {"resource_registry": [1]},
    {"resource_registry": {"resources": 5}},
    {"event_sinks": {"a": 1}},
)
KEPT = frozenset({"id", "stack_id", "resource_id", "owner_id", "snapshot_id"})
"""Columns by which rows belong to each other: without them it is another stack, or a row of none."""


@dataclass(frozen=True)
class Damage:
    """A wrong value of a column in one row of a stack's."""

    table: str
    column: str
    value: Json

    def __str__(self) -> str:
        return f"{self.table}.{self.column}={str(self.value)[:20]!r}"


def damages() -> Iterator[Damage]:
    """All columns that are read, each with wrong values of its type."""
    for table in heat_tables.metadata.sorted_tables:
        if table.name in ("stack_lock", "software_config", "software_deployment"):
            continue
        for column in table.c:
            if column.name not in KEPT:
                yield from (Damage(table.name, column.name, value) for value in _wrong(column))
    for section in SECTIONS:
        yield Damage("raw_template", "environment", json.dumps(section))
    yield Damage("resource_properties_data", "data", json.dumps({"value": ["a", "b", "c"]}))


def _wrong(column: "sa.Column[Json]") -> Sequence[Json]:
    kinds = {HeatJson: OF_JSON, HeatTime: OF_TIME, sa.Boolean: OF_FLAG, sa.Integer: OF_NUMBER}
    values = next((values for kind, values in kinds.items() if isinstance(column.type, kind)), OF_TEXT)
    return [value for value in values if value is not None or column.nullable]


class DamagedHeat:
    """Stacks of which each is damaged in one place."""

    def __init__(self, store: HeatStore, path: pathlib.Path) -> None:
        self._store = store
        self._path = path
        self.stacks: dict[str, Damage] = {}

    def fill(self, chosen: Sequence[Damage]) -> None:
        """Store a stack for each damage."""
        statements: list[tuple[str, Json]] = []
        for number, damage in enumerate(chosen):
            stack_id = self._stack(f"damaged{number}")
            self.stacks[stack_id] = damage
            statements += [
                (f"UPDATE {damage.table} SET {damage.column} = ? WHERE {key} = ?", (damage.value, owner))
                for key, owner in self._owners(damage.table, stack_id)
            ]
        conn = sqlite3.connect(self._path)
        for statement, values in statements:
            conn.execute(statement, values)
        conn.commit()
        conn.close()

    def _stack(self, name: str) -> str:
        """Store a stack with a row in each table."""
        row = value_row(data={"some": "value"}, attributes={"value": "v"})
        with self._store.engine.begin() as conn:
            creds = {"id": self._store.number(), "trust_id": "t", "decrypt_method": ""}
            conn.execute(sa.insert(heat_tables.user_creds), [creds])
        stack_id = self._store.stack(
            name, template({"v": VALUE}), [row], tags=["tag"], user_creds_id=creds["id"], timeout=5
        )
        snapshot = {"id": str(uuid.uuid4()), "stack_id": stack_id, "tenant": "project", "name": "s"}
        snapshot |= {"status": "COMPLETE", "action": "CREATE", "created_at": CREATED}
        snapshot["data"] = {"template": template({"v": VALUE}), "resources": {}}
        part = {"id": str(uuid.uuid4()), "snapshot_id": snapshot["id"], "resource_name": "v"}
        with self._store.engine.begin() as conn:
            conn.execute(sa.insert(heat_tables.snapshot), [snapshot])
            conn.execute(sa.insert(heat_tables.resource_snapshot), [{**part, "data": {"resource_data": {}}}])
        return stack_id

    def _owners(self, table: str, stack_id: str) -> Iterator[tuple[str, Json]]:
        """The key and the value by which the rows of a table belong to a stack."""
        if table == "stack":
            yield "id", stack_id
            return
        of_stack = {"resource", "event", "stack_tag", "snapshot"}
        if table in of_stack:
            yield "stack_id", stack_id
            return
        paths = {
            "raw_template": "SELECT raw_template_id FROM stack WHERE id = ?",
            "raw_template_files": "SELECT raw_template_id FROM stack WHERE id = ?",
            "user_creds": "SELECT user_creds_id FROM stack WHERE id = ?",
            "resource_properties_data": "SELECT rsrc_prop_data_id FROM resource WHERE stack_id = ?",
            "resource_data": "SELECT id FROM resource WHERE stack_id = ?",
            "resource_snapshot": "SELECT id FROM snapshot WHERE stack_id = ?",
        }
        keys = {"resource_data": "resource_id", "resource_snapshot": "snapshot_id"}
        conn = sqlite3.connect(self._path)
        for (key,) in conn.execute(paths[table], (stack_id,)):
            yield keys.get(table, "id"), key
        conn.close()


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def entries(stacks: Sequence[MovedStack]) -> dict[str, MovedStack]:
    return {entry.id: entry for entry in stacks}


@pytest.mark.parametrize("table", sorted({damage.table for damage in damages()}))
def test_a_damaged_row_keeps_its_own_stack_only(
    installation: Installation, tmp_path: pathlib.Path, table: str
) -> None:
    """Each column of the table with each wrong value of its type is in the database of one run."""
    heat = DamagedHeat(installation.heat, tmp_path / "heat.sqlite")
    heat.fill([damage for damage in damages() if damage.table == table])
    sound = [
        installation.heat.stack(f"sound{number}", template({"v": VALUE}), [value_row()])
        for number in range(3)
    ]
    report = entries(installation.run().stacks)
    unselected = {key for key, damage in heat.stacks.items() if damage.column in ("deleted_at", "backup")}
    assert {*heat.stacks, *sound} - report.keys() <= unselected
    assert {report[key].disposition for key in sound} == {Disposition.MOVED}
    for key, damage in heat.stacks.items():
        if (entry := report.get(key)) is None:
            continue
        assert (entry.disposition == Disposition.STAYS) == bool(entry.reasons), str(damage)
        if damage.value not in OF_TIME:  # Which SQLite alone stores, and its driver refuses to read.
            assert not any(".py, line" in reason for reason in entry.reasons), (str(damage), entry.reasons)


NAMED = [
    (
        Damage("resource", "rsrc_metadata", "{"),
        "resource v: its metadata is not JSON (resource.rsrc_metadata, id {resource})",
    ),
    (
        Damage("resource", "rsrc_metadata", "[]"),
        "resource v: its metadata is not a map (resource.rsrc_metadata, id {resource})",
    ),
    (
        Damage("stack", "timeout", -5),
        "its timeout is not one that a stack can have (stack.timeout, id {stack})",
    ),
    (Damage("stack", "status", "PERFECT"), "its status is not one that Heat has (stack.status, id {stack})"),
    (Damage("stack", "tenant", None), "its tenant is missing (stack.tenant, id {stack})"),
    (
        Damage("resource", "action", "DANCE"),
        "resource v: its action is not one that Heat has (resource.action, id {resource})",
    ),
    (
        Damage("resource_properties_data", "encrypted", 1),
        "resource v: its data is marked as encrypted, and is not (resource_properties_data.data, id",
    ),
    (
        Damage("raw_template", "environment", '{"encrypted_param_names": [[]]}'),
        "its environment has encrypted_param_names that are not names (raw_template.environment, id",
    ),
    (
        Damage("raw_template", "environment", '{"parameters": ["a"]}'),
        "its environment has parameters of a wrong type (raw_template.environment, id",
    ),
    (
        Damage("raw_template", "environment", '"text"'),
        "its environment is not a map (raw_template.environment, id",
    ),
]


@pytest.mark.parametrize(("damage", "reason"), NAMED, ids=lambda value: str(value)[:40])
def test_the_reason_names_the_resource_the_column_and_the_row(
    installation: Installation, tmp_path: pathlib.Path, damage: Damage, reason: str
) -> None:
    heat = DamagedHeat(installation.heat, tmp_path / "heat.sqlite")
    heat.fill([damage])
    [stack_id] = heat.stacks
    with installation.heat.engine.connect() as conn:
        number = conn.execute(sa.select(heat_tables.resource.c.id)).scalar_one()
    [entry] = installation.run().stacks
    [text] = entry.reasons
    assert text.startswith(reason.format(resource=number, stack=stack_id))


@pytest.mark.parametrize(
    ("type_name", "data", "words"),
    [
        (
            "OS::Nova::Server",
            {"internal_ports": '{"a"'},
            "its internal_ports are not JSON (resource_data.value",
        ),
        ("OS::Nova::Server", {"internal_ports": "[5]"}, "its internal_ports are of a wrong type"),
        ("OS::Nova::Server", {"internal_ports": '{"a": 1}'}, "its internal_ports are of a wrong type"),
        ("OS::Mistral::ExternalResource", {"outputs": "{"}, "its outputs are not JSON (resource_data.value"),
    ],
)
def test_data_that_an_adoption_has_brought_keeps_its_stack_only(
    installation: Installation, type_name: str, data: dict[str, str], words: str
) -> None:
    properties = {"actions": {}} if "Mistral" in type_name else {"flavor": "m1", "image": "cirros"}
    resource = {"type": type_name, "properties": properties}
    installation.heat.stack("adopted", template({"s": resource}), [HeatRow("s", "id", properties, data=data)])
    sound = installation.heat.stack("sound", template({"v": VALUE}), [value_row()])
    report = {entry.name: entry for entry in installation.run().stacks}
    assert report["sound"].disposition == Disposition.MOVED
    assert words in report["adopted"].reasons[0]
    assert installation.stack(sound).name == "sound"


def test_damaged_software_stays_and_is_named(installation: Installation, tmp_path: pathlib.Path) -> None:
    values = [*OF_JSON, '{"inputs": ["a"]}', '{"inputs": 5}', '{"options": []}']
    conn = sqlite3.connect(tmp_path / "heat.sqlite")
    for number, value in enumerate(values):
        row = (f"config-{number:02}", "n", value, "project")
        conn.execute("INSERT INTO software_config (id, name, config, tenant) VALUES (?, ?, ?, ?)", row)
        row = (f"deployment-{number:02}", "config-07", "server", value, "project")
        text = "INSERT INTO software_deployment (id, config_id, server_id, output_values, tenant)"
        conn.execute(f"{text} VALUES (?, ?, ?, ?, ?)", row)
    conn.commit()
    conn.close()
    report = installation.run()
    assert report.configs + report.deployments + len(report.notes) == 2 * len(values)
    assert report.configs > 0 < report.deployments
    assert any("software_config.config, id config-00" in note for note in report.notes)


def test_an_export_continues_after_a_damaged_stack(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    stack_ids = [installation.heat.stack(name, template({"v": VALUE}), [value_row()]) for name in "abc"]
    installation.run()
    conn = sqlite3.connect(tmp_path / "stoker.sqlite")
    conn.execute("UPDATE resource SET properties = '{' WHERE stack_id = ?", (stack_ids[0],))
    conn.execute("UPDATE stack SET parameters = '[]' WHERE id = ?", (stack_ids[1],))
    conn.commit()
    conn.close()
    report = entries(installation.export().stacks)
    assert {report[key].disposition for key in stack_ids[:2]} == {Disposition.STAYS}
    assert report[stack_ids[2]].disposition == Disposition.PRESENT


def test_the_latest_values_say_whether_the_key_is_heats(installation: Installation) -> None:
    for value in (encrypted("trust")[1], "damaged"):
        row = {
            "id": installation.heat.number(),
            "trust_id": value,
            "decrypt_method": "cryptography_decrypt_v1",
        }
        with installation.heat.engine.begin() as conn:
            conn.execute(sa.insert(heat_tables.user_creds), [row])
    HeatDatabase(installation.heat.engine, HeatCipher(KEY)).check_key()
