"""A row of a resource in Heat, in which users can write any id, gives nothing of other projects away."""

import pathlib
import typing
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness.heat_database import CREATED, HeatRow
from harness.heat_installation import VALUE, Installation, installed, only, template, value_row
from stoker.db import imported_keys
from stoker.db.schema import tables
from stoker.features.moves.heat import tables as heat_tables
from stoker.features.moves.heat.report import Disposition
from stoker.features.moves.heat.selection import Selection

Json = typing.Any
SCRIPT = "the-script-of-the-victim"
OUTPUT = "the-output-of-the-victim"


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def stored_config(installation: Installation, project: str, config: str = SCRIPT) -> str:
    """Store a config of a project in Heat; its id."""
    config_id = str(uuid.uuid4())
    row = {"id": config_id, "name": "n", "group": "script", "tenant": project, "created_at": CREATED}
    with installation.heat.engine.begin() as conn:
        body = {"config": config, "inputs": [], "outputs": [], "options": {}}
        conn.execute(sa.insert(heat_tables.software_config), [{**row, "config": body}])
    return config_id


def stored_deployment(installation: Installation, project: str, config_id: str) -> str:
    """Store a deployment of a project in Heat; its id."""
    deployment_id = str(uuid.uuid4())
    row = {"id": deployment_id, "config_id": config_id, "server_id": "server", "tenant": project}
    row |= {"action": "CREATE", "status": "COMPLETE", "output_values": {"y": OUTPUT}}
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.insert(heat_tables.software_deployment), [{**row, "created_at": CREATED}])
    return deployment_id


def software_stack(installation: Installation, project: str, ids: tuple[str, str], **entry: Json) -> str:
    """Store a stack that has a config, a message and a deployment with these ids; its id."""
    config_id, deployment_id = ids
    deployment = {"config": config_id, "server": "server", "signal_transport": "NO_SIGNAL"}
    resources = {
        "c": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo"}, **entry},
        "m": {"type": "OS::Heat::MultipartMime", "properties": {"parts": []}, **entry},
        "d": {"type": "OS::Heat::SoftwareDeployment", "properties": deployment, **entry},
    }
    outputs = {
        "c": {"value": {"get_attr": ["c", "config"]}},
        "m": {"value": {"get_attr": ["m", "config"]}},
        "y": {"value": {"get_attr": ["d", "y"]}},
    }
    rows = [
        HeatRow("c", config_id, {"config": "echo"}),
        HeatRow("m", config_id, {"parts": []}),
        HeatRow("d", deployment_id, deployment),
    ]
    if project == "victim":
        del resources["m"], outputs["m"], rows[1]
    return installation.heat.stack(project, template(resources, outputs=outputs), rows, tenant=project)


def owners(installation: Installation) -> set[tuple[str, str | None]]:
    """The projects and stacks of all configs and deployments of Stoker's."""
    queries = [
        sa.select(t.c.project_id, t.c.stack_id) for t in (tables.software_config, tables.software_deployment)
    ]
    read = installation.database.read
    return {
        tuple(row) for query in queries for row in read(lambda conn, query=query: list(conn.execute(query)))
    }  # type: ignore[misc]


@pytest.mark.parametrize("order", [("attacker", "victim"), ("victim", "attacker")])
def test_configs_and_deployments_of_another_project_are_nobodys(
    installation: Installation, order: tuple[str, ...]
) -> None:
    config_id = stored_config(installation, "victim")
    deployment_id = stored_deployment(installation, "victim", stored_config(installation, "victim"))
    ids = (config_id, deployment_id)
    stacks = {"victim": software_stack(installation, "victim", ids)}
    stacks["attacker"] = software_stack(installation, "attacker", ids)
    notes = {}
    for name in order:
        report = installation.run(selection=Selection(projects=[name]))
        notes[name] = only(report).notes
    assert owners(installation) == {("victim", stacks["victim"])}
    rows = installation.rows(stacks["attacker"])
    assert OUTPUT not in str(rows)
    assert SCRIPT not in str(rows)
    assert [row.physical_id for row in rows.values()] == [None, None, None]
    assert sorted(note.partition(":")[0] for note in notes["attacker"]) == ["c", "d", "m"]
    assert notes["victim"] == []
    assert (installation.rows(stacks["victim"])["d"].attributes or {})["y"] == OUTPUT


def test_the_id_of_a_thing_of_another_kind_names_nothing(installation: Installation) -> None:
    config_id = stored_config(installation, "attacker")
    deployment_id = stored_deployment(installation, "attacker", config_id)
    stack_id = software_stack(installation, "attacker", (deployment_id, config_id))
    assert len(only(installation.run()).notes) == 3
    assert [row.physical_id for row in installation.rows(stack_id).values()] == [None, None, None]


def test_two_resources_of_a_project_cannot_have_one_config(installation: Installation) -> None:
    config_id = stored_config(installation, "project")
    resource = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo"}}
    row = HeatRow("c", config_id, {"config": "echo"})
    first, second = sorted(
        installation.heat.stack(name, template({"c": resource}), [row]) for name in ("one", "two")
    )
    installation.run()
    assert owners(installation) == {("project", first)}
    assert installation.rows(second)["c"].physical_id is None


