"""Properties and attributes of OS::Zun::Container."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom
from ...schema import Attribute, Property, SupportStatus

SINCE_10 = SupportStatus(version="10.0.0")
MOUNT = Property(
    "map",
    "A volume.",
    schema={
        "volume_id": Property(
            "string", "Name or id of the volume.", constraints=(Custom(check_name="cinder.volume"),)
        ),
        "volume_size": Property("integer", "Size of a new volume in GiB."),
        "mount_path": Property("string", "Where it is in the container.", required=True),
    },
)
NETWORK = Property(
    "map",
    "A network.",
    schema={
        "network": Property(
            "string",
            "Name or id of the network on which a port is created.",
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "fixed_ip": Property("string", "Address of the port.", constraints=(Custom(check_name="ip_addr"),)),
        "port": Property(
            "string",
            "Name or id of a port that there is.",
            constraints=(Custom(check_name="neutron.port"),),
        ),
    },
)
PROPERTIES: Mapping[str, Property] = {
    "name": Property("string", "Its name; none: the service makes one.", update_allowed=True),
    "image": Property("string", "Name or id of the image.", required=True),
    "command": Property("string", "The command that it runs."),
    "cpu": Property("number", "Number of virtual processors.", update_allowed=True),
    "memory": Property("integer", "Memory in MiB.", update_allowed=True),
    "environment": Property("map", "Variables of its environment."),
    "workdir": Property("string", "Folder in which commands run."),
    "labels": Property("map", "Its labels."),
    "image_pull_policy": Property(
        "string",
        "Whether the image is fetched before the start.",
        constraints=(AllowedValues(values=("ifnotpresent", "always", "never")),),
    ),
    "restart_policy": Property(
        "string",
        "When it starts again by itself: no, on-failure[:max-retry], always or unless-stopped.",
    ),
    "interactive": Property("boolean", "Its standard input stays open."),
    "tty": Property(
        "boolean", "It has a terminal of its own.", support_status=SupportStatus(version="14.0.0")
    ),
    "image_driver": Property(
        "string",
        "Where the image comes from.",
        constraints=(AllowedValues(values=("docker", "glance")),),
    ),
    "hints": Property("map", "Hints for the choice of its host.", support_status=SINCE_10),
    "hostname": Property("string", "Its host name.", support_status=SINCE_10),
    "security_groups": Property(
        "list", "Names or ids of its security groups.", default=[], support_status=SINCE_10
    ),
    "mounts": Property("list", "Volumes that it has.", schema=MOUNT),
    "networks": Property(
        "list",
        "Networks that it is on; none: the service chooses.",
        update_allowed=True,
        schema=NETWORK,
        support_status=SupportStatus(version="11.0.0"),
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "name": Attribute("Its name.", "string"),
    "addresses": Attribute("Its addresses by the ids and the names of its networks.", "map"),
}
