"""A database that was restored to an earlier moment, on a real cloud: `reconcile` finds what no row has."""

import contextlib
import json
import pathlib
import shutil
import sqlite3
import typing

from cloud.test_drift import TEMPLATE
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.programs import BIN, run
from harness.waiting import wait_for

Json = typing.Any
BEFORE: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {"net": {"type": "OS::Neutron::Net"}, "volume": TEMPLATE["resources"]["volume"]},
}
DATABASE = "stoker.sqlite"


def reconcile(folder: pathlib.Path, project: Project, *arguments: str) -> list[dict[str, str]]:
    """The rows that `reconcile` prints."""
    files = ("--config-file", folder / "data" / "stoker.conf", "--config-file", folder / "cloud.conf")
    command = [BIN / "stoker-manage", *files, "reconcile", *arguments, "--project", project.id, "-f", "json"]
    done = run(command)
    assert done.returncode == 0, done
    rows: list[dict[str, str]] = json.loads(done.stdout)
    return rows


def unknown(folder: pathlib.Path, project: Project) -> dict[str, str]:
    """Types of the things that `reconcile` lists, by id."""
    return {row["ID"]: row["Type"] for row in reconcile(folder, project, "--dry-run")}


def test_what_was_made_after_the_backup_is_listed_and_deleted(
    cloud: Cloud, project: Project, tmp_path: pathlib.Path
) -> None:
    data = tmp_path / "data"
    with stoker_on(cloud, tmp_path) as service:
        Stacks(service, project).create("before", BEFORE)
    shutil.copy(data / DATABASE, tmp_path / "backup")
    (tmp_path / "stoker.log").unlink()  # The next one is ready once it says so itself.
    with stoker_on(cloud, tmp_path) as service:
        stack = Stacks(service, project).create("after", TEMPLATE)
        types_by_id = {
            row["physical_resource_id"]: row["resource_type"] for row in stack.resources().values()
        }
        assert unknown(tmp_path, project) == {}
    for path in data.glob(f"{DATABASE}*"):
        path.unlink()
    shutil.copy(tmp_path / "backup", data / DATABASE)
    assert unknown(tmp_path, project) == types_by_id
    now = ("--delete", "--older-than", "0s")
    assert {row["Result"] for row in reconcile(tmp_path, project, *now)} == {"would be deleted"}
    for row in reconcile(tmp_path, project, *now, "--yes"):
        assert row["Result"].startswith("deleted by stack before-unknown-")
    assert {row["Result"] for row in reconcile(tmp_path, project, *now, "--yes")} <= {
        "stays: a resource has it"
    }
    (tmp_path / "stoker.log").unlink()
    with stoker_on(cloud, tmp_path) as service:
        before = Stacks(service, project)
        wait_for(lambda: unknown(tmp_path, project) == {} and not _has_keepers(data), 300)
        assert before.call("GET", "/stacks").body["stacks"][0]["stack_status"] == "CREATE_COMPLETE"


def _has_keepers(data: pathlib.Path) -> bool:
    """Return whether a stack that deletes unknown things is not done."""
    query = "SELECT count(*) FROM stack WHERE parent_id IS NOT NULL AND deleted_at IS NULL"
    with contextlib.closing(sqlite3.connect(data / DATABASE)) as db:
        return bool(db.execute(query).fetchone()[0])


def test_a_thing_returns_to_the_resource_whose_creation_has_made_it(
    cloud: Cloud, project: Project, tmp_path: pathlib.Path
) -> None:
    with stoker_on(cloud, tmp_path) as service:
        stack = Stacks(service, project).create("before", BEFORE)
        net = stack.resources()["net"]["physical_resource_id"]
    path = tmp_path / "data" / DATABASE
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE resource SET physical_id = NULL WHERE name = 'net'")
        db.commit()
    arguments = ("--adopt", "--older-than", "0s", "--yes")
    [row] = reconcile(tmp_path, project, *arguments)
    assert (row["ID"], row["Resource"], row["Result"]) == (net, "before/net", "adopted")
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT physical_id FROM resource WHERE name = 'net'").fetchone() == (net,)
