"""A database that was restored to an earlier moment, on a real cloud: `reconcile` lists what no row knows."""

import json
import pathlib
import shutil
import typing

from cloud.test_drift import TEMPLATE
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.programs import BIN, run

Json = typing.Any
BEFORE: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {"net": {"type": "OS::Neutron::Net"}, "volume": TEMPLATE["resources"]["volume"]},
}
DATABASE = "stoker.sqlite"


def unknown(folder: pathlib.Path, project: Project) -> dict[str, str]:
    """Types of the things that `reconcile` lists, by id."""
    files = ("--config-file", folder / "data" / "stoker.conf", "--config-file", folder / "cloud.conf")
    command = [BIN / "stoker-manage", *files, "reconcile", "--dry-run", "--project", project.id, "-f", "json"]
    done = run(command)
    assert done.returncode == 0, done
    return {row["ID"]: row["Type"] for row in json.loads(done.stdout)}


def test_what_was_made_after_the_backup_is_listed(
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
