"""An export removes from the database of Heat what Stoker has deleted, and nothing of other projects."""

import pathlib
import typing
import uuid
from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa
from harness.heat_database import CREATED, HeatRow
from harness.heat_installation import Installation, installed, only, template
from stoker.db.schema import tables
from stoker.features.moves.heat import tables as heat_tables
from stoker.features.moves.heat.report import Disposition
from stoker.features.moves.outward.software_writer import SoftwareWriter
from stoker.features.moves.outward.statements import HeatRows

Json = typing.Any


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def stored(installation: Installation, project: str) -> tuple[str, str, str]:
    """Store two configs and a deployment of a project in Heat, of the second one; their ids."""
    first, second, deployment = (str(uuid.uuid4()) for _ in range(3))
    config = {"name": "n", "group": "script", "tenant": project, "created_at": CREATED}
    row = {"id": deployment, "config_id": second, "server_id": "s", "tenant": project, "created_at": CREATED}
    with installation.heat.engine.begin() as conn:
        for key in (first, second):
            columns = {**config, "id": key, "config": {"config": "echo", "inputs": []}}
            conn.execute(sa.insert(heat_tables.software_config), [columns])
        conn.execute(sa.insert(heat_tables.software_deployment), [row])
    return first, second, deployment


def remaining(installation: Installation) -> set[str]:
    """The ids of all configs and deployments in Heat's database."""
    with installation.heat.engine.connect() as conn:
        return {
            key
            for table in (heat_tables.software_config, heat_tables.software_deployment)
            for key in conn.execute(sa.select(table.c.id)).scalars()
        }


def software_stack(
    installation: Installation,
    ids: Sequence[str],
    types: Sequence[str] = ("OS::Heat::SoftwareConfig", "OS::Heat::SoftwareDeployment"),
    **settings: Json,
) -> str:
    config_id, _, deployment_id = ids
    properties = {"config": config_id, "server": "s", "signal_transport": "NO_SIGNAL"}
    resources = {
        "c": {"type": types[0], "properties": {"config": "echo"}},
        "d": {"type": types[1], "properties": properties},
    }
    rows = [HeatRow("c", config_id, {"config": "echo"}), HeatRow("d", deployment_id, properties)]
    return installation.heat.stack("soft", template(resources), rows, **settings)


def without_resources(installation: Installation, stack_id: str) -> None:
    """Let Stoker have deleted the resources of a stack by an update, and what they were."""
    s = tables.stack
    columns = {"traversal": str(uuid.uuid4()), "updated_at": CREATED + 60, "action": "UPDATE"}

    def delete(conn: sa.Connection) -> None:
        conn.execute(sa.update(s).where(s.c.id == stack_id).values(columns))
        for table in (tables.resource, tables.software_config, tables.software_deployment):
            conn.execute(sa.delete(table).where(table.c.stack_id == stack_id))

    installation.change(delete)


def test_configs_and_deployments_of_deleted_resources_are_removed(installation: Installation) -> None:
    stack_id = software_stack(installation, stored(installation, "project"))
    others = stored(installation, "project")
    installation.run()
    without_resources(installation, stack_id)
    assert only(installation.export()).disposition == Disposition.MOVED
    assert remaining(installation) == set(others)


def test_configs_and_deployments_of_a_deleted_stack_are_removed(installation: Installation) -> None:
    stack_id = software_stack(installation, stored(installation, "project"))
    installation.run()
    without_resources(installation, stack_id)
    s = tables.stack
    columns = {"action": "DELETE", "deleted_at": CREATED + 90}
    installation.change(lambda conn: conn.execute(sa.update(s).values(columns)))
    assert only(installation.export()).disposition == Disposition.MOVED
    assert remaining(installation) == set()


def test_a_type_by_another_name_is_known_by_the_environment(installation: Installation) -> None:
    registered = {"My::Config": "OS::Heat::SoftwareConfig", "My::Deployment": "OS::Heat::SoftwareDeployment"}
    ids = stored(installation, "project")
    types = list(registered)
    stack_id = software_stack(installation, ids, types, environment={"resource_registry": registered})
    installation.run()
    without_resources(installation, stack_id)
    installation.export()
    assert remaining(installation) == set()


def test_things_of_another_project_stay(installation: Installation) -> None:
    victims = stored(installation, "victim")
    stack_id = software_stack(installation, victims)
    installation.run()
    without_resources(installation, stack_id)
    installation.export()
    assert remaining(installation) == set(victims)


def test_the_writer_of_a_project_removes_nothing_of_another_one(installation: Installation) -> None:
    """Also where the caller has taken the ids for the project's."""
    victims, own = stored(installation, "victim"), stored(installation, "project")
    with installation.heat.engine.begin() as conn:
        SoftwareWriter(HeatRows(conn, CREATED), "project").remove({*victims, *own})
    assert remaining(installation) == set(victims)


@pytest.mark.parametrize("types", [("OS::Heat::TestResource", "OS::Heat::TestResource")])
def test_things_of_another_type_stay(installation: Installation, types: Sequence[str]) -> None:
    ids = stored(installation, "project")
    stack_id = software_stack(installation, ids, types)
    installation.run()
    without_resources(installation, stack_id)
    assert set(ids) <= remaining(installation)
    change = sa.delete(tables.software_config)
    installation.change(lambda conn: conn.execute(change))
    installation.export()
    assert set(ids) <= remaining(installation)


def test_things_that_another_resource_in_heat_has_stay(installation: Installation) -> None:
    ids = stored(installation, "project")
    stack_ids = [software_stack(installation, ids, tenant="project")]
    stack_ids.append(
        installation.heat.stack("other", template({}), [HeatRow("c", ids[0]), HeatRow("d", ids[2])])
    )
    installation.run()
    without_resources(installation, stack_ids[0])
    change = sa.delete(tables.software_config)
    installation.change(lambda conn: conn.execute(change))
    installation.export()
    assert set(ids) <= remaining(installation)


def test_a_row_of_another_project_is_not_written_over(installation: Installation) -> None:
    ids = stored(installation, "project")
    installation.run()
    with installation.heat.engine.begin() as conn:
        conn.execute(sa.update(heat_tables.software_config).values(tenant="victim", name="theirs"))
    report = installation.export()
    assert "of another project" in str(report.notes)
    with installation.heat.engine.connect() as conn:
        names = set(conn.execute(sa.select(heat_tables.software_config.c.name)).scalars())
    assert names == {"theirs"}
    assert set(ids) <= remaining(installation)
