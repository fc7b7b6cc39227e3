"""The import of stacks from a database of Heat's: rows as Heat's engine leaves them become Stoker's."""

import base64
import json
import pathlib
import subprocess
import typing
import uuid
from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from harness.heat_database import CREATED, KEY, HeatRow, encrypted
from harness.heat_installation import VALUE, Installation, installed, only, template, value_row
from harness.programs import BIN, run
from stoker.cli.wiring.secrets import make_sealer
from stoker.db import events, imported_keys, snapshots, stacks, usage
from stoker.db.ids import StackId
from stoker.db.rows import FailureCause
from stoker.features.moves.heat import tables as heat_tables
from stoker.features.moves.heat.cipher import HeatCipher, WrongKey
from stoker.features.moves.heat.reader import UnfitDatabase
from stoker.features.moves.heat.report import Disposition
from stoker.features.moves.heat.selection import Selection, WrongSelection
from stoker.features.moves.inward.run import CLAIMED_BY
from stoker.sealing.stored import in_clear

Json = typing.Any


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def test_a_stack_keeps_its_ids_its_facts_and_its_events(installation: Installation) -> None:
    stack_id = installation.heat.stack(
        "plain",
        template({"v": VALUE}, outputs={"o": {"value": {"get_attr": ["v", "value"]}}}),
        [value_row()],
        tags=["b", "a"],
        timeout=17,
        updated_at=CREATED + 60,
    )
    entry = only(installation.run())
    assert (entry.disposition, entry.differences, entry.notes) == (Disposition.MOVED, [], [])
    stack = installation.stack(stack_id)
    assert (stack.name, stack.live_name, stack.project_id, stack.owner) == (
        "plain",
        "plain",
        "project",
        "alice",
    )
    assert (stack.action, stack.status, stack.timeout_mins) == ("CREATE", "COMPLETE", 17)
    assert (stack.created_at, stack.updated_at, stack.tags) == (CREATED, CREATED + 60, ("b", "a"))
    row = installation.rows(stack_id)["v"]
    assert (row.physical_id, row.properties, row.attributes) == ("stack-v", {"value": "v"}, {"value": "v"})
    query = events.EventQuery(StackId(stack_id))
    [(event, _)] = installation.database.read(lambda conn: events.list_events(conn, query))
    assert (event.resource_name, event.at) == ("v", CREATED)


