"""A preflight on a real cloud: what it finds is what fails without it, and examples raise no false alarm."""

import json
import pathlib
import typing
from collections.abc import Callable, Iterator, Mapping

import pytest
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.examples import example, names
from heatclient.common import template_utils
from keystoneauth1.session import Session
from stoker.engine.caller_services import CallerServices
from stoker.features.preflight.check import findings_of
from stoker.features.preflight.planned import parts_of_creation
from stoker.features.preflight.reader import CloudReaders
from stoker.features.preflight.services import ServiceReadings
from stoker.keystone.caller import CallerAccess
from stoker.keystone.client_options import ClientOptions
from unit.features.preflight.test_quota import REGISTRY, compiled

Json = typing.Any
MOST_REQUESTS = 12
"""Requests of one preflight to the compute, network, image and block storage services together."""
TRIES = 12
"""Times a preflight is repeated, each for five seconds at most, until no service was too slow for it."""
OFF = {"resource_registry": {"stoker": {"preflight": "off"}}}
REFUSE = {"resource_registry": {"stoker": {"preflight": "refuse"}}}


def document(**resources: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources}


def server(**properties: Json) -> Json:
    values = {"image": "cirros", "flavor": "m1.tiny", "networks": [{"allocate_network": "none"}]}
    return {"type": "OS::Nova::Server", "properties": {**values, **properties}}


def volume(**properties: Json) -> Json:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 1, **properties}}


def findings(stacks: Stacks, template: Json, **fields: Json) -> list[Json]:
    """The findings for a stack that would be created, once all services have answered."""
    body = {"stack_name": "looked-at", "template": template, **fields}
    for _ in range(TRIES):
        answer = stacks.call("POST", "/stacks/preview?check_cloud=true", body)
        assert answer.status == 200, answer
        if not any("no answer within" in finding["message"] for finding in answer.body["findings"]):
            break
    return list(answer.body["findings"])


def limit(project: Project, service: str, **limits: int) -> None:
    """Set quotas of the project."""
    setters: dict[str, Callable[..., Json]] = {
        "compute": project.admin.set_compute_quotas,
        "block-storage": project.admin.set_volume_quotas,
        "network": project.admin.set_network_quotas,
    }
    setters[service](project.id, **limits)


QUOTAS: Mapping[str, tuple[str, dict[str, int], Json]] = {
    "quota instances of compute: 1 needed, 0 left": ("compute", {"instances": 0}, document(a=server())),
    "quota gigabytes of block-storage: 3 needed, 2 left": (
        "block-storage",
        {"gigabytes": 2},
        document(a=volume(), b=volume(size=2)),
    ),
    "quota network of network: 1 needed, 0 left": (
        "network",
        {"network": 0},
        document(a={"type": "OS::Neutron::Net"}),
    ),
}
"""The service, its limits, and a template, by the finding."""


def test_a_quota_is_found_that_fails_without_it(stacks: Stacks) -> None:
    for service, limits, _ in QUOTAS.values():
        limit(stacks.project, service, **limits)
    for message, (_, _, template) in QUOTAS.items():
        [finding] = findings(stacks, template)
        assert finding["message"].startswith(message)
        assert finding["certainty"] == "certain"
        assert refused(stacks, template) == [finding["message"]]
    assert stacks.all() == []
    assert {kind for kind in stacks.project.leftovers() if "quota" not in kind} == set()


def test_a_stack_that_fits_uses_up_what_the_next_one_may_have(stacks: Stacks) -> None:
    limit(stacks.project, "block-storage", volumes=1)
    template = document(a=volume())
    assert findings(stacks, template) == []
    stacks.create("first", template, environment=REFUSE)
    [finding] = findings(stacks, template)
    assert (finding["needed"], finding["available"]) == ("1", "0")
    warned = stacks.start("second", template)
    assert "preflight: 1 finding" in warned.show()["stack_status_reason"]


