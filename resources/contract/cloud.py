"""The user for whom a stack works, and the other regions and clouds that its resources name."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trustor:
    """The user who requests an action.

    :ivar token: the user's token, valid now.
    :ivar roles: the user's roles in the project.
    """

    user_id: str
    project_id: str
    roles: Sequence[str]
    token: str = field(repr=False)


@dataclass(frozen=True)
class RemoteCloud:
    """Another region of the cloud, or another cloud, as the properties of OS::Heat::Stack name it.

    :ivar region: name of the region; None: the first region of the service catalog that has the service.
    """

    region: str | None = None
    credential_secret_id: str | None = None
    ca_cert: str | None = None
    insecure: bool = False
