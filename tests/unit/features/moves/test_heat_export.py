"""The export of stacks into a database of Heat's: Stoker's rows become rows as Heat's engine leaves them."""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest
import sqlalchemy as sa
from harness.heat_database import CREATED, KEY, HeatRow, HeatStore, encrypted
from harness.heat_installation import VALUE, Installation, installed, only, template, value_row
from harness.programs import BIN, run
from sqlalchemy.engine import Connection
from stoker.db import resources, snapshots, stacks
from stoker.db.ids import ResourceId, SnapshotId, StackId, TraversalId
from stoker.db.rows import Resource, Snapshot
from stoker.db.schema import tables
from stoker.features.moves.heat import tables as heat_tables
from stoker.features.moves.heat.cipher import HeatCipher
from stoker.features.moves.heat.reader import HeatDatabase
from stoker.features.moves.heat.report import Disposition
from stoker.features.moves.heat.rows import HeatResource, HeatTree
from stoker.features.moves.heat.selection import Selection
from stoker.features.moves.mapping.names import arn, name_of, uuid_named, uuid_of
from stoker.features.moves.outward.run import SCHEMAS
from stoker.features.moves.outward.type_data import ResourceKeys, heat_data, notes_of

Json = typing.Any
SECRET = "the-secret-of-alice"
HIDDEN = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}
UUID = "6fb4c1a2-8f3e-4d57-a1b2-c3d4e5f60718"
CHANGED = CREATED + 60
DELETED_AT = CREATED + 90


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def plain_stack(installation: Installation, name: str = "plain") -> str:
    return installation.heat.stack(name, template({"v": VALUE}), [value_row()], tags=["b", "a"])


def tree_in_heat(store: HeatStore, root_id: str) -> HeatTree:
    [tree] = HeatDatabase(store.engine, HeatCipher(KEY)).trees([root_id])
    return tree


def resource_in_heat(store: HeatStore, root_id: str, name: str) -> HeatResource:
    tree = tree_in_heat(store, root_id)
    [row] = [row for stack in (tree.root, *tree.stacks) for row in stack.resources if row.name == name]
    return row


def dump(store: HeatStore) -> dict[str, list[str]]:
    """Everything that Heat's database has."""
    with store.engine.connect() as conn:
        names = sa.inspect(conn).get_table_names()
        return {name: sorted(map(str, conn.execute(sa.text(f"SELECT * FROM {name}")))) for name in names}


def emptied(installation: Installation) -> None:
    """Let the Heat beside Stoker have nothing: a new one."""
    installation.heat_url = installation.heat_url.replace("heat.sqlite", "new_heat.sqlite")
    installation.heat = HeatStore(installation.heat_url)


def change(installation: Installation, statement: typing.Any) -> None:
    installation.change(lambda conn: conn.execute(statement))


def updated(installation: Installation, stack_id: str, **columns: Json) -> None:
    """Let Stoker have worked on a stack."""
    columns = {"traversal": str(uuid.uuid4()), "updated_at": CHANGED, "action": "UPDATE", **columns}
    change(installation, sa.update(tables.stack).where(tables.stack.c.id == stack_id).values(columns))


# -- names -----------------------------------------------------------------------------------------


def test_names_of_nested_stacks_come_from_uuids_as_heat_makes_them() -> None:
    # 60 bits of the UUID: 0xd578f3e6fb4c1a2, five for each character.
    name = name_of("launch", "L", "6fb4c1a2-8f3e-4d57-a1b2-c3d4e5f60718")
    assert name == "launch-L-2v4phzx3jqnc"
    long = name_of("s" * 250, "L", "6fb4c1a2-8f3e-4d57-a1b2-c3d4e5f60718")
    assert (len(long), long[:3], long[-12:]) == (255, "ss-", "2v4phzx3jqnc")


@pytest.mark.parametrize("name", ["s-r-2v4phzx3jqnc", "s-r-aaaaaaaaaaaa", "s-r-777777777777"])
def test_a_name_that_heat_has_made_has_a_uuid(name: str) -> None:
    key = uuid_named(name, "s", "r")
    assert key is not None
    assert uuid.UUID(key).version == 4
    assert name_of("s", "r", key) == name


@pytest.mark.parametrize("name", ["s-r-0123456789ab", "other-r-2v4phzx3jqnc", "short"])
def test_a_name_that_heat_never_makes_has_none(name: str) -> None:
    assert uuid_named(name, "s", "r") is None


