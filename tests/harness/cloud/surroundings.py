"""The things that somebody's template wants to find in a project, made before it is tried there."""

import threading
import uuid
from collections.abc import Mapping

from harness.cloud.checkout import Sample
from harness.cloud.choosing import KEY, NETWORK, OUTSIDE_NETWORK, PORT, ROUTER, SERVER, SUBNET, VOLUME
from harness.cloud.contents import EXTERNAL, FLAVORS, IMAGE
from harness.cloud.project import Project
from openstack import exceptions

_SHARED = threading.Lock()
"""Held by the one who makes what all projects see."""


def furnish(project: Project, sample: Sample) -> Mapping[str, str]:
    """Make a routed network and a key pair in an empty project, and whatever else the template names.

    :returns: the ids of the things that templates want by id, by name.
    """
    network = project.connection.network
    created = network.create_network(name=NETWORK)
    subnet = network.create_subnet(network_id=created.id, ip_version=4, cidr="192.168.99.0/24", name=SUBNET)
    public = network.find_network(EXTERNAL)
    router = network.create_router(name=ROUTER, external_gateway_info={"network_id": public.id})
    network.add_interface_to_router(router, subnet_id=subnet.id)
    project.connection.compute.create_keypair(name=KEY)
    needed = sorted(set(sample.named_objects()))
    ids = {name: _make(project, created.id, kind, name) for kind, name in needed}
    return {name: object_id for name, object_id in ids.items() if object_id is not None}


def _make(project: Project, network: str, kind: str, name: str) -> str | None:
    """Make a thing of that name, unless it is there; return its id if it has to be named by that."""
    c = project.connection
    match kind:
        case "nova.server" if name == SERVER:
            return _make_server(project, network)
        case "neutron.port" if name == PORT:
            return str(c.network.create_port(network_id=network, name=PORT).id)
        case "cinder.volume":
            volume = c.block_storage.create_volume(size=1, name=name)
            c.block_storage.wait_for_status(volume, "available", interval=0.2)
            return str(volume.id) if name == VOLUME else None
        case "glance.image" if c.image.find_image(name) is None:
            _make_image(project, name)
        case "nova.keypair" if c.compute.find_keypair(name) is None:
            c.compute.create_keypair(name=name)
        case "nova.flavor" if c.compute.find_flavor(name) is None:
            _make_flavor(project, name)
        case _ if kind == OUTSIDE_NETWORK:
            _make_outside(project, name)
        case "neutron.network" if c.network.find_network(name) is None:
            _make_network(project, name)
        case "neutron.security_group" if c.network.find_security_group(name, project_id=project.id) is None:
            c.network.create_security_group(name=name)
    return None


def _make_image(project: Project, name: str) -> None:
    """Make an image of that name, or with that id."""
    try:
        fields = {"id": str(uuid.UUID(name)), "name": "named by id"}
    except ValueError:
        fields = {"name": name}
    project.connection.image.create_image(data=b"x", disk_format="raw", container_format="bare", **fields)


def _make_network(project: Project, name: str) -> None:
    """Make a network that the project's router connects to the outside."""
    network = project.connection.network
    created = network.create_network(name=name)
    used = len(list(network.subnets(project_id=project.id)))
    cidr = f"192.168.{99 - used}.0/24"
    subnet = network.create_subnet(network_id=created.id, ip_version=4, cidr=cidr)
    network.add_interface_to_router(network.find_router(ROUTER), subnet_id=subnet.id)


def _make_outside(project: Project, name: str) -> None:
    """Make an external network, which all projects see; it stays with the cloud."""
    network = project.admin.network
    with _SHARED:
        if network.find_network(name) is not None:
            return
        created = network.create_network(name=name, is_router_external=True)
        network.create_subnet(
            network_id=created.id, ip_version=4, cidr="172.25.0.0/16", is_dhcp_enabled=False
        )


def _make_flavor(project: Project, name: str) -> None:
    """Make a flavor, which all projects see; it stays with the cloud."""
    vcpus, ram, disk = FLAVORS["m1.tiny"]
    try:
        project.admin.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    except exceptions.ConflictException:
        return  # Another template's project has made it meanwhile.


def _make_server(project: Project, network: str) -> str:
    compute = project.connection.compute
    server = compute.create_server(
        name=SERVER,
        image_id=project.connection.image.find_image(IMAGE).id,
        flavor_id=compute.find_flavor("m1.tiny").id,
        networks=[{"uuid": network}],
    )
    return str(compute.wait_for_server(server, interval=0.2).id)