def test_hidden_values_are_sealed_wherever_they_are(installation: Installation) -> None:
    secret = "the-secret-of-alice"
    stack_id = installation.heat.stack(
        "hidden",
        template(
            {"v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}},
            parameters={"p": {"type": "string", "hidden": True}},
        ),
        [value_row(value=secret)],
        environment={"parameters": {"p": encrypted(secret)}, "encrypted_param_names": ["p"]},
    )
    assert only(installation.run()).differences == []
    assert secret not in installation.text()
    assert installation.rows(stack_id)["v"].status == "COMPLETE"


def test_a_hidden_value_is_sealed_where_an_attribute_has_it_in_another_form(
    installation: Installation,
) -> None:
    secret = 'the "secret"\tof\nalice'
    cloud_config = {"password": {"get_param": "p"}}
    config = {"type": "OS::Heat::CloudConfig", "properties": {"cloud_config": cloud_config}}
    stack_id = installation.heat.stack(
        "hidden",
        template(
            {"c": config},
            parameters={"p": {"type": "string", "hidden": True}},
            outputs={"o": {"value": {"get_attr": ["c", "config"]}}},
        ),
        [HeatRow("c", str(uuid.uuid4()), {"cloud_config": {"password": secret}})],
        environment={"parameters": {"p": encrypted(secret)}, "encrypted_param_names": ["p"]},
    )
    assert only(installation.run()).differences == []
    assert "alice" not in json.dumps(vars(installation.rows(stack_id)["c"]))


@pytest.mark.parametrize("key", [None, "another key of thirty-two chars."])
def test_a_stack_that_another_key_has_encrypted_stays(installation: Installation, key: str | None) -> None:
    row = HeatRow("r", "stack-r", {"length": 8}, data={"value": "x"}, secret=["value"])
    installation.heat.stack("random", template({"r": {"type": "OS::Heat::RandomString"}}), [row])
    installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    report = {entry.name: entry for entry in installation.run(key).stacks}
    assert report["plain"].disposition == Disposition.MOVED
    assert report["random"].disposition == Disposition.STAYS
    assert "auth_encryption_key" in report["random"].reasons[0]


def _cbc(text: str) -> str:
    padding = 16 - (len(text) + 1) % 16
    padded = text.encode() + b"\0" + b"\0" * (padding - 1) + bytes([padding])
    return _with_iv(padded, modes.CBC(b"i" * 16))


def _cfb(text: str) -> str:
    """Encrypt by CFB, as NIST SP 800-38A defines it."""
    encryptor = Cipher(algorithms.AES(KEY.encode()), modes.ECB()).encryptor()  # noqa: S305
    whole = b"i" * 16
    for start in range(0, len(text), 16):
        pad = encryptor.update(whole[-16:])
        whole += bytes(a ^ b for a, b in zip(text[start : start + 16].encode(), pad, strict=False))
    return base64.b64encode(whole).decode()


def _with_iv(data: bytes, mode: modes.Mode) -> str:
    encryptor = Cipher(algorithms.AES(KEY.encode()), mode).encryptor()
    return base64.b64encode(b"i" * 16 + encryptor.update(data) + encryptor.finalize()).decode()


@pytest.mark.parametrize("length", [1, 14, 15, 16, 31])
def test_values_of_old_releases_are_opened(length: int) -> None:
    cipher = HeatCipher(KEY)
    text = "s" * length
    assert cipher.open("oslo_decrypt_v1", _cbc(text)) == text
    assert cipher.open("heat_decrypt", _cfb(text)) == text


def test_a_method_that_is_not_known_is_no_key() -> None:
    with pytest.raises(WrongKey):
        HeatCipher(KEY).open("rot13", "abc")


def _nested(installation: Installation) -> tuple[str, str]:
    child = template({"v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}})
    child |= {
        "parameters": {"p": {"type": "string"}},
        "outputs": {"o": {"value": {"get_attr": ["v", "value"]}}},
    }
    root = template(
        {"c": {"type": "child.yaml", "properties": {"p": "x"}}},
        outputs={"o": {"value": {"get_attr": ["c", "o"]}}},
    )
    store = installation.heat
    files = {"child.yaml": json.dumps(child)}
    root_id = store.stack("root", root, files=files)
    child_id = store.stack(
        "root-c-1", child, [value_row(value="x")], owner_id=root_id, parent_resource_name="c"
    )
    with store.engine.connect() as conn:
        query = sa.select(heat_tables.stack.c.raw_template_id).where(heat_tables.stack.c.id == root_id)
        template_id = conn.execute(query).scalar_one()
    store.resource(root_id, HeatRow("c", child_id, {"p": "x"}), template_id)
    return root_id, child_id


def test_a_nested_stack_keeps_its_id_and_its_outputs_are_its_parents_attributes(
    installation: Installation,
) -> None:
    root_id, child_id = _nested(installation)
    entry = only(installation.run())
    assert (entry.stacks, entry.resources, entry.differences) == (2, 2, [])
    child = installation.stack(child_id)
    row = installation.rows(root_id)["c"]
    assert (child.parent_id, child.parent_resource_id, child.root_id, child.depth) == (
        root_id,
        row.id,
        root_id,
        1,
    )
    assert (child.name, row.physical_id) == ("root-c-1", child_id)
    assert (row.attributes or {})["o"] == "x"


@pytest.mark.parametrize(("seconds", "names"), [(5, ["zz", "aa"]), (0.6, ["aa", "zz"]), (0, ["aa", "zz"])])
def test_members_of_a_group_keep_their_order_and_the_definitions_that_they_have(
    installation: Installation, seconds: float, names: list[str]
) -> None:
    """Heat has them in the order of their seconds, and those of one second in that of their names."""
    member = {"type": "OS::Heat::Value", "properties": {"value": "new"}}
    old = {"type": "OS::Heat::Value", "properties": {"value": "old"}}
    group = {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {"min_size": 1, "max_size": 5, "resource": member},
    }
    store = installation.heat
    root_template = template(
        {"g": group}, outputs={"r": {"value": {"get_attr": ["g", "outputs_list", "value"]}}}
    )
    root_id = store.stack("root", root_template)
    bodies = {"zz": old, "aa": member}
    rows = [
        value_row("zz", "old", columns={"created_at": CREATED}),
        value_row("aa", "new", columns={"created_at": CREATED + seconds}),
    ]
    child_id = store.stack("root-g", template(bodies), rows, owner_id=root_id, parent_resource_name="g")
    store.resource(root_id, HeatRow("g", child_id, group["properties"]), store.template(root_template))
    assert only(installation.run()).disposition == Disposition.MOVED
    group_row = installation.rows(root_id)["g"]
    assert (group_row.data or {})["names"] == names
    values = {"zz": "old", "aa": "new"}
    assert (group_row.attributes or {})["outputs_list, value"] == [values[name] for name in names]


def _group(installation: Installation, size: int, **properties: Json) -> Sequence[str]:
    """Import a group that has some members; return what an update would change."""
    member = {"type": "OS::Heat::Value", "properties": {"value": "m"}}
    properties = {"min_size": 0, "max_size": 9, "resource": member, **properties}
    root_template = template({"g": {"type": "OS::Heat::AutoScalingGroup", "properties": properties}})
    root_id = installation.heat.stack("root", root_template)
    names = [f"m{number}" for number in range(size)]
    rows = [value_row(name, "m") for name in names]
    nested = {"owner_id": root_id, "parent_resource_name": "g"}
    child_id = installation.heat.stack("root-g", template(dict.fromkeys(names, member)), rows, **nested)
    number = installation.heat.template(root_template)
    installation.heat.resource(root_id, HeatRow("g", child_id, properties), number)
    differences: Sequence[str] = only(installation.run()).differences
    return differences


def test_members_that_an_update_would_delete_are_named_first(installation: Installation) -> None:
    """A signal has made the group larger, and each update brings it to its desired capacity, as in Heat."""
    differences = _group(installation, 4, desired_capacity=2)
    assert differences == [
        f"root-g: resource m{number} would be deleted: the template has another size of the group"
        for number in range(2)
    ]


def test_members_that_an_update_would_create_are_named(installation: Installation) -> None:
    differences = _group(installation, 1, desired_capacity=2)
    assert [text.partition(" would be ")[2] for text in differences] == [
        "created: the template has another size of the group"
    ]


def test_a_group_without_a_desired_capacity_keeps_its_size(installation: Installation) -> None:
    assert _group(installation, 3) == []


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"action": "UPDATE", "status": "IN_PROGRESS"}, "is UPDATE_IN_PROGRESS: let Heat finish"),
        ({"raw_template_id": 4711}, "which Heat has purged"),
    ],
)
def test_a_stack_that_cannot_be_moved_stays_with_a_reason(
    installation: Installation, columns: Json, reason: str
) -> None:
    installation.heat.stack("odd", template({"v": VALUE}), [value_row()], **columns)
    entry = only(installation.run())
    assert entry.disposition == Disposition.STAYS
    assert reason in entry.reasons[0]