def test_a_resource_has_the_same_uuid_in_each_run() -> None:
    first, again, other = (uuid_of("stack", number) for number in (1, 1, 2))
    assert first == again != other
    assert {uuid.UUID(key).version for key in (first, other)} == {4}


# -- stacks that Heat has still --------------------------------------------------------------------


def test_what_nobody_has_changed_since_the_import_stays_as_it_is(installation: Installation) -> None:
    plain_stack(installation)
    installation.run()
    before = dump(installation.heat)
    assert installation.export().counts() == {"present": 1}
    assert dump(installation.heat) == before


def test_a_claim_is_taken_back(installation: Installation) -> None:
    plain_stack(installation)
    before = dump(installation.heat)
    installation.run(claims=True)
    assert dump(installation.heat) != before
    assert installation.export().counts() == {"moved": 1}
    assert dump(installation.heat) == before


def test_a_stack_that_stoker_has_changed_becomes_what_it_is_now(installation: Installation) -> None:
    root_id = plain_stack(installation)
    before = resource_in_heat(installation.heat, root_id, "v")
    installation.run(claims=True)
    updated(installation, root_id)
    row = {"properties": {"value": "new"}, "definition": {"properties": {"value": "new"}}}
    change(
        installation, sa.update(tables.resource).values({**row, "updated_at": CHANGED, "action": "UPDATE"})
    )
    assert installation.export().counts() == {"moved": 1}
    tree = tree_in_heat(installation.heat, root_id)
    assert (tree.root.action, tree.root.updated_at, tree.root.deleted_at) == ("UPDATE", CHANGED, None)
    resource = resource_in_heat(installation.heat, root_id, "v")
    assert (resource.properties, resource.action, resource.uuid) == ({"value": "new"}, "UPDATE", before.uuid)
    assert installation.export().counts() == {"present": 1}


def test_what_a_client_has_written_since_the_import_is_taken_over(installation: Installation) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    row = HeatRow("h", "user-1", {}, data={"user_id": "user-1"})
    root_id = installation.heat.stack("wait", template({"h": handle}), [row])
    installation.run()
    signal = {"1": {"status": "SUCCESS", "data": "d", "reason": "r", "id": "1"}}
    change(installation, sa.update(tables.resource).values(metadata=signal))
    assert installation.export().counts() == {"moved": 1}
    assert resource_in_heat(installation.heat, root_id, "h").metadata == signal


def test_a_stack_that_stoker_has_deleted_is_deleted_in_heat(installation: Installation) -> None:
    root_id = plain_stack(installation)
    installation.run()
    updated(installation, root_id, action="DELETE", deleted_at=DELETED_AT)
    assert only(installation.export(dry_run=True)).disposition == Disposition.MOVES
    assert tree_in_heat(installation.heat, root_id).root.deleted_at is None
    assert only(installation.export()).disposition == Disposition.MOVED
    tree = tree_in_heat(installation.heat, root_id)
    assert (tree.root.deleted_at, tree.root.resources) == (DELETED_AT, [])
    assert installation.export().stacks == []


def test_a_stack_on_which_both_have_worked_stays(installation: Installation) -> None:
    root_id = plain_stack(installation)
    installation.run()
    s = heat_tables.stack
    with installation.heat.engine.begin() as conn:
        columns = {"current_traversal": str(uuid.uuid4()), "updated_at": CHANGED}
        conn.execute(sa.update(s).where(s.c.id == root_id).values(columns))
    assert "both have worked on it" in only(installation.export()).reasons[0]


def test_a_stack_that_an_engine_of_heat_has_locked_stays(installation: Installation) -> None:
    root_id = plain_stack(installation)
    installation.run()
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.insert(heat_tables.stack_lock), [{"stack_id": root_id, "engine_id": "engine-1"}])
    assert "stop heat-engine" in only(installation.export()).reasons[0]


# -- stacks that Heat does not have ----------------------------------------------------------------


