"""The data that a type of Heat's keeps of a resource, made of the data that Stoker's type has kept; pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....db.rows import Resource
from ....resources.heat.iam import ACCESS_KEY, SECRET
from ....resources.imported import IMPORTED_PORTS
from ....resources.openstack.nova.launch_schema import LAUNCH_CONFIGURATION
from ....shapes import Json, JsonMap
from ..heat.type_names import AWS_HANDLES, HANDLES, HEAT_HANDLE, POLICIES, SERVERS

ACCOUNTS = ("AWS::IAM::User", ACCESS_KEY)
"""Types whose resources are accounts at Keystone, and keys of them, in Heat alone."""
EC2_INSTANCE = "AWS::EC2::Instance"
SIGNALS_MOVE = (
    "clients and alarms have an address of Stoker's, to which Heat does not answer: update what has it in "
    "Heat, so that it gets one of Heat's"
)
GUESTS_MOVE = (
    "its guest asks with keys of Stoker's, which Heat does not know: replace the server in Heat where its "
    "guest is to get changes"
)
_AS_STORED: Mapping[str, Mapping[str, str]] = {
    "OS::Heat::RandomString": {"value": "value"},
    "OS::Heat::SwiftSignalHandle": {"endpoint": "endpoint"},
    "OS::Heat::TestResource": {"value": "value"},
    "OS::Nova::KeyPair": {"private_key": "private_key"},
    ACCESS_KEY: {SECRET: "secret_key"},
    HEAT_HANDLE: {"token": "token", "endpoint": "endpoint"},
    **{name: {"url": "ec2_signed_url"} for name in AWS_HANDLES},
}
"""By type, the keys of Stoker's data with those of Heat's for the same values."""


@dataclass(frozen=True)
class ResourceKeys:
    """The keys and the account by which guests and clients act for a resource since Heat made it.

    :ivar access: access key; "": there is none.
    :ivar secret: secret of the access key.
    :ivar user_id: account at Keystone; "": there is none.
    """

    access: str = ""
    secret: str = field(default="", repr=False)
    user_id: str = ""

    def __bool__(self) -> bool:
        return bool(self.access or self.user_id)


def physical_id_of(row: Resource) -> str | None:
    """Return the physical id of a resource as Heat has it; a launch configuration has none there."""
    return None if row.plugin == LAUNCH_CONFIGURATION else row.physical_id


def heat_data(row: Resource, data: JsonMap, keys: ResourceKeys) -> dict[str, str]:
    """Return the data that Heat's type keeps.

    :param data: the data of Stoker's type, secrets in clear.
    """
    names = _AS_STORED.get(row.plugin, {})
    values = {names[key]: str(data[key]) for key in names if data.get(key) is not None}
    if row.plugin == "OS::Heat::None":
        values["is_placeholder"] = "True"
    if isinstance(account := data.get("account"), Mapping) and account.get("password"):
        values["password"] = str(account["password"])
    if removed := data.get("removed"):
        values["name_blacklist"] = ",".join(sorted(removed))
    if ports := _own_ports(data):
        if row.plugin == EC2_INSTANCE:
            values["port_id"] = ports[0]
        elif row.plugin in SERVERS:
            values["internal_ports"] = json.dumps([{"id": port} for port in ports])
    if keys.access and row.plugin != ACCESS_KEY:
        values |= {"access_key": keys.access, "secret_key": keys.secret}
    if keys.user_id:
        values["user_id"] = keys.user_id
    return values


def notes_of(row: Resource, properties: JsonMap, keys: ResourceKeys) -> Iterator[str]:
    """Yield what does not reach a resource any more that Stoker has made."""
    if keys:
        return
    if row.plugin in POLICIES or (row.plugin in HANDLES and not row.is_untouched):
        yield f"{row.name}: {SIGNALS_MOVE}"
    if properties.get("user_data_format") == "SOFTWARE_CONFIG":
        yield f"{row.name}: {GUESTS_MOVE}"


def _own_ports(data: JsonMap) -> Sequence[str]:
    """Return the ids of the ports that were made for a server, and are deleted with it."""
    interfaces: Sequence[Json] = data.get("interfaces") or ()
    ports = [str(item["port"]) for item in interfaces if item.get("is_own")]
    imported = [str(port) for port in data.get(IMPORTED_PORTS) or ()]
    return list(dict.fromkeys([*ports, *imported]))