def test_a_type_of_an_operator_keeps_its_stack_and_no_other_one(installation: Installation) -> None:
    installation.heat.stack("own", template({"x": {"type": "Acme::Own::Type"}}), [HeatRow("x", "1")])
    installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    report = {entry.name: entry for entry in installation.run().stacks}
    assert "Acme::Own::Type" in report["own"].reasons[0]
    assert report["plain"].disposition == Disposition.MOVED


def test_a_stack_at_a_breakpoint_stays(installation: Installation) -> None:
    row = value_row(data={"pre-update": "True"}, columns={"status": "IN_PROGRESS"})
    installation.heat.stack("held", template({"v": VALUE}), [row], action="UPDATE", status="IN_PROGRESS")
    assert "held at the breakpoint of v (pre-update)" in only(installation.run()).reasons[0]


def test_a_dry_run_stores_nothing_and_a_second_run_moves_nothing_again(installation: Installation) -> None:
    stack_id = installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    assert only(installation.run(dry_run=True)).disposition == Disposition.MOVES
    assert stack_id not in installation.text()
    assert installation.run().counts() == {"moved": 1}
    before = installation.text()
    assert installation.run().counts() == {"present": 1}
    assert installation.text() == before


def test_a_stack_whose_name_stoker_has_already_stays(installation: Installation) -> None:
    installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    installation.run()
    installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    for dry_run in (True, False):
        assert "another stack of this name" in only(installation.run(dry_run=dry_run)).reasons[0]


def test_a_stack_with_an_id_that_stoker_has_already_stays_with_that_reason(
    installation: Installation,
) -> None:
    """Import a copy of Heat's database in which somebody has given the root another id and name."""
    root_id, child_id = _nested(installation)
    assert only(installation.run()).disposition == Disposition.MOVED
    other = str(uuid.uuid4())
    s = heat_tables.stack
    r = heat_tables.resource
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.update(s).where(s.c.id == root_id).values(id=other, name="other"))
        conn.execute(sa.update(s).where(s.c.id == child_id).values(owner_id=other))
        conn.execute(sa.update(r).where(r.c.stack_id == root_id).values(stack_id=other))
    [reason] = only(installation.run()).reasons
    assert "Stoker already has another row with the" in reason


def test_half_updated_resources_keep_the_definition_of_the_template_that_they_had(
    installation: Installation,
) -> None:
    store = installation.heat
    new = {"type": "OS::Heat::Value", "properties": {"value": "new"}}
    before = store.template(template({"v": VALUE, "w": VALUE}))
    stack_id = store.stack(
        "half",
        template({"v": new, "w": new}),
        [
            value_row("v", "v", columns={"current_template_id": before}),
            value_row("w", "new", columns={"action": "UPDATE", "status": "FAILED", "status_reason": "boom"}),
        ],
        action="UPDATE",
        status="FAILED",
        status_reason="Resource UPDATE failed: ValueError: resources.w: boom",
        prev_raw_template_id=before,
    )
    entry = only(installation.run())
    assert entry.differences == [
        "half: resource w has failed, and would be repaired or replaced",
        "half: resource v has another definition",
        "half: resource v: value would change",
    ]
    stack = installation.stack(stack_id)
    assert (stack.previous or {})["template"] != stack.template_id
    cause = stack.failure_cause
    assert cause == FailureCause("boom", "ValueError", "resources.w")
    assert (installation.rows(stack_id)["v"].definition or {})["properties"] == {"value": "v"}


def test_what_was_in_progress_when_its_stack_failed_counts_as_failed(installation: Installation) -> None:
    row = value_row(columns={"status": "IN_PROGRESS"})
    stack_id = installation.heat.stack("lost", template({"v": VALUE}), [row], status="FAILED")
    installation.run()
    assert installation.rows(stack_id)["v"].status == "FAILED"
    assert events_of(installation, stack_id) == [
        ("v", "CREATE_IN_PROGRESS", "state changed"),
        (
            "v",
            "CREATE_FAILED",
            "imported from Heat in this state: it was in progress when its stack failed in Heat",
        ),
    ]