def nested_stack(installation: Installation) -> str:
    """Store a stack with a nested one, a hidden parameter, and private data; its id."""
    child = template({"v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}})
    child |= {
        "parameters": {"p": {"type": "string"}},
        "outputs": {"o": {"value": {"get_attr": ["v", "value"]}}},
    }
    root = template(
        {
            "c": {"type": "child.yaml", "properties": {"p": "x"}},
            "r": {"type": "OS::Heat::RandomString", "properties": {"length": 8}, "depends_on": "c"},
            "hidden": HIDDEN,
            "ref": {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "c"}}},
        },
        parameters={"p": {"type": "string", "hidden": True}},
        outputs={"o": {"value": {"get_attr": ["c", "o"]}}},
    )
    store = installation.heat
    environment = {"parameters": {"p": encrypted(SECRET)}, "encrypted_param_names": ["p"]}
    root_id = store.stack("root", root, files={"child.yaml": json.dumps(child)}, environment=environment)
    name = name_of("root", "c", UUID)
    child_id = store.stack(name, child, [value_row(value="x")], owner_id=root_id, parent_resource_name="c")
    reference = arn("project", name, child_id)
    with store.engine.connect() as conn:
        query = sa.select(heat_tables.stack.c.raw_template_id).where(heat_tables.stack.c.id == root_id)
        template_id = conn.execute(query).scalar_one()
    store.resource(root_id, HeatRow("c", child_id, {"p": "x"}, columns={"uuid": UUID}), template_id)
    row = HeatRow("r", "root-r", {"length": 8}, data={"value": "hush-hush"}, secret=["value"])
    store.resource(root_id, row, template_id)
    store.resource(root_id, value_row("hidden", SECRET), template_id)
    store.resource(root_id, value_row("ref", reference), template_id)
    return root_id


def test_heat_gets_what_it_had_where_it_has_purged_it(installation: Installation) -> None:
    root_id = nested_stack(installation)
    before = tree_in_heat(installation.heat, root_id)
    assert only(installation.run()).differences == []
    emptied(installation)
    assert only(installation.export()).disposition == Disposition.MOVED
    after = tree_in_heat(installation.heat, root_id)
    ignored = {"template_id", "resources", "events", "creds_id", "reason"}
    for old, new in zip((before.root, *before.stacks), (after.root, *after.stacks), strict=True):
        assert same(old, new, ignored)
        assert before.templates[old.template_id].template == after.templates[new.template_id].template
        rows = {row.name: row for row in new.resources}
        for row in old.resources:
            fields = {"id", "uuid", "template_id", "requires", "is_secret", "attributes", "reason"}
            assert same(row, rows[row.name], fields)
    assert resource_in_heat(installation.heat, root_id, "c").uuid.startswith(UUID[:18])
    environment = after.templates[after.root.template_id].environment
    assert environment["parameters"] == {"p": SECRET}
    assert installation.export().counts() == {"present": 1}


def same(old: typing.Any, new: typing.Any, ignored: set[str]) -> bool:
    names = {field.name for field in dataclasses.fields(old)} - ignored
    different = {name for name in names if getattr(old, name) != getattr(new, name)}
    assert not different, [(name, getattr(old, name), getattr(new, name)) for name in different]
    return True


def test_secrets_are_encrypted_with_heats_key(installation: Installation) -> None:
    nested_stack(installation)
    installation.run()
    emptied(installation)
    installation.export()
    text = str(dump(installation.heat))
    assert SECRET not in text
    assert "hush-hush" not in text


