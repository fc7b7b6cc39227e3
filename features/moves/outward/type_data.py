"""The data that a type of Heat's keeps of a resource, made of the data that Stoker's type has kept; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ....db.rows import Resource
from ....resources.heat.iam import ACCESS_KEY
from ....resources.openstack.nova.launch_schema import LAUNCH_CONFIGURATION
from ....shapes import JsonMap
from ..heat.type_names import HANDLES, POLICIES
from ..mapping.data import blacklist, kept_of_stoker, ports_of_stoker

ACCOUNTS = ("AWS::IAM::User", ACCESS_KEY)
"""Types whose resources are accounts at Keystone, and keys of them, in Heat alone."""
SIGNALS_MOVE = (
    "clients and alarms have an address of Stoker's, to which Heat does not answer: update what has it in "
    "Heat, so that it gets one of Heat's"
)
GUESTS_MOVE = (
    "its guest asks with keys of Stoker's, which Heat does not know: replace the server in Heat where its "
    "guest is to get changes"
)


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
    values = kept_of_stoker(row.plugin, data) | blacklist(data) | ports_of_stoker(row.plugin, data)
    if row.plugin == "OS::Heat::None":
        values["is_placeholder"] = "True"
    if isinstance(account := data.get("account"), Mapping) and account.get("password"):
        values["password"] = str(account["password"])
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