def events_of(installation: Installation, stack_id: str) -> list[tuple[str, str, str]]:
    """The events of a stack, as a user reads them: name, status, reason."""
    query = events.EventQuery(StackId(stack_id))
    listed = installation.database.read(lambda conn: events.list_events(conn, query))
    return [(event.resource_name, f"{event.action}_{event.status}", event.reason) for event, _ in listed]


def test_each_status_that_no_event_of_heats_explains_has_an_event_of_the_import(
    installation: Installation,
) -> None:
    """Heat deletes old events, and changes the members of groups without one."""
    names = ["deleted", "changed", "signalled", "replacement", "new"]
    rows = [value_row(name) for name in names[:-1]]
    rows.append(value_row("new", columns={"action": "INIT"}))
    stack_id = installation.heat.stack("s", template(dict.fromkeys(names, VALUE)), rows)
    resource = heat_tables.resource
    event = heat_tables.event
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.delete(event).where(event.c.resource_name.in_(["deleted", "new"])))
        conn.execute(sa.update(resource).where(resource.c.name == "changed").values(action="UPDATE"))
        [like] = conn.execute(sa.select(event).where(event.c.resource_name == "signalled")).mappings()
        for name, action in (("signalled", "SIGNAL"), ("replacement", "DELETE")):
            further = {"id": installation.heat.number(), "uuid": str(uuid.uuid4()), "resource_action": action}
            conn.execute(sa.insert(event), [{**like, **further, "resource_name": name}])
    started = installation.database.clock()
    installation.run()
    query = events.EventQuery(StackId(stack_id))
    listed = [event for event, _ in installation.database.read(lambda conn: events.list_events(conn, query))]
    own = [event for event in listed if event.reason == "imported from Heat in this state"]
    assert own == listed[-len(own) :]
    assert [(event.resource_name, event.action, event.status, event.physical_id) for event in own] == [
        ("deleted", "CREATE", "COMPLETE", "stack-deleted"),
        ("changed", "UPDATE", "COMPLETE", "stack-changed"),
    ]
    assert {event.resource_type for event in own} == {"OS::Heat::Value"}
    assert all(event.at >= started for event in own)


def test_deleted_stacks_are_moved_only_if_requested(installation: Installation) -> None:
    deleted = {"action": "DELETE", "deleted_at": CREATED + 9}
    stack_id = installation.heat.stack("gone", template({"v": VALUE}), **deleted)
    assert installation.run().stacks == []
    assert only(installation.run(selection=Selection(with_deleted=True))).disposition == Disposition.MOVED
    stack = installation.stack(stack_id)
    assert (stack.live_name, stack.deleted_at) == (None, CREATED + 9)


def test_a_selection_names_projects_and_stacks(installation: Installation) -> None:
    for name, project in (("a", "one"), ("b", "one"), ("c", "two")):
        installation.heat.stack(name, template({"v": VALUE}), [value_row()], tenant=project)
    chosen = installation.run(dry_run=True, selection=Selection(projects=["one"]))
    assert sorted(entry.name for entry in chosen.stacks) == ["a", "b"]
    chosen = installation.run(dry_run=True, selection=Selection(projects=["one"], stacks=["b"]))
    assert [entry.name for entry in chosen.stacks] == ["b"]


def test_a_selection_of_what_does_not_exist_is_refused(installation: Installation) -> None:
    installation.heat.stack("a", template({"v": VALUE}), [value_row()], tenant="one")
    for selection in (Selection(["typo"]), Selection(["one"], ["b"]), Selection(["one"], ["two/a"])):
        with pytest.raises(WrongSelection, match="there is no"):
            installation.run(selection=selection)
    assert installation.run(dry_run=True, selection=Selection(["one"], ["one/a"])).counts() == {"moves": 1}


def test_a_claim_locks_what_was_moved_and_nothing_else(installation: Installation) -> None:
    stack_id = installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    installation.heat.stack("own", template({"x": {"type": "Acme::Own::Type"}}), [HeatRow("x", "1")])
    installation.run(claims=True)
    with installation.heat.engine.connect() as conn:
        locks = conn.execute(sa.select(heat_tables.stack_lock.c.stack_id, heat_tables.stack_lock.c.engine_id))
        assert list(locks) == [(stack_id, CLAIMED_BY)]


def test_a_claim_hides_a_tree_from_heat_and_its_release_shows_it_again(installation: Installation) -> None:
    root_id, child_id = _nested(installation)
    gone_id = installation.heat.stack("gone", template({}), owner_id=root_id, deleted_at=CREATED + 1)

    def hidden() -> set[str]:
        with installation.heat.engine.connect() as conn:
            s = heat_tables.stack.c
            return set(conn.execute(sa.select(s.id).where(s.deleted_at.is_not(None))).scalars())

    installation.run(claims=True)
    assert hidden() == {root_id, child_id, gone_id}
    assert manage(installation, "--database", installation.heat_url, "--release").returncode == 0
    assert hidden() == {gone_id}