def refused(stacks: Stacks, template: Json) -> list[str]:
    """The messages of the findings for which a creation is refused, once all services have answered.

    On a slow machine a service may take too long: then the stack begins, or a finding says so.
    """
    body = {"stack_name": "s", "template": template, "environment": REFUSE}
    for _ in range(TRIES):
        answer = stacks.call("POST", "/stacks", body)
        if answer.status == 201:
            stacks.clean()
        elif "no answer within" not in str(answer.body):
            break
    assert (answer.status, answer.body["error"]["type"]) == (409, "PreflightRefused"), answer
    return [str(error["message"]) for error in answer.body["error"]["errors"]]


def network_in_use(project: Project) -> None:
    """Make a network with a subnet, and a port that has an address of it; and a key pair."""
    c = project.connection
    net = c.network.create_network(name="inner")
    c.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.9.0.0/24")
    c.network.create_port(network_id=net.id, fixed_ips=[{"ip_address": "10.9.0.9"}], name="reached")
    c.compute.create_keypair(name="mine")


def network_without_security(project: Project) -> None:
    """Make a network without port security, with a port; its router leads nowhere."""
    c = project.connection
    net = c.network.create_network(name="open", is_port_security_enabled=False)
    subnet = c.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.8.0.0/24")
    c.network.create_port(network_id=net.id, name="cut-off")
    c.network.create_security_group(name="web")
    c.network.create_network(name="bare")
    router = c.network.create_router(name="blind")
    c.network.add_interface_to_router(router, subnet_id=subnet.id)


def things_that_do_not_fit(project: Project) -> None:
    """Make images, volumes, groups and limits that servers and volumes break."""
    c = project.connection
    formats = {"disk_format": "raw", "container_format": "bare"}
    c.image.create_image(name="queued", **formats)
    c.image.create_image(name="hungry", data=b"no image", min_ram=4096, **formats)
    c.image.create_image(name="wide", data=b"no image", min_disk=50, **formats)
    for _ in range(2):
        c.network.create_security_group(name="twin")
    source = c.block_storage.create_volume(name="source", size=2)
    taken = c.block_storage.create_volume(name="taken", size=1)
    for made in (source, taken):
        c.block_storage.wait_for_status(made, "available", wait=120)
    snapshot = c.block_storage.create_snapshot(name="copy", volume_id=source.id)
    image = c.image.find_image("cirros").id
    holder = c.compute.create_server(
        name="holder",
        flavor_id=c.compute.find_flavor("m1.tiny").id,
        image_id=image,
        networks="none",
        block_device_mapping_v2=[
            {"boot_index": 0, "uuid": image, "source_type": "image", "destination_type": "local"},
            {"boot_index": -1, "uuid": taken.id, "source_type": "volume", "destination_type": "volume"},
        ],
    )
    c.block_storage.wait_for_status(snapshot, "available", wait=120)
    c.compute.wait_for_server(holder, wait=120)
    limit(project, "block-storage", per_volume_gigabytes=3)
    limit(project, "compute", server_group_members=1)


def port(address: str) -> Json:
    return {
        "type": "OS::Neutron::Port",
        "properties": {"network": "inner", "fixed_ips": [{"ip_address": address}]},
    }


def disk(**properties: Json) -> Json:
    """A server with another disk."""
    return server(block_device_mapping_v2=[{"boot_index": -1, **properties}])


