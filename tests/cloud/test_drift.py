"""Drift on a real cloud: somebody changes things by hand; it is seen, shown, and healed."""

import os
import pathlib
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.site import IMAGE
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on

Json = typing.Any
OPTIONS = "\n[drift]\nenabled = true\ninterval = 60\n"
NET = {"get_resource": "net"}
TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "net": {"type": "OS::Neutron::Net", "properties": {"name": "blue"}},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": NET, "cidr": "10.9.0.0/24", "dns_nameservers": ["192.0.2.1"]},
        },
        "group": {
            "type": "OS::Neutron::SecurityGroup",
            "properties": {"rules": [{"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}]},
        },
        "port": {
            "type": "OS::Neutron::Port",
            "depends_on": "subnet",
            "properties": {"network": NET, "security_groups": [{"get_resource": "group"}]},
        },
        "router": {"type": "OS::Neutron::Router", "properties": {"admin_state_up": True}},
        "volume": {
            "type": "OS::Cinder::Volume",
            "properties": {"size": 1, "name": "data", "metadata": {"a": "b"}},
        },
        "server": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": IMAGE,
                "flavor": "m1.tiny",
                "metadata": {"colour": "blue"},
                "networks": [{"port": {"get_resource": "port"}}],
            },
        },
    },
}


@pytest.fixture
def observed(cloud: Cloud, project: Project, tmp_path: pathlib.Path) -> Iterator[Stacks]:
    """The stacks of the project at a Stoker that observes drift."""
    with stoker_on(cloud, tmp_path, OPTIONS) as service:
        stacks = Stacks(service, project)
        yield stacks
        stacks.clean()


def command(stacks: Stacks, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the client with the token of the project's user."""
    endpoint = f"{stacks.service.url}/v1/{stacks.project.id}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OS_")},
        "OS_AUTH_TYPE": "admin_token",
        "OS_ENDPOINT": endpoint,
        "OS_TOKEN": stacks.project.token,
    }
    client = pathlib.Path(sys.executable).parent / "openstack"
    line = [str(client), "stack", "drift", *arguments]
    return subprocess.run(line, env=environment, text=True, capture_output=True, check=False)


def test_what_is_changed_by_hand_is_seen_and_healed(observed: Stacks, project: Project) -> None:
    stack = observed.create("shop", TEMPLATE)

    def drift() -> Json:
        return observed.call("GET", f"{stack.path}/drift").body["drift"]

    observed.wait_for(lambda: drift()["drift_status"] != "NOT_CHECKED", lambda: str(drift()))
    assert (drift()["drift_status"], drift()["resources"]) == ("IN_SYNC", []), drift()
    server = stack.physical_id("server")
    project.connection.compute.update_server(server, name="www")
    project.connection.compute.delete_server_metadata(server, ["colour"])
    project.connection.delete_router(stack.physical_id("router"))
    observed.wait_for(lambda: drift()["drift_status"] == "DRIFTED", lambda: str(drift()))
    seen = {one["resource_name"]: one for one in drift()["resources"]}
    assert {name: one["difference"] for name, one in seen.items()} == {"router": "GONE", "server": "CHANGED"}
    [metadata] = seen["server"]["properties"]
    assert metadata == {"name": "metadata", "template": {"colour": "blue"}, "cloud": {}}
    [listed] = observed.call("GET", "/stacks").body["stacks"]
    assert (listed["drift_status"], listed["drifted_resources"]) == ("DRIFTED", 2)
    events = observed.call("GET", f"{stack.path}/events").body["events"]
    recorded = [one["resource_name"] for one in events if one["resource_status"] == "DRIFT_DETECTED"]
    assert sorted(recorded) == ["router", "server"]
    outcome = command(observed, "shop")
    assert (outcome.returncode, "router (OS::Neutron::Router" in outcome.stdout) == (2, True), outcome

    heal = {"heal": True, "allow_replace": True}
    settings = {"resource_registry": {"resources": {"*": {"stoker": {"drift": heal}}}}}
    stack.update(TEMPLATE, environment=settings)
    observed.wait_for(lambda: bool(drift()["healing_time"]), lambda: str(drift()))
    observed.wait_for(lambda: drift()["drift_status"] == "IN_SYNC", lambda: str(drift()))
    assert project.connection.compute.get_server(server).metadata == {"colour": "blue"}
    assert project.connection.network.find_router(stack.physical_id("router")) is not None
    assert command(observed, "shop").returncode == 0