def manage(installation: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run([BIN / "stoker-manage", "--config-file", installation.config, "import-heat", *arguments])


def test_the_command_reports_what_stays_and_shows_no_secret(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    row = HeatRow("r", "stack-r", {"length": 8}, data={"value": "hush-hush"}, secret=["value"])
    installation.heat.stack("random", template({"r": {"type": "OS::Heat::RandomString"}}), [row])
    installation.heat.stack("own", template({"x": {"type": "Acme::Own::Type"}}), [HeatRow("x", "1")])
    heat_conf = tmp_path / "heat.conf"
    heat_conf.write_text(f"[DEFAULT]\nauth_encryption_key = {KEY}\n")
    arguments = ["--database", installation.heat_url, "--encryption-key-file", str(heat_conf)]
    done = manage(installation, *arguments, "--dry-run", "--report", "json", "--verify")
    assert done.returncode == 2, done
    report = json.loads(done.stdout)
    assert report["counts"] == {"moves": 1, "stays": 1}
    ends = {entry["name"]: entry["disposition"] for entry in report["stacks"]}
    assert ends == {"random": "moves", "own": "stays"}
    assert "hush-hush" not in done.stdout + done.stderr
    assert manage(installation, *arguments, "--stack", "random").returncode == 0


def test_the_command_refuses_a_wrong_key_before_any_stack(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    row = HeatRow("r", "stack-r", {"length": 8}, data={"value": "x"}, secret=["value"])
    installation.heat.stack("random", template({"r": {"type": "OS::Heat::RandomString"}}), [row])
    installation.heat.stack("plain", template({"v": VALUE}), [value_row()])
    key_file = tmp_path / "key"
    key_file.write_text("another key of thirty-two chars.")
    arguments = ["--database", installation.heat_url, "--encryption-key-file", str(key_file)]
    for more in ([], ["--dry-run"]):
        done = manage(installation, *arguments, *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert "give Heat's auth_encryption_key" in done.stderr
    assert installation.run(dry_run=True).counts() == {"moves": 2}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///{directory}/other.sqlite", "it is not a database of Heat"),
        ("nothing://", "nothing"),
        # The drivers of Heat's configuration are not installed: the database is asked by Stoker's own.
        ("postgresql+psycopg2://heat@127.0.0.1:1/heat", "port 1 failed"),
        ("mysql+mysqldb://heat@127.0.0.1:1/heat", "Can't connect to MySQL server"),
        ("@{directory}/missing", "No such file"),
    ],
)
def test_a_database_that_is_none_of_heats_is_refused(
    installation: Installation, tmp_path: pathlib.Path, url: str, words: str
) -> None:
    done = manage(installation, "--database", url.format(directory=tmp_path))
    assert done.returncode == 1
    assert words in done.stderr


def test_snapshots_of_releases_before_2026_1_are_read(installation: Installation) -> None:
    document = {"template": template({"v": VALUE}), "resources": {"v": {"resource_data": {}}}}
    stack_id = installation.heat.stack("old", document["template"], [value_row()])
    snapshot = {"id": str(uuid.uuid4()), "stack_id": stack_id, "status": "COMPLETE", "data": document}
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.insert(heat_tables.snapshot), [snapshot])
        conn.execute(sa.text("ALTER TABLE snapshot DROP COLUMN action"))
        conn.execute(sa.text("DROP TABLE resource_snapshot"))
    assert only(installation.run()).disposition == Disposition.MOVED
    [moved] = installation.database.read(lambda conn: snapshots.of_stack(conn, StackId(stack_id)))
    assert (moved.id, moved.action, moved.status) == (snapshot["id"], "CREATE", "COMPLETE")


@pytest.mark.parametrize(
    "columns",
    [
        {"properties_data": {"salt": "s1"}},
        {"properties_data": {"salt": list(encrypted('"s1"'))}, "properties_data_encrypted": True},
    ],
)
def test_properties_that_old_releases_have_stored_with_the_resource_are_read(
    installation: Installation, columns: Json
) -> None:
    resource = {"type": "OS::Heat::RandomString", "properties": {"salt": "s2"}}
    installation.heat.stack("old", template({"r": resource}), [HeatRow("r", "stack-r", columns=columns)])
    assert only(installation.run()).differences == ["old: resource r would be replaced: salt would change"]


def test_a_database_without_a_column_of_all_releases_is_refused(installation: Installation) -> None:
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.text("ALTER TABLE snapshot DROP COLUMN status"))
    with pytest.raises(UnfitDatabase, match="its table snapshot has no column status"):
        installation.run()