def test_what_was_exported_is_imported_again_without_a_difference(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    nested_stack(installation)
    installation.run()
    emptied(installation)
    installation.export()
    folder = tmp_path / "other"
    folder.mkdir()
    other = Installation(folder)
    with contextlib.closing(other.database):
        other.heat = installation.heat
        entry = only(other.run())
    assert (entry.disposition, entry.differences) == (Disposition.MOVED, [])


def test_dependencies_are_stored_for_deletions(installation: Installation) -> None:
    root_id = nested_stack(installation)
    installation.run()
    emptied(installation)
    installation.export()
    rows = {row.name: row for row in tree_in_heat(installation.heat, root_id).root.resources}
    assert rows["r"].requires == [rows["c"].id]
    assert list(rows["c"].requires) == []


# -- data, snapshots, software ----------------------------------------------------------------------

PORTS = [{"port": "port-1", "is_own": True}, {"port": "port-2", "is_own": False}]
KEYS = ResourceKeys("access", "secret", "user")
DATA: Mapping[str, tuple[Json, ResourceKeys, dict[str, str]]] = {
    "OS::Nova::Server": (
        {"interfaces": PORTS, "imported_ports": ["port-0", "port-1"]},
        ResourceKeys(),
        {"internal_ports": '[{"id": "port-1"}, {"id": "port-0"}]'},
    ),
    "AWS::EC2::Instance": ({"interfaces": PORTS}, ResourceKeys(), {"port_id": "port-1"}),
    "OS::Nova::KeyPair": ({"private_key": "k"}, ResourceKeys(), {"private_key": "k"}),
    "OS::Heat::ResourceGroup": ({"removed": ["2", "0"]}, ResourceKeys(), {"name_blacklist": "0,2"}),
    "OS::Heat::ScalingPolicy": (
        {"alarm_url": "http://stoker"},
        KEYS,
        {"access_key": "access", "secret_key": "secret", "user_id": "user"},
    ),
    "AWS::IAM::AccessKey": ({"secret": "s"}, ResourceKeys("access", "s"), {"secret_key": "s"}),
    "AWS::CloudFormation::WaitConditionHandle": (
        {"url": "http://signed"},
        ResourceKeys(),
        {"ec2_signed_url": "http://signed"},
    ),
    "OS::Heat::WaitConditionHandle": (
        {"endpoint": "http://e", "token": "t", "account": {"user_id": "user", "password": "p"}},
        ResourceKeys(user_id="user"),
        {"endpoint": "http://e", "token": "t", "password": "p", "user_id": "user"},
    ),
    "OS::Heat::Value": ({"anything": 1}, ResourceKeys(), {}),
}
"""By the type of a resource: Stoker's data, the keys that Heat has made, and the data that Heat keeps."""


def resource_of(plugin: str) -> Resource:
    return Resource(
        id=ResourceId(1),
        stack_id=StackId("s"),
        name="r",
        type=plugin,
        plugin=plugin,
        action="CREATE",
        status="COMPLETE",
        reason="",
        created_at=CREATED,
        updated_at=CREATED,
        physical_id="id",
    )


def test_the_data_of_a_resource_is_what_heats_type_keeps() -> None:
    data = {name: heat_data(resource_of(name), of_type, keys) for name, (of_type, keys, _) in DATA.items()}
    assert data == {name: expected for name, (_, _, expected) in DATA.items()}


def test_addresses_that_stoker_has_made_are_noted() -> None:
    policy = resource_of("OS::Heat::ScalingPolicy")
    assert list(notes_of(policy, {}, KEYS)) == []
    assert "r: clients and alarms have an address" in next(notes_of(policy, {}, ResourceKeys()))
    server = {"user_data_format": "SOFTWARE_CONFIG"}
    assert "r: its guest asks" in next(notes_of(resource_of("OS::Nova::Server"), server, ResourceKeys()))


def snapshot_of(installation: Installation, stack_id: str) -> str:
    """Let Stoker have taken a snapshot of a stack; its id."""
    stack = installation.stack(stack_id)
    goal = {"template": stack.template_id, "environment": stack.environment_id, "files": stack.files_id}
    snapshot = Snapshot(
        id=SnapshotId(str(uuid.uuid4())),
        stack_id=stack.id,
        name="s1",
        action="CREATE",
        status="COMPLETE",
        reason="",
        traversal=TraversalId("t"),
        goal={**goal, "parameters": stack.parameters},
        tags=["a"],
        created_at=CREATED,
    )
    copies = [
        dataclasses.replace(
            row,
            id=ResourceId(row.id + 1000),
            snapshot_id=snapshot.id,
            data={"backup_id": "b1", "other": "x"},
        )
        for row in installation.rows(stack_id).values()
    ]

    def store(conn: Connection) -> None:
        snapshots.insert(conn, stack, snapshot)
        resources.insert_many(conn, copies)

    installation.change(store)
    return snapshot.id


def test_a_snapshot_is_moved_with_what_it_has_made(installation: Installation) -> None:
    root_id = plain_stack(installation)
    installation.run()
    snapshot_id = snapshot_of(installation, root_id)
    assert "snapshot" not in str(only(installation.export()).notes)
    [snapshot] = tree_in_heat(installation.heat, root_id).root.snapshots
    assert (snapshot.id, snapshot.name, snapshot.status) == (snapshot_id, "s1", "COMPLETE")
    data = snapshot.data or {}
    assert data["template"] == template({"v": VALUE})
    assert data["resources"]["v"]["resource_data"] == {"backup_id": "b1"}
    assert installation.export().counts() == {"present": 1}

    def delete(conn: Connection) -> None:
        stored = snapshots.get(conn, StackId(root_id), SnapshotId(snapshot_id))
        snapshots.begin_deletion(conn, stored, TraversalId("d"), "")
        snapshots.end(conn, [TraversalId("d")], reason="", failed=False)

    installation.database.write(delete)
    assert installation.export().counts() == {"moved": 1}
    assert tree_in_heat(installation.heat, root_id).root.snapshots == []


def test_a_snapshot_with_hidden_values_stays(installation: Installation) -> None:
    hidden = template({"v": HIDDEN}, parameters={"p": {"type": "string", "hidden": True}})
    environment = {"parameters": {"p": encrypted(SECRET)}, "encrypted_param_names": ["p"]}
    root_id = installation.heat.stack("hidden", hidden, [value_row(value=SECRET)], environment=environment)
    installation.run()
    emptied(installation)
    snapshot_of(installation, root_id)
    assert "snapshot s1 has hidden values" in str(only(installation.export()).notes)
    assert tree_in_heat(installation.heat, root_id).root.snapshots == []
    assert SECRET not in str(dump(installation.heat))


def test_configs_and_deployments_are_moved_as_they_are_now(installation: Installation) -> None:
    body = {"config": "echo", "inputs": [], "outputs": [], "options": {}}
    config = {"id": str(uuid.uuid4()), "name": "n", "group": "script", "tenant": "project", "config": body}
    deployment = {"id": str(uuid.uuid4()), "config_id": config["id"], "server_id": "s", "tenant": "project"}
    deployment |= {"action": "CREATE", "status": "COMPLETE", "output_values": {"y": "1"}}
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.insert(heat_tables.software_config), [{**config, "created_at": CREATED}])
        conn.execute(sa.insert(heat_tables.software_deployment), [{**deployment, "created_at": CREATED}])
    installation.run()
    emptied(installation)
    report = installation.export()
    assert (report.configs, report.deployments) == (1, 1)
    heat = HeatDatabase(installation.heat.engine, HeatCipher(KEY))
    [moved_config], [moved] = heat.software("project", [str(deployment["id"])])
    assert (moved.output_values, moved.status, moved.config_id) == ({"y": "1"}, "COMPLETE", config["id"])
    assert (moved_config.name, moved_config.group, moved_config.config) == ("n", "script", body)