MISFITS: Mapping[str, tuple[Json, str, str]] = {
    "zone": (
        server(availability_zone="moon"),
        "no availability zone moon",
        "availability zone is not available",
    ),
    "outside": (port("10.9.1.9"), "is not an address of the subnets", "not a valid IP for"),
    "in-use": (port("10.9.0.9"), "10.9.0.9 is in use", "already allocated"),
    "inner": (
        {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "inner"}},
        "the network inner is not external",
        "not a valid external network",
    ),
    "gateway": (
        {"type": "OS::Neutron::Router", "properties": {"external_gateway_info": {"network": "inner"}}},
        "the network inner is not external",
        "is not an external network",
    ),
    "key": (
        {"type": "OS::Nova::KeyPair", "properties": {"name": "mine"}},
        "you have a key pair mine already",
        "another key pair has the name",
    ),
    "swap": (disk(swap_size=64), "swap_size is 64 MiB, but the flavor allows 0", "Swap drive"),
    "ephemeral": (
        disk(ephemeral_size=1),
        "ephemeral_size is 1 GiB, but the flavor allows 0",
        "Ephemeral disk",
    ),
    "metadata": (
        server(metadata={f"k{number}": "v" for number in range(129)}),
        "129 metadata items, above the limit of 128",
        "Maximum number of metadata items exceeds 128",
    ),
    "files": (
        server(personality={f"/f{number}": "x" for number in range(6)}),
        "6 files, above the limit of 5",
        "ersonality file limit exceeded",
    ),
    "file": (
        # 10,239 bytes: what the service counts is longer.
        server(personality={"/f": "x" * 10_239}),
        "13652 characters of base64 in a file, above the limit of 10240",
        "ersonality file content exceeds maximum",
    ),
    "path": (
        server(personality={f"/{'p' * 255}": "x"}),
        "256 characters in the path of a file, above the limit of 255",
        "ersonality file path exceeds maximum",
    ),
    "groups": (
        {"type": "OS::Neutron::Port", "properties": {"network": "open", "security_groups": ["default"]}},
        "security_groups need port security",
        "ort security must be enabled",
    ),
    "server-groups": (
        server(networks=[{"network": "open"}], security_groups=["web"]),
        "security_groups need port security",
        # Each host refuses it, and the service tells the user no more.
        "Exceeded maximum number of retries",
    ),
    "twin": (
        server(networks=[{"network": "inner"}], security_groups=["twin"]),
        "2 security groups have the name twin",
        "Multiple security_group matches found for name 'twin'",
    ),
    "bare": (
        server(networks=[{"network": "bare"}]),
        "the network bare has no subnet",
        "requires a subnet in order to boot instances on",
    ),
    "unreachable": (
        {
            "type": "OS::Neutron::FloatingIP",
            "properties": {"floating_network": "public", "port_id": "cut-off"},
        },
        "not reachable from the port",
        "is not reachable from subnet",
    ),
    "queued": (server(image="queued"), "the image queued is queued", "is not active"),
    "memory": (
        server(image="hungry"),
        "the image needs 4096 MiB of memory, but the flavor has",
        "memory is too small for requested image",
    ),
    "disk": (
        server(image="wide"),
        "the image wide needs a disk of 50 GiB",
        "smaller than the minimum size specified in image metadata",
    ),
    "volume": (
        volume(image="wide"),
        "the image wide needs a disk of 50 GiB, but that has 1",
        "cannot be smaller than the image minDisk size",
    ),
    "source": (
        volume(snapshot_id="copy"),
        "the volume has 1 GiB, but its source copy has 2",
        "cannot be smaller than the snapshot size",
    ),
    "large": (
        volume(size=4),
        "the volume has 4 GiB, above the limit of 3 for one volume",
        "larger than maximum allowed limit 3",
    ),
    "taken": (disk(volume_id="taken"), "the volume taken is in-use", "available"),
    "member": (
        # One after the other: the service does not see what is made at the same time.
        {**server(scheduler_hints={"group": {"get_resource": "group"}}), "depends_on": "other"},
        "the server group group would have 2 members, above the limit of 1",
        "too many servers in group",
    ),
}
"""A resource, the finding, and the service's words where nobody looks before, by the name of the stack."""
GROUPS: Mapping[str, Json] = {
    "member": {
        "group": {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["soft-anti-affinity"]}},
        "other": server(scheduler_hints={"group": {"get_resource": "group"}}),
    }
}
"""Other resources in the template of a stack, by its name."""