def test_software_configs_and_deployments_keep_their_ids(installation: Installation) -> None:
    config_id = str(uuid.uuid4())
    deployment_id = str(uuid.uuid4())
    derived_id = str(uuid.uuid4())
    resources_of = {
        "c": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo"}},
        "d": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "c"},
                "server": "server-1",
                "signal_transport": "NO_SIGNAL",
            },
        },
    }
    body = {"config": "echo", "inputs": [], "outputs": [], "options": {}}
    with installation.heat.engine.begin() as conn:
        for key in (config_id, derived_id):
            row = {"id": key, "name": "n", "group": "script", "config": body, "tenant": "project"}
            conn.execute(sa.insert(heat_tables.software_config), [{**row, "created_at": CREATED}])
        deployment = {
            "id": deployment_id,
            "config_id": derived_id,
            "server_id": "server-1",
            "tenant": "project",
        }
        deployment |= {"action": "CREATE", "status": "COMPLETE", "output_values": {"y": "1"}}
        conn.execute(sa.insert(heat_tables.software_deployment), [{**deployment, "created_at": CREATED}])
    properties = {"config": config_id, "server": "server-1", "signal_transport": "NO_SIGNAL"}
    rows = [HeatRow("c", config_id, {"config": "echo"}), HeatRow("d", deployment_id, properties)]
    outputs = {"y": {"value": {"get_attr": ["d", "y"]}}}
    stack_id = installation.heat.stack("soft", template(resources_of, outputs=outputs), rows)
    assert only(installation.run()).differences == []
    row = installation.rows(stack_id)["d"]
    assert (row.physical_id, (row.attributes or {})["y"]) == (deployment_id, "1")
    text = installation.text()
    assert all(key in text for key in (config_id, deployment_id, derived_id))


def test_configs_and_deployments_that_users_have_made_are_moved_with_their_projects(
    installation: Installation,
) -> None:
    with installation.heat.engine.begin() as conn:
        for project in ("one", "two"):
            config = {"id": f"config-{project}", "name": "n", "group": "script", "tenant": project}
            body = {"config": "a-secret-script", "inputs": []}
            conn.execute(
                sa.insert(heat_tables.software_config), [{**config, "config": body, "created_at": CREATED}]
            )
            deployment = {"id": f"deployment-{project}", "config_id": f"config-{project}", "tenant": project}
            deployment |= {"server_id": "server", "action": "CREATE", "status": "COMPLETE"}
            conn.execute(sa.insert(heat_tables.software_deployment), [{**deployment, "created_at": CREATED}])
    for dry_run in (True, False):
        report = installation.run(dry_run=dry_run, selection=Selection(projects=["one"]))
        assert (report.configs, report.deployments) == (1, 1)
    text = installation.text()
    assert "deployment-one" in text
    assert "deployment-two" not in text
    assert "a-secret-script" not in text
    assert installation.run().configs == 1


def test_keys_and_accounts_of_guests_stay_and_their_secrets_are_sealed(installation: Installation) -> None:
    policy = {"type": "OS::Heat::ScalingPolicy", "properties": {"adjustment_type": "change_in_capacity"}}
    policy["properties"] |= {"auto_scaling_group_id": "g", "scaling_adjustment": 1}
    data = {"access_key": "key-of-alice", "secret_key": "hush-hush-hush", "user_id": "user-of-alice"}
    row = HeatRow("p", "stack-p", policy["properties"], data=data, secret=["access_key", "secret_key"])
    outputs = {"url": {"value": {"get_attr": ["p", "alarm_url"]}}}
    stack_id = installation.heat.stack("scaled", template({"p": policy}, outputs=outputs), [row])
    assert only(installation.run()).differences == []
    place = (stack_id, installation.rows(stack_id)["p"].id)
    for key, has_secret in (("key-of-alice", True), ("user-of-alice", False)):
        [stored] = installation.database.read(lambda conn, key=key: imported_keys.find(conn, key))  # type: ignore[misc]
        assert (stored.stack_id, stored.resource_id) == place
        assert (stored.secret is not None) == has_secret
    assert "hush-hush-hush" not in installation.text()

    def purge(conn: sa.Connection) -> None:
        stack = stacks.get(conn, StackId(stack_id))
        stacks.purge(conn, [stack.id])
        usage.recount(conn, stack.project_id)  # The stack was not deleted before, as a purged one always is.

    installation.database.write(purge)
    assert installation.database.read(lambda conn: imported_keys.find(conn, "key-of-alice")) == []


def test_workflows_keep_their_signed_address_and_their_executions(installation: Installation) -> None:
    properties = {"type": "direct", "tasks": [{"name": "rest", "action": "std.noop"}]}
    workflow = {"type": "OS::Mistral::Workflow", "properties": properties}
    url = "http://heat.test/v1/signal/signed"
    data = {"ec2_signed_url": url, "executions": "e2,e1"}
    actions = {"actions": {"DELETE": {"workflow": "w"}}}
    external = {"type": "OS::Mistral::ExternalResource", "properties": actions}
    rows = [
        HeatRow("w", "flow", properties, data=data),
        HeatRow("x", "thing", actions, data={"outputs": json.dumps({"size": 2})}),
    ]
    stack_id = installation.heat.stack("flows", template({"w": workflow, "x": external}), rows)
    assert only(installation.run()).differences == []
    imported = installation.rows(stack_id)
    assert url not in installation.text()
    assert (imported["w"].physical_id, imported["x"].physical_id) == ("flow", "thing")
    assert imported["x"].data == {"imported": True, "outputs": {"size": 2}}
    assert (imported["x"].attributes or {})["output"] == {"size": 2}
    assert "alarm_url" in (imported["w"].attributes or {})