# -- what stays ------------------------------------------------------------------------------------


def a_task(conn: Connection, stack_id: StackId) -> None:
    row = {"id": 1, "traversal": "t", "stack_id": stack_id, "kind": "update", "state": "parked", "pending": 0}
    row["resource_id"] = 1
    lists: Json = {"restricted": [], "inputs": {}, "successors": []}
    conn.execute(sa.insert(tables.task).values({**row, "shard": 0, **lists}))


def an_orphan(conn: Connection, stack_id: StackId) -> None:
    stack = stacks.get(conn, stack_id)
    orphan = dataclasses.replace(stack, id=StackId(str(uuid.uuid4())), parent_id=stack_id, live_name=None)
    stacks.insert_many(conn, [orphan])


def in_progress(conn: Connection, stack_id: StackId) -> None:
    s = tables.stack
    conn.execute(sa.update(s).where(s.c.id == stack_id).values(status="IN_PROGRESS"))


def with_resource(**columns: Json) -> Callable[[Connection, StackId], None]:
    """Return a change of the only resource of a stack."""
    r = tables.resource
    return lambda conn, stack_id: conn.execute(sa.update(r).where(r.c.stack_id == stack_id).values(columns))


OBSTACLES: Mapping[str, tuple[Callable[[Connection, StackId], None], str]] = {
    "stack": (in_progress, "is CREATE_IN_PROGRESS: let Stoker finish"),
    "row": (with_resource(status="IN_PROGRESS"), "resource v is CREATE_IN_PROGRESS"),
    "plugin": (with_resource(plugin="Acme::Own::Type"), "Heat has no type Acme::Own::Type"),
    "account": (with_resource(plugin="AWS::IAM::User"), "is an account of Stoker's own"),
    "template": (with_resource(name="gone"), "is in no template that Stoker has"),
    "balancer": (
        with_resource(plugin="AWS::ElasticLoadBalancing::LoadBalancer"),
        "use OS::Octavia::LoadBalancer",
    ),
    "task": (a_task, "Stoker works on stack task"),
    "orphan": (an_orphan, "is still to be deleted"),
}
"""By the stack's name: what is wrong with it, and the reason that is reported."""


def test_stacks_that_cannot_be_moved_stay_with_a_reason(installation: Installation) -> None:
    ids = {name: StackId(plain_stack(installation, name)) for name in (*OBSTACLES, "sound")}
    installation.run()
    emptied(installation)
    for name, (prepare, _) in OBSTACLES.items():
        installation.change(lambda conn, name=name, prepare=prepare: prepare(conn, ids[name]))  # type: ignore[misc]
    for dry_run in (True, False):
        report = {entry.name: entry for entry in installation.export(dry_run=dry_run).stacks}
        moved = [name for name, entry in report.items() if entry.disposition != Disposition.STAYS]
        assert moved == ["sound"]
        missing = [name for name, (_, text) in OBSTACLES.items() if text not in str(report[name].reasons)]
        assert missing == []
    with installation.heat.engine.connect() as conn:
        assert list(conn.execute(sa.select(heat_tables.stack.c.name)).scalars()) == ["sound"]


