"""Stacks of a real Heat, moved to Stoker and changed there, continue in Heat."""

import contextlib
import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping, Sequence

import pytest
import requests
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.heat.server import RealHeat
from harness.waiting import wait_for
from heat.conftest import (
    ROLES,
    Orchestration,
    evening_in,
    heat_cloud,
    imported,
    stacks_in_heat,
    writes,
)
from heat.evening import commands
from heat.stacks import CHILD, FAILED, SECRET, STACKS, VERSION
from heat.test_leave_heat import NO_ID, WITHOUT_IDS, is_launched, plain, without_added

pytestmark = [pytest.mark.full, pytest.mark.needs("guests")]

Json = typing.Any
NEW: Json = {
    "template": VERSION
    + """
parameters: {secret: {type: string, hidden: true}}
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.9.0.0/24}}
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.tiny
      networks: [{network: {get_resource: net}, subnet: {get_resource: sub}}]
  volume: {type: OS::Cinder::Volume, properties: {size: 1}}
  attached:
    type: OS::Cinder::VolumeAttachment
    properties: {volume_id: {get_resource: volume}, instance_uuid: {get_resource: server}}
  random: {type: OS::Heat::RandomString, properties: {length: 12, salt: {get_param: secret}}}
  value: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  child: {type: child.yaml, properties: {name: {get_attr: [random, value]}}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      resource_def:
        type: child.yaml
        properties: {name: {list_join: ["-", ["m%index%", {get_param: secret}]]}}
  whole: {type: OS::Heat::Value, properties: {value: [{get_resource: child}, {get_resource: group}]}}
  scaled:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      desired_capacity: 2
      resource: {type: OS::Neutron::Net, properties: {admin_state_up: false}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      adjustment_type: change_in_capacity
      auto_scaling_group_id: {get_resource: scaled}
      scaling_adjustment: 1
outputs:
  address: {value: {get_attr: [server, first_address]}}
  child: {value: {get_attr: [child, val]}}
  group: {value: {get_attr: [group, val]}}
  refs: {value: {get_attr: [scaled, refs]}}
  up: {value: {get_attr: [up, alarm_url]}}
""",
    "files": {"child.yaml": CHILD},
    "parameters": {"secret": SECRET},
}
"""The body of the creation of a stack that Stoker makes."""
DELETED = "cfn"
"""The stack that Stoker deletes."""
SCALED = "scale"
"""The stack with a group that a signal has scaled: any update in Heat brings it to the desired capacity."""
WITH_PORTS = ("iam", "launched")
"""Stacks with a server on a subnet, whose port the type has made."""
SERVERS = ("AWS::EC2::Instance", "OS::Heat::ScaledResource")
ADDRESSES = ("up",)
"""Outputs of the new stack that are addresses: Heat makes others."""


@dataclasses.dataclass(frozen=True)
class Returned:
    """The stacks that Stoker had, and Heat, which has them again.

    :ivar paths: paths of the stacks by name.
    :ivar before: views of the stacks while Stoker had them.
    :ivar written: requests of the project that changed something during the export.
    :ivar report: the report of the export.
    :ivar again: the report of another export right after it.
    """

    cloud: Cloud
    heat: Orchestration
    paths: Mapping[str, str]
    before: Mapping[str, Json]
    written: Sequence[str]
    report: Json
    again: Json

    @property
    def project(self) -> Project:
        return self.heat.project


@pytest.fixture(scope="module")
def returned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Returned]:
    """The stacks, moved to Stoker and back once for all tests."""
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(heat_cloud())
        real_heat = stack.enter_context(RealHeat(cloud))
        project = cloud.make_project(ROLES)
        heat = Orchestration(real_heat.api, project)
        folder = tmp_path_factory.mktemp("stoker")
        paths, views, _ = stacks_in_heat(heat, cloud, folder / "guest")
        real_heat.stop()
        evening = stack.enter_context(evening_in(folder, cloud, real_heat, project))
        imported(folder, real_heat.database, "--claim")
        evening.run(["systemctl start stoker-api"])
        assert evening.stoker is not None
        stoker = Orchestration(f"{evening.stoker.url}/v1", project)
        _change(stoker, paths, views)
        paths = {
            **{name: path for name, path in paths.items() if name != DELETED},
            "new": _create(stoker),
        }
        before = {name: stoker.view(path) for name, path in paths.items()}
        earlier = writes(cloud, project)
        dry_run, *freeze_and_export = commands("Back")
        assert evening.run([dry_run])["counts"] == {"moves": len(STACKS) + 1}
        export = next(line for line in freeze_and_export if line.startswith("stoker-manage"))
        place = freeze_and_export.index(export) + 1
        report = evening.run(freeze_and_export[:place])
        again = evening.run([export])
        written = writes(cloud, project)[len(earlier) :]
        evening.run(freeze_and_export[place:])
        assert evening.answers == {"heat": (200, 400)}
        yield Returned(cloud, heat, paths, before, written, report, again)


