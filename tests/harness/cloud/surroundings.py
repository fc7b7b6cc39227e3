"""The things that somebody's template wants to find in a project, made before it is tried there."""

from harness.cloud.checkout import KEY, NETWORK, PORT, ROUTER, SERVER, SUBNET, VOLUME, Sample
from harness.cloud.contents import EXTERNAL, FLAVORS, IMAGE
from harness.cloud.project import Project
from openstack import exceptions


def furnish(project: Project, sample: Sample) -> None:
    """Make a routed network and a key pair in an empty project, and whatever else the template names."""
    network = project.connection.network
    made = network.create_network(name=NETWORK)
    subnet = network.create_subnet(network_id=made.id, ip_version=4, cidr="192.168.99.0/24", name=SUBNET)
    public = network.find_network(EXTERNAL)
    router = network.create_router(name=ROUTER, external_gateway_info={"network_id": public.id})
    network.add_interface_to_router(router, subnet_id=subnet.id)
    project.connection.compute.create_keypair(name=KEY)
    for kind, name in sorted(set(sample.things())):
        _make(project, made.id, kind, name)


def _make(project: Project, network: str, kind: str, name: str) -> None:
    """Make a thing of that name, unless it is there."""
    c = project.connection
    match kind:
        case "glance.image" if c.image.find_image(name) is None:
            c.image.create_image(name=name, data=b"x", disk_format="raw", container_format="bare")
        case "nova.keypair" if c.compute.find_keypair(name) is None:
            c.compute.create_keypair(name=name)
        case "nova.flavor" if c.compute.find_flavor(name) is None:
            _make_flavor(project, name)
        case "nova.server" if name == SERVER:
            _make_server(project, network)
        case "neutron.network" if c.network.find_network(name) is None:
            c.network.create_network(name=name)
        case "neutron.port" if name == PORT:
            c.network.create_port(network_id=network, name=PORT)
        case "cinder.volume" if name == VOLUME:
            volume = c.block_storage.create_volume(size=1, name=VOLUME)
            c.block_storage.wait_for_status(volume, "available", interval=0.2)


def _make_flavor(project: Project, name: str) -> None:
    """Make a flavor, which all projects see; it stays with the cloud."""
    vcpus, ram, disk = FLAVORS["m1.tiny"]
    try:
        project.admin.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    except exceptions.ConflictException:
        return  # Another template's project has made it meanwhile.


def _make_server(project: Project, network: str) -> None:
    compute = project.connection.compute
    server = compute.create_server(
        name=SERVER,
        image_id=project.connection.image.find_image(IMAGE).id,
        flavor_id=compute.find_flavor("m1.tiny").id,
        networks=[{"uuid": network}],
    )
    compute.wait_for_server(server, interval=0.2)