def test_a_launch_configuration_has_the_name_that_heat_shows(installation: Installation) -> None:
    launch = {"Type": "AWS::AutoScaling::LaunchConfiguration"}
    launch["Properties"] = {"ImageId": "cirros", "InstanceType": "m1.tiny"}
    document = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"L": launch}}
    key = "6fb4c1a2-8f3e-4d57-a1b2-c3d4e5f60718"
    row = HeatRow("L", None, launch["Properties"], columns={"uuid": key})
    stack_id = installation.heat.stack("launch", document, [row])
    assert only(installation.run()).differences == []
    stored = installation.rows(stack_id)["L"]
    # 60 bits of the UUID: 0xd578f3e6fb4c1a2, five for each character.
    assert stored.physical_id == "launch-L-2v4phzx3jqnc"
    assert "launch" in (stored.data or {})


def test_a_route_table_association_has_the_id_by_which_it_is_removed(installation: Installation) -> None:
    properties = {"RouteTableId": "router", "SubnetId": "subnet"}
    association = {"type": "AWS::EC2::SubnetRouteTableAssociation", "properties": properties}
    stack_id = installation.heat.stack("vpc", template({"a": association}), [HeatRow("a", None, properties)])
    assert only(installation.run()).disposition == Disposition.MOVED
    assert installation.rows(stack_id)["a"].physical_id == "router:subnet_id=subnet"


def test_what_exists_without_an_id_has_no_key_that_a_deletion_would_search(
    installation: Installation,
) -> None:
    stack_id = installation.heat.stack(
        "roles",
        template({"v": VALUE, "w": VALUE}),
        [HeatRow("v", None, {"value": "v"}), value_row("w")],
    )
    installation.run()
    rows = installation.rows(stack_id)
    assert rows["v"].key is None
    assert rows["w"].key


def test_access_keys_and_messages_have_the_values_that_heat_has_made(installation: Installation) -> None:
    config_id = str(uuid.uuid4())
    with installation.heat.engine.begin() as conn:
        row = {"id": config_id, "name": "n", "group": "Heat::Ungrouped", "tenant": "project"}
        body = {"config": "the whole message", "inputs": []}
        conn.execute(sa.insert(heat_tables.software_config), [{**row, "config": body, "created_at": CREATED}])
    parts = {
        "U": {"type": "AWS::IAM::User"},
        "M": {"type": "OS::Heat::MultipartMime", "properties": {"parts": []}},
    }
    parts["K"] = {"type": "AWS::IAM::AccessKey", "properties": {"UserName": {"get_resource": "U"}}}
    outputs = {
        "s": {"value": {"get_attr": ["K", "SecretAccessKey"]}},
        "m": {"value": {"get_attr": ["M", "config"]}},
    }
    rows = [
        HeatRow("U", "user-id", {}),
        HeatRow("M", config_id, {"parts": []}),
        HeatRow(
            "K",
            "access-key",
            {"UserName": "plain-U-1"},
            data={"secret_key": "hush-hush"},
            secret=["secret_key"],
        ),
    ]
    stack_id = installation.heat.stack("plain", template(parts, outputs=outputs), rows)
    assert only(installation.run()).differences == []
    stored = installation.rows(stack_id)
    assert (stored["M"].attributes or {})["config"] == "the whole message"
    assert stored["K"].properties == {"UserName": "user-id"}
    assert "hush-hush" not in installation.text()
    [key] = installation.database.read(lambda conn: imported_keys.find(conn, "access-key"))
    assert key.resource_id == stored["K"].id


def test_the_address_to_which_clients_of_a_swift_handle_write_stays_its_reference(
    installation: Installation,
) -> None:
    address = "http://swift.example/v1/AUTH_p/s/h?temp_url_sig=hush-hush"
    stack_id = installation.heat.stack(
        "swift",
        template({"h": {"type": "OS::Heat::SwiftSignalHandle"}}),
        [HeatRow("h", "swift-h-1", {}, data={"endpoint": address}, secret=["endpoint"])],
    )
    assert only(installation.run()).differences == []
    unseal = make_sealer(installation.conf).of_stack("project", stack_id).open
    assert in_clear(installation.rows(stack_id)["h"].reference_id, unseal) == address
    assert "hush-hush" not in installation.text()


def properties_of_event(installation: Installation, stack_id: str) -> Json:
    """The properties of a stack's only event, as a user reads them."""

    def read(conn: sa.Connection) -> Json:
        [(listed, _)] = events.list_events(conn, events.EventQuery(StackId(stack_id)))
        return events.get(conn, listed.uuid).properties

    return installation.database.read(read)


def test_events_keep_the_properties_that_their_resources_had(installation: Installation) -> None:
    stack_id = installation.heat.stack("plain", template({"v": VALUE}), [value_row(value="before")])
    installation.run()
    assert properties_of_event(installation, stack_id) == {"value": "before"}