def test_a_deployment_of_another_projects_config_is_not_moved(installation: Installation) -> None:
    stored_deployment(installation, "attacker", stored_config(installation, "victim"))
    report = installation.run()
    assert (report.configs, report.deployments) == (1, 0)


def test_a_stack_that_names_a_config_by_external_id_stays(installation: Installation) -> None:
    ids = (stored_config(installation, "victim"), "deployment")
    software_stack(installation, "attacker", ids, external_id=ids[0])
    entry = only(installation.run())
    assert entry.disposition == Disposition.STAYS
    assert "cannot be named by external_id" in entry.reasons[0]


def test_a_stack_that_stayed_takes_over_its_configs_when_it_is_moved(installation: Installation) -> None:
    config_id = stored_config(installation, "project")
    deployment_id = stored_deployment(installation, "project", stored_config(installation, "project"))
    stack_id = software_stack(installation, "project", (config_id, deployment_id))
    with installation.heat.engine.begin() as conn:
        s = heat_tables.stack
        conn.execute(sa.update(s).values(status="IN_PROGRESS"))
    assert only(installation.run()).disposition == Disposition.STAYS
    assert owners(installation) == {("project", None)}
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.update(s).values(status="COMPLETE"))
    assert only(installation.run()).disposition == Disposition.MOVED
    assert owners(installation) == {("project", stack_id)}


def test_a_hidden_value_in_a_config_is_masked_for_users_and_messages_of_it_are_sealed(
    installation: Installation,
) -> None:
    secret = "the-secret-of-alice"
    config_id, message_id = (stored_config(installation, "project", secret) for _ in range(2))
    resources = {
        "c": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": {"get_param": "p"}}},
        "m": {
            "type": "OS::Heat::MultipartMime",
            "properties": {"parts": [{"config": {"get_resource": "c"}}]},
        },
    }
    rows = [
        HeatRow("c", config_id, {"config": secret}),
        HeatRow("m", message_id, {"parts": [{"config": config_id}]}),
    ]
    parameters = {"p": {"type": "string", "hidden": True, "default": secret}}
    stack_id = installation.heat.stack("s", template(resources, parameters=parameters), rows)
    assert only(installation.run()).disposition == Disposition.MOVED
    assert secret not in str(installation.rows(stack_id))


def test_a_resource_cannot_be_a_stack_that_is_nested_in_another_one(installation: Installation) -> None:
    inner = template({"v": VALUE})
    files = {"child.yaml": str(inner).replace("'", '"')}
    root_template = template({"a": {"type": "child.yaml"}, "b": {"type": "child.yaml"}})
    root_id = installation.heat.stack("root", root_template, files=files)
    nested = {"owner_id": root_id, "parent_resource_name": "a"}
    child_id = installation.heat.stack("root-a-1", inner, [value_row()], **nested)
    s = heat_tables.stack.c
    with installation.heat.engine.connect() as conn:
        number = conn.execute(sa.select(s.raw_template_id).where(s.id == root_id)).scalar_one()
    for name in ("a", "b"):
        installation.heat.resource(root_id, HeatRow(name, child_id, {}), number)
    entry = only(installation.run())
    assert (entry.disposition, entry.stacks) == (Disposition.MOVED, 2)
    rows = installation.rows(root_id)
    assert (rows["a"].physical_id, rows["b"].physical_id) == (child_id, None)
    assert any(note.startswith("b: no stack is nested in it") for note in entry.notes)


def test_a_nested_stack_of_another_project_keeps_its_tree(installation: Installation) -> None:
    root_id = installation.heat.stack("root", template({"v": VALUE}), [value_row()])
    nested = {"owner_id": root_id, "parent_resource_name": "v", "tenant": "victim"}
    installation.heat.stack("root-v-1", template({"v": VALUE}), [value_row()], **nested)
    entry = only(installation.run())
    assert entry.disposition == Disposition.STAYS
    assert "is of another project" in entry.reasons[0]


def test_a_key_that_two_projects_have_keeps_neither_of_them_in_heat(installation: Installation) -> None:
    policy = {"type": "OS::Heat::ScalingPolicy", "properties": {"adjustment_type": "change_in_capacity"}}
    policy["properties"] |= {"auto_scaling_group_id": "g", "scaling_adjustment": 1}
    stack_ids = set()
    for project in ("attacker", "victim"):
        data = {"access_key": "key", "secret_key": f"secret-of-{project}", "user_id": "user"}
        row = HeatRow("p", f"{project}-p", policy["properties"], data=data)
        stack_ids.add(installation.heat.stack(project, template({"p": policy}), [row], tenant=project))
    assert installation.run().counts() == {"moved": 2}
    for key in ("key", "user"):
        rows = installation.database.read(lambda conn, key=key: imported_keys.find(conn, key))  # type: ignore[misc]
        assert {row.stack_id for row in rows} == stack_ids