def _change(stoker: Orchestration, paths: Mapping[str, str], views: Mapping[str, Json]) -> None:
    """Update, scale, resume and delete stacks that Heat has made."""
    stoker.change("PATCH", paths["flat"], {"parameters": {"word": "changed"}})
    stoker.change("PATCH", paths["group"], {"parameters": {"count": 4}})
    stoker.change("POST", f"{paths['asleep']}/actions", {"resume": None})
    stoker.change("DELETE", paths[DELETED])
    url = requests.utils.urlparse(views["scale"]["stack"]["outputs"]["url"]["output_value"])
    address = f"{stoker.root.removesuffix('/v1')}{url.path}?{url.query}"
    assert requests.post(address, headers={"Host": url.netloc}, timeout=60).status_code == 200
    wait_for(lambda: _output(stoker.stack(paths["scale"]), "n") == 3, 120.0)
    statuses = stoker.settled([paths[name] for name in ("flat", "group", "asleep", DELETED)])
    assert set(statuses.values()) == {"UPDATE_COMPLETE", "RESUME_COMPLETE", "DELETE_COMPLETE"}, statuses


def _create(stoker: Orchestration) -> str:
    response = stoker.call("POST", "/stacks", {"stack_name": "new", "disable_rollback": True, **NEW})
    assert response.status_code == 201, response.text
    path = f"/stacks/new/{response.json()['stack']['id']}"
    assert stoker.settled([path]) == {path: "CREATE_COMPLETE"}, stoker.stack(path)
    return path


def _output(stack: Json, name: str) -> Json:
    outputs = {item["output_key"]: item for item in stack["outputs"]}
    return outputs[name].get("output_value")


def test_the_export_writes_nothing_into_the_cloud_and_moves_everything(returned: Returned) -> None:
    assert returned.written == []
    assert returned.report["counts"] == {"moved": len(STACKS) + 1}
    assert returned.again["counts"] == {"present": len(STACKS)}
    assert SECRET not in json.dumps(returned.report)
    noted = {entry["name"] for entry in returned.report["stacks"] if entry["notes"]}
    assert noted == {DELETED, "new"}


def test_stacks_live_on_in_heat_and_leave_nothing_in_the_cloud(returned: Returned) -> None:
    assert returned.heat.call("GET", f"/stacks/{DELETED}").status_code == 404
    for name in returned.paths:
        _heat_shows_a_stack_as_stoker_did(returned, name)
    _updates_without_change_change_nothing(returned)
    _deletions_leave_nothing(returned)


def _heat_shows_a_stack_as_stoker_did(returned: Returned, name: str) -> None:
    before, now = (
        # Heat shows no id of a launch configuration, and an alias for the type of its servers.
        {
            **view,
            "resources": [
                row for row in view["resources"] if name not in WITHOUT_IDS or not is_launched(row)
            ],
        }
        for view in (returned.before[name], returned.heat.view(returned.paths[name]))
    )
    new = ADDRESSES if name == "new" else ()
    visible = {key: item for key, item in plain(now["stack"]).items() if key != "outputs"}
    assert {key: plain(before["stack"])[key] for key in visible} == visible
    outputs = {key: item for key, item in plain(now["stack"]["outputs"]).items() if key not in new}
    assert {key: plain(before["stack"]["outputs"])[key] for key in outputs} == outputs
    for kind in ("resources", "events"):
        assert without_added(now[kind], now[kind]) == without_added(before[kind], now[kind])


def _updates_without_change_change_nothing(returned: Returned) -> None:
    earlier = writes(returned.cloud, returned.project)
    paths = {name: path for name, path in returned.paths.items() if name not in (*FAILED, "asleep_tree")}
    for path in paths.values():
        returned.heat.change("PATCH", path, {})
    statuses = returned.heat.settled(paths.values())
    assert set(statuses.values()) == {"UPDATE_COMPLETE"}, statuses
    assert writes(returned.cloud, returned.project) == earlier
    before = {name: _physical_ids(returned.before[name]["resources"]) for name in paths if name != SCALED}
    assert {name: _physical_ids(returned.heat.resources(paths[name])) for name in before} == before


def _physical_ids(rows: Sequence[Json]) -> list[tuple[str, str]]:
    """The ids of resources, where these have one in Heat."""
    return sorted(
        (row["resource_name"], row["physical_resource_id"])
        for row in rows
        if row["resource_type"] not in NO_ID
    )


def _deletions_leave_nothing(returned: Returned) -> None:
    _delete_servers_whose_ports_heat_deletes_first(returned)
    _delete_the_snapshots(returned)
    for path in returned.paths.values():
        returned.heat.change("DELETE", path)
    statuses = returned.heat.settled(returned.paths.values())
    assert set(statuses.values()) == {"DELETE_COMPLETE"}, statuses
    assert returned.project.leftovers() == {}


def _delete_servers_whose_ports_heat_deletes_first(returned: Returned) -> None:
    """Delete servers at Nova, for Neutron refuses to delete their ports to Heat, also where nothing moved."""
    compute = returned.project.connection.compute
    rows = [row for name in WITH_PORTS for row in returned.heat.resources(returned.paths[name])]
    servers = [row["physical_resource_id"] for row in rows if row["resource_type"] in SERVERS]
    assert len(servers) == len(WITH_PORTS)
    for server in servers:
        compute.delete_server(server)
    wait_for(lambda: {item.id for item in compute.servers()}.isdisjoint(servers), 120.0)


def _delete_the_snapshots(returned: Returned) -> None:
    """Delete each by itself: with its stack Heat deletes the snapshot's row, and not the backup or image."""
    for name in ("snap", "image"):
        _delete_the_snapshot(returned, f"{returned.paths[name]}/snapshots")


def _delete_the_snapshot(returned: Returned, path: str) -> None:
    [snapshot] = returned.heat.get(path)["snapshots"]
    returned.heat.change("DELETE", f"{path}/{snapshot['id']}")
    wait_for(lambda: returned.heat.get(path)["snapshots"] == [], 120.0)