def test_an_event_shows_no_property_that_is_a_secret_or_may_have_been_one(installation: Installation) -> None:
    hidden = {"p": {"type": "string", "hidden": True}}
    value = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}, "type": "string"}}
    store = installation.heat
    stack_id = store.stack(
        "hidden",
        template({"v": value}, parameters=hidden),
        environment={"parameters": {"p": encrypted("new-secret")}, "encrypted_param_names": ["p"]},
    )
    t = heat_tables.stack.c
    with store.engine.connect() as conn:
        template_id = conn.execute(sa.select(t.raw_template_id).where(t.id == stack_id)).scalar_one()
    row = HeatRow("v", "stack-v", {"value": "new-secret", "type": "string"})
    store.resource(stack_id, row, template_id)
    earlier = {"value": "old-secret", "type": "string", "gone": "secret-as-well"}
    with store.engine.begin() as conn:
        data = {"id": store.number(), "data": earlier, "encrypted": False}
        conn.execute(sa.insert(heat_tables.resource_properties_data), [data])
        conn.execute(sa.update(heat_tables.event).values(rsrc_prop_data_id=data["id"]))
    installation.run()
    shown = properties_of_event(installation, stack_id)
    assert shown == {"value": "******", "type": "string", "gone": "******"}
    assert "secret" not in installation.text().replace("the secret", "")


def test_a_handle_and_its_condition_keep_the_reference_that_heat_has(installation: Installation) -> None:
    condition = {"handle": {"get_resource": "h"}, "timeout": 60}
    stack_id = installation.heat.stack(
        "wait",
        template(
            {
                "h": {"type": "OS::Heat::WaitConditionHandle"},
                "w": {"type": "OS::Heat::WaitCondition", "properties": condition},
            }
        ),
        [
            HeatRow(
                "h",
                "user-of-h",
                {"signal_transport": "TOKEN_SIGNAL"},
                data={"token": "t", "endpoint": "http://heat/h/signal", "user_id": "user-of-h"},
                columns={"metadata": {"a": {"status": "SUCCESS", "reason": "r", "data": "d"}}},
            ),
            HeatRow("w", "wait-w-1", {"handle": "user-of-h", "timeout": 60}),
        ],
    )
    assert only(installation.run()).differences == []
    rows = installation.rows(stack_id)
    assert rows["h"].reference_id == "user-of-h"
    assert rows["w"].properties == {"handle": "user-of-h", "timeout": 60}
    assert (rows["w"].data or {})["signals"] == '{"a": "d"}'


@pytest.mark.parametrize("source", ["parameter", "attribute"])
def test_properties_that_a_function_makes_of_a_secret_are_sealed(
    installation: Installation, source: str
) -> None:
    value = {"value": "hush-hush"}
    of_source = {"parameter": {"get_param": "p"}, "attribute": {"get_attr": ["m", "value"]}}[source]
    first = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}, "type": "json"}}
    stack_id = installation.heat.stack(
        "whole",
        template(
            {"m": first, "v": {"type": "OS::Heat::Value", "properties": of_source}},
            parameters={"p": {"type": "json", "hidden": True}},
        ),
        [
            HeatRow("m", "whole-m", {"value": value, "type": "json"}, attributes={"value": value}),
            HeatRow("v", "whole-v", value),
        ],
        environment={"parameters": {"p": encrypted(json.dumps(value))}, "encrypted_param_names": ["p"]},
    )
    assert only(installation.run()).differences == []
    unseal = make_sealer(installation.conf).of_stack("project", stack_id).open
    assert in_clear(installation.rows(stack_id)["v"].properties, unseal) == value
    assert "hush-hush" not in installation.text()


def test_a_nested_stack_whose_template_is_made_of_a_secret_stays(installation: Installation) -> None:
    address = {"TemplateURL": "https://templates.example/t?signature=hush-hush"}
    first = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}, "type": "json"}}
    nested = {"type": "AWS::CloudFormation::Stack", "properties": {"get_attr": ["m", "value"]}}
    root = template({"m": first, "n": nested}, parameters={"p": {"type": "json", "hidden": True}})
    root_id = installation.heat.stack(
        "root",
        root,
        environment={"parameters": {"p": encrypted(json.dumps(address))}, "encrypted_param_names": ["p"]},
    )
    child_id = installation.heat.stack("root-n", template({}), owner_id=root_id, parent_resource_name="n")
    t = heat_tables.stack.c
    with installation.heat.engine.connect() as conn:
        template_id = conn.execute(sa.select(t.raw_template_id).where(t.id == root_id)).scalar_one()
    value = HeatRow("m", "root-m", {"value": address, "type": "json"}, attributes={"value": address})
    for row in (value, HeatRow("n", child_id, address)):
        installation.heat.resource(root_id, row, template_id)
    entry = only(installation.run())
    assert entry.disposition == Disposition.STAYS
    assert [reason.partition(": ")[2].partition(" value")[0] for reason in entry.reasons] == [
        "the template must not contain the"
    ]
