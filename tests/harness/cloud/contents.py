"""Fills an empty cloud: accounts, service catalog, flavors, an image, an external network, a volume type."""

import openstack
from harness.cloud.layout import PASSWORD, REGION, Layout
from harness.cloud.services import SERVICES
from openstack.connection import Connection

ACCOUNTS = {"service": ("admin", "service"), "stoker": ("service",), "demo": ("member",)}
"""Users with their roles: the services' own, Stoker's, in the same project, and one for people."""
ROLES = ("service", "creator", "heat_stack_owner", "heat_stack_user")
"""Roles that Keystone does not bring."""
FLAVORS = {
    "m1.tiny": (1, 512, 1),
    "m1.small": (1, 2048, 20),
    "m1.medium": (2, 4096, 40),
    "m1.large": (4, 8192, 80),
}
"""Cores, MiB of memory, GiB of disk."""
IMAGE = "cirros"
EXTERNAL = "public"
VOLUME_TYPE = "standard"
INTERFACES = ("public", "internal", "admin")


def connect(auth_url: str, user: str, project: str) -> Connection:
    """A connection of a user's to a project; it has nothing from the environment or files of who runs it."""
    return openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_url=auth_url,
        username=user,
        password=PASSWORD,
        project_name=project,
        user_domain_id="default",
        project_domain_id="default",
        region_name=REGION,
        connect_retries=3,  # A service may close a connection just when it is used again.
    )


def make_accounts(layout: Layout) -> None:
    """Make what the services need of Keystone before they start."""
    identity = connect(layout.auth_url, "admin", "admin").identity
    for name in ROLES:
        if identity.find_role(name) is None:
            identity.create_role(name=name)
    projects = {name: identity.create_project(name=name, domain_id="default") for name in ("service", "demo")}
    for name, roles in ACCOUNTS.items():
        user = identity.create_user(name=name, domain_id="default", password=PASSWORD)
        for role in roles:
            project = projects.get(name, projects["service"])
            identity.assign_project_role_to_user(project, user, identity.find_role(role))
    types = {service.type for service in identity.services()}
    for service in SERVICES:
        for kind, path in service.endpoints:
            if kind in types:  # Keystone has entered itself.
                continue
            entry = identity.create_service(name=service.name, type=kind)
            url = f"{layout.url(service.name)}{path}"
            for interface in INTERFACES:
                identity.create_endpoint(service_id=entry.id, interface=interface, region_id=REGION, url=url)


def make_things(layout: Layout) -> None:
    """Make what templates find in a cloud."""
    admin = connect(layout.auth_url, "admin", "admin")
    for name, (vcpus, ram, disk) in FLAVORS.items():
        admin.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    image = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
    admin.image.create_image(name=IMAGE, data=b"no image at all", **image)
    network = admin.network.create_network(
        name=EXTERNAL,
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network=EXTERNAL,
    )
    admin.network.create_subnet(
        network_id=network.id,
        name=f"{EXTERNAL}-subnet",
        ip_version=4,
        cidr="172.24.0.0/16",
        gateway_ip="172.24.0.1",
        is_dhcp_enabled=False,
    )
    # Cinder makes its default type itself, as soon as it is asked for it.
    if VOLUME_TYPE not in {volume_type.name for volume_type in admin.block_storage.types()}:
        admin.block_storage.create_type(name=VOLUME_TYPE)
