"""The properties of CloudFormation's servers, and of the configurations that they are launched with."""

from collections.abc import Mapping

from ....shapes import JsonMap
from ....template.constraints import Custom
from ...contract import Property, PropertyError, SupportStatus
from ..translated import pairs

INSTANCE = "AWS::EC2::Instance"
LAUNCH_CONFIGURATION = "AWS::AutoScaling::LaunchConfiguration"
OLD = SupportStatus(version="2014.1")
SERVER = Custom(check_name="nova.server")

_EBS = {
    "DeleteOnTermination": Property("boolean", "Deletion of the volume with the server.", default=True),
    "Iops": Property("number", "I/O operations per second; without effect."),
    "SnapshotId": Property(
        "string",
        "Name or id of the snapshot that the volume is created from; required.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "VolumeSize": Property("string", "Size of the volume, in GB; if omitted, that of the snapshot."),
    "VolumeType": Property("string", "Volume type; without effect."),
}
_DEVICE = {
    "DeviceName": Property("string", "Device name in the server, such as vdb.", required=True),
    "Ebs": Property("map", "Volume of the device; required.", schema=_EBS),
    "NoDevice": Property("map", "Device to leave out; without effect."),
    "VirtualName": Property("string", "Name of an ephemeral disk; without effect."),
}


IMAGE = Custom(check_name="glance.image")
FLAVOR = Custom(check_name="nova.flavor")
COMMON: Mapping[str, Property] = {
    "KeyName": Property("string", "Name of the key pair.", constraints=(Custom(check_name="nova.keypair"),)),
    "UserData": Property("string", "User data: a script, run by heat-cfntools in the server."),
    "SecurityGroups": Property("list", "Names or ids of security groups."),
    "BlockDeviceMappings": Property(
        "list",
        "Block devices: volumes created from snapshots.",
        schema=Property("map", "Block device.", schema=_DEVICE),
    ),
    "NovaSchedulerHints": pairs("Hints for the scheduler; a key may have several values."),
}
"""Properties that a server and a launch configuration have in common."""


def check_volumes(properties: JsonMap) -> None:
    """Check that each volume is made of a snapshot.

    :raises PropertyError: a volume is made of something else.
    """
    for index, mapping in enumerate(properties.get("BlockDeviceMappings") or ()):
        for name, part in (("Ebs", mapping["Ebs"]), ("SnapshotId", (mapping["Ebs"] or {}).get("SnapshotId"))):
            if not part:
                text = f"{name} is missing, this is required when specifying BlockDeviceMappings."
                raise PropertyError(text, ("BlockDeviceMappings", index))