def test_a_stack_whose_name_heat_has_already_stays(installation: Installation) -> None:
    plain_stack(installation)
    installation.run()
    emptied(installation)
    plain_stack(installation)
    for dry_run in (True, False):
        assert "another stack of this name" in only(installation.export(dry_run=dry_run)).reasons[0]


def test_a_selection_names_projects_and_stacks(installation: Installation) -> None:
    for name, project in (("a", "one"), ("b", "one"), ("c", "two")):
        installation.heat.stack(name, template({"v": VALUE}), [value_row()], tenant=project)
    installation.run()
    report = installation.export(dry_run=True, selection=Selection(projects=["one"]))
    assert sorted(entry.name for entry in report.stacks) == ["a", "b"]
    report = installation.export(dry_run=True, selection=Selection(["one"], ["b"]))
    assert [entry.name for entry in report.stacks] == ["b"]


# -- the command -----------------------------------------------------------------------------------


def manage(installation: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "stoker-manage", "--config-file", installation.config, "export-heat", *arguments]
    return run([*command, "--database", installation.heat_url])


def with_revision(store: HeatStore, revision: str) -> None:
    with store.engine.begin() as conn:
        conn.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        conn.execute(sa.text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})


@pytest.mark.parametrize(
    ("revision", "words"),
    [(None, "its schema has no revision"), ("88be64598c0f", "its schema is of revision 88be64598c0f")],
)
def test_the_schema_of_another_release_is_refused(
    installation: Installation, tmp_path: pathlib.Path, revision: str | None, words: str
) -> None:
    if revision is not None:
        with_revision(installation.heat, revision)
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    done = manage(installation, "--encryption-key-file", str(key_file))
    assert done.returncode == 1
    assert words in done.stderr
    assert "Heat 27" in done.stderr


@pytest.mark.parametrize("key", [None, "another key of thirty-two chars."])
def test_without_heats_key_nothing_is_written(
    installation: Installation, tmp_path: pathlib.Path, key: str | None
) -> None:
    nested_stack(installation)
    installation.run()
    with_revision(installation.heat, next(iter(SCHEMAS)))
    arguments = []
    if key is not None:
        (tmp_path / "key").write_text(key)
        arguments = ["--encryption-key-file", str(tmp_path / "key")]
    done = manage(installation, *arguments)
    assert done.returncode == 1
    assert "auth_encryption_key" in done.stderr


def test_the_command_reports_what_stays_and_shows_no_secret(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    nested_stack(installation)
    plain_stack(installation)
    installation.run()
    with_revision(installation.heat, next(iter(SCHEMAS)))
    busy = tables.stack.c.name == "plain"
    change(installation, sa.update(tables.stack).where(busy).values(status="IN_PROGRESS"))
    (tmp_path / "heat.conf").write_text(f"[DEFAULT]\nauth_encryption_key = {KEY}\n")
    arguments = ["--encryption-key-file", str(tmp_path / "heat.conf"), "--report", "json"]
    done = manage(installation, *arguments, "--dry-run")
    assert done.returncode == 2, done
    ends = {entry["name"]: entry["disposition"] for entry in json.loads(done.stdout)["stacks"]}
    assert ends == {"root": "moves", "plain": "stays"}
    assert SECRET not in done.stdout + done.stderr
    assert manage(installation, *arguments, "--stack", "root").returncode == 0


def test_an_interrupted_run_is_continued_and_its_error_shows_no_secret(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    nested_stack(installation)
    installation.run()
    emptied(installation)
    with_revision(installation.heat, next(iter(SCHEMAS)))
    with installation.heat.engine.begin() as conn:
        full = "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        conn.execute(sa.text(f"CREATE TRIGGER full BEFORE INSERT ON resource_data {full}"))
    (tmp_path / "key").write_text(KEY)
    done = manage(installation, "--encryption-key-file", str(tmp_path / "key"))
    assert done.returncode == 2
    assert "stays: a database refuses its rows: the disk is full" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert dump(installation.heat)["stack"] == []
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.text("DROP TRIGGER full"))
    assert installation.export().counts() == {"moved": 1}
