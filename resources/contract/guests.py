"""Addresses, accounts and keys by which guests and signals reach a resource."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Presigned:
    """An address for signals to one resource; its signature allows nothing else.

    :ivar endpoint: the address without the signature; it accepts the signature as X-Auth-Token.
    :ivar signature: a secret.
    """

    endpoint: str
    signature: str = field(repr=False)

    @property
    def url(self) -> str:
        """Return the endpoint with the signature, which is a secret, too."""
        return f"{self.endpoint}?Signature={self.signature}"


@dataclass(frozen=True)
class StackUser:
    """An account of Stoker's own, by which clients of Keystone's and Heat's API act for one resource.

    It allows to read the metadata of one server, or to signal to one resource, and nothing else.

    :ivar auth_url: the address at which Stoker itself answers as Keystone does.
    :ivar password: a secret.
    :ivar stack_id: NAME/ID of the stack, the form that the client needs.
    """

    auth_url: str
    user_id: str
    password: str = field(repr=False)
    project_id: str
    stack_id: str
    resource_name: str


@dataclass(frozen=True)
class GuestAccess:
    """The means by which the agents in a server, its *guest*, read the metadata of the server's resource.

    They allow nothing else, and are valid as long as the row of the resource exists.

    :ivar metadata_url: the address of the CloudFormation API, for requests that are signed with the keys.
    :ivar secret_key: a secret.
    :ivar presigned: an address for GET; its signature is a secret, too.
    :ivar user: an account whose token is valid for the metadata.
    """

    stack_name: str
    resource_name: str
    metadata_url: str
    access_key: str
    secret_key: str = field(repr=False)
    presigned: Presigned
    user: StackUser