def test_what_does_not_fit_is_found_and_fails_without_it(stacks: Stacks) -> None:
    for make in (network_in_use, network_without_security, things_that_do_not_fit):
        make(stacks.project)
    templates = {name: document(a=item[0], **GROUPS.get(name, {})) for name, item in MISFITS.items()}
    messages = {name: refused(stacks, template) for name, template in templates.items()}
    wrong = {
        name: messages[name]
        for name, (_, message, _) in MISFITS.items()
        if len(messages[name]) != 1 or message not in messages[name][0]
    }
    assert wrong == {}
    assert stacks.all() == []
    begun = {name: stacks.start(name, template, environment=OFF) for name, template in templates.items()}
    reasons = {name: stack.wait("CREATE_FAILED")["stack_status_reason"] for name, stack in begun.items()}
    assert {name: text for name, text in reasons.items() if MISFITS[name][2] not in text} == {}


def test_a_disabled_flavor_is_found_and_fails_without_it(stacks: Stacks) -> None:
    """No list shows it to users, who may have its id from earlier."""
    admin = stacks.project.admin.compute
    flavor = admin.create_flavor(name=f"old-{stacks.project.id}", vcpus=1, ram=64, disk=1)
    try:
        stacks.project.rows.disable_flavor(flavor.id)
        template = document(a=server(flavor=flavor.id))
        assert refused(stacks, template) == [f"the flavor {flavor.id} is disabled, or does not exist"]
        without = stacks.start("s", template, environment=OFF)
        assert "could not be found" in without.wait("CREATE_FAILED")["stack_status_reason"]
    finally:
        admin.delete_flavor(flavor)


@pytest.mark.parametrize(
    "name", ["blue_green", "breakpoints", "drift", "first_stack", "nested_library", "server", "two_routers"]
)
def test_an_example_raises_no_false_alarm(stacks: Stacks, name: str) -> None:
    assert findings(stacks, **example(name)) == []


def test_a_hundred_servers_of_a_group_are_counted(stacks: Stacks) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 100, "resource_def": server(networks=[{"network": "inner"}])},
    }
    network_in_use(stacks.project)
    limit(stacks.project, "compute", instances=99, cores=1000)
    limit(stacks.project, "network", port=50)
    exceeded = {
        (finding["message"].split(" ")[1], finding["needed"])
        for finding in findings(stacks, document(a=group))
    }
    assert exceeded == {("instances", "100"), ("port", "100")}


def test_an_address_that_is_taken_after_the_check_fails_as_without_one(stacks: Stacks) -> None:
    network_in_use(stacks.project)
    hold = {"resource_registry": {**REFUSE["resource_registry"], "resources": {"a": {"hooks": "pre-create"}}}}
    stack = stacks.start("s", document(a=port("10.9.0.10")), environment=hold)
    network = stacks.project.connection.network
    inner = network.find_network("inner")
    taken = network.create_port(network_id=inner.id, fixed_ips=[{"ip_address": "10.9.0.10"}])

    def is_released() -> bool:
        body = {"unset_hook": "pre-create"}
        return stacks.call("POST", f"{stack.path}/resources/a/signal", body).status == 200

    stacks.wait_for(is_released, lambda: str(stack.show()))
    reason = stack.wait("CREATE_FAILED")["stack_status_reason"]
    assert "already allocated" in reason
    assert f"(10.9.0.10 is that of port {taken.id})" in reason


GIVEN = {
    "image": "cirros",
    "flavor": "m1.tiny",
    "public_net": "public",
    "key": "mine",
    "network": "inner",
}
"""Values of parameters without a default, by name."""
HERE = pathlib.Path(__file__).parent


def templates() -> Iterator[tuple[str, Json]]:
    """The templates of other tests, which make stacks of them, and the examples."""
    for name in names():
        yield name, example(name)
    for folder in ("templates", "types"):
        for path in sorted((HERE / folder).glob("*.yaml")):
            files, template = template_utils.process_template_path(str(path))
            parameters = template.get("parameters") or template.get("Parameters") or {}
            values = {
                parameter: GIVEN[parameter]
                for parameter, definition in parameters.items()
                if parameter in GIVEN and not {"default", "Default"} & definition.keys()
            }
            yield path.stem, {"template": template, "files": files, "parameters": values}


def test_templates_that_pass_raise_no_false_alarm(stacks: Stacks) -> None:
    network_in_use(stacks.project)
    alarms: dict[str, list[str]] = {}
    passed = []
    for name, body in templates():
        answer = stacks.call("POST", "/stacks/preview?check_cloud=true", {"stack_name": "looked-at", **body})
        if answer.status != 200:
            continue  # It needs a service that does not run, or the rights of an operator.
        passed.append(name)
        wrong = [item["message"] for item in answer.body["findings"] if item["certainty"] != "not known"]
        if wrong:
            alarms[name] = wrong
    assert alarms == {}
    assert len(passed) >= 30, passed


class CountingSession(Session):
    """A session that counts its requests."""

    def __init__(self, auth: Json, versions: dict[str, Json], requests: list[str]) -> None:
        super().__init__(auth=auth, timeout=60.0, discovery_cache=versions)
        self._requests = requests

    def request(self, url: str, method: str, **options: Json) -> Json:
        self._requests.append(f"{method} {url}")
        return super().request(url, method, **options)


def access_of(project: Project) -> CallerAccess:
    """The access that a request's token gives, in the form of Keystone's middleware."""
    access = project.connection.session.auth.get_access(project.connection.session)
    catalog = [
        {
            "type": service["type"],
            "name": service["name"],
            "endpoints": [
                {f"{endpoint['interface']}URL": endpoint["url"], "region": endpoint["region"]}
                for endpoint in service["endpoints"]
            ],
        }
        for service in access.service_catalog.catalog
    ]
    return CallerAccess(access.auth_token, access.user_id, project.id, json.dumps(catalog))


def fleet(count: int) -> str:
    """Servers of a group, each with a port, a floating IP and a volume."""
    shared = {
        "group": {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["soft-anti-affinity"]}},
    }
    each: dict[str, Json] = {}
    for number in range(count):
        each |= {
            f"port{number}": port(f"10.9.0.{number + 20}"),
            f"address{number}": {
                "type": "OS::Neutron::FloatingIP",
                "properties": {"floating_network": "public", "port_id": {"get_resource": f"port{number}"}},
            },
            f"volume{number}": volume(volume_type="lvm", availability_zone="nova"),
            f"server{number}": server(
                availability_zone="nova",
                metadata={"number": str(number)},
                security_groups=[],
                networks=[{"port": {"get_resource": f"port{number}"}}],
                scheduler_hints={"group": {"get_resource": "group"}},
            ),
        }
    return json.dumps({**shared, **each})


def test_a_hundred_servers_cost_as_many_requests_as_one(project: Project) -> None:
    network_in_use(project)
    requests: list[str] = []
    services = CallerServices(
        ClientOptions(), lambda auth, versions: CountingSession(auth, versions, requests), within=60.0
    )
    readers = CloudReaders(ask=ServiceReadings(services).ask, has_service=services.has, monotonic=lambda: 0.0)
    access = access_of(project)

    def asked(count: int) -> list[str]:
        stack = compiled(fleet(count))
        requests.clear()
        findings = findings_of(
            list(parts_of_creation(stack.plan, stack.nested, REGISTRY)), readers.reader(access)
        )
        assert [finding.message for finding in findings] == []
        return sorted(requests)

    asked(1)  # Each service tells its versions once.
    few, many = asked(1), asked(100)
    assert many == few
    assert len(many) <= MOST_REQUESTS, many
