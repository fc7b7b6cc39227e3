"""The context of a step: calls for its resource, its siblings and the cloud; and lists of types' things."""

import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from ...shapes import Json, JsonMap
from .children import ChildReads, Children
from .cloud import RemoteCloud
from .guests import GuestAccess, Presigned, StackUser
from .software import Software
from .views import DeletionView, ReferencedResource, ReplacementView, Sibling

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session

T = typing.TypeVar("T")


class CloudCalls(typing.Protocol):
    """Calls to the services of the cloud with the rights of the stack's user.

    Steps have them, and whoever reads the lists of things to compare these with their resources.  Only one
    thread may call them.
    """

    def now(self) -> float:
        """Return the seconds since the epoch, UTC."""

    def checkpoint(self) -> None:
        """Raise if the step is cancelled; long steps call it from time to time.

        :raises Cancelled: the step must end; do not catch it.
        """

    def session(self) -> "Session":
        """Return a keystoneauth session of the stack's user in the stack's project.

        It works after the user's token has expired.  Only types with `uses_credentials` may call this.

        :raises PermanentError: the stack has no credential, or Keystone refuses it.
        :raises RetryableError: Keystone is unavailable.
        """

    def adapter(self, service: str, version: str, microversion: str | None = None) -> "Adapter":
        """Return the endpoint of a service of the cloud, for calls with the rights of `session`.

        :param service: its type in the service catalog.
        :param version: the major version of its interface.
        :param microversion: the newest microversion that the caller knows; calls to an older service use the
            newest one of that service.
        :raises PermanentError: the stack has no credential, or the cloud no such service.
        :raises RetryableError: Keystone or the service is unavailable.
        """

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> "Adapter":
        """Return the endpoint of a service in another region or cloud.

        :param credential: a function that reads the credential of the other cloud; the credential is kept in
            memory for minutes, and never stored.
        :raises PermanentError: the credential, the certificates or the region are wrong.
        :raises RetryableError: the other cloud is unavailable.
        """

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        """Return the value that `make` made for this key and project at most `max_age` seconds ago.

        All steps of a process share the value.  While another step makes it, the previous value is returned;
        without a previous value the step waits.

        :param make: a function that makes the value; its errors are raised, and no value is kept.
        :param checked_by_use: whether a step that fails with a kept value runs once more, with a new value.
        """


class StackReads(typing.Protocol):
    """Reads of the stack: other resources of it, and the nested stack of the resource."""

    def sibling(self, name: str) -> Sibling:
        """Read another resource of the stack (one database read).

        :raises PermanentError: there is no resource of that name.
        """

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        """Read the resource of the stack with this physical id (one database read); None: there is none."""

    def replacement(self) -> ReplacementView | None:
        """Return the resource that has replaced this one (one database read); None: there is none."""

    def deletions(self) -> Sequence[DeletionView]:
        """Return the resources that the deletion of the stack still has to delete, as of a second ago.

        It is empty while the stack is not being deleted.  All steps of a conductor share the database read,
        whose cost grows with the stack.
        """

    @property
    def children(self) -> ChildReads:
        """The nested stacks of the resource."""


class ResourceAddresses(typing.Protocol):
    """Addresses and accounts by which guests, and whoever sends signals, reach the resource."""

    def signal_url(self, resource_name: str) -> str:
        """Return the URL for signals to a resource of this stack, for clients with a Keystone token."""

    def presigned(self) -> Presigned:
        """Return the address for signals to this resource, for clients without a token."""

    def signal_user(self) -> StackUser:
        """Return the account whose token is for signals to this resource."""

    def guest_access(self) -> GuestAccess:
        """Return the means by which the guest of this resource, a server, reads its metadata."""


class GoalContext(CloudCalls, StackReads, typing.Protocol):
    """The calls by which a type makes the goal of a nested stack: for a step, and for an import."""


class StepContext(GoalContext, ResourceAddresses, typing.Protocol):
    """Calls that a conductor offers to a running step.  Only the step's thread may call them."""

    def pause(self, seconds: float) -> None:
        """Sleep; end early when the step is cancelled.

        :raises Cancelled: the step must end; do not catch it.
        """

    @property
    def children(self) -> Children:
        """The nested stacks of the resource, which the step may change."""

    @property
    def software(self) -> Software:
        """The software configs and deployments of the stack's project."""


@dataclass(frozen=True)
class Collection:
    """A list of a service with all things of a type, by which their drift is observed.

    Types with equal collections share one read of the list.

    :ivar service: the service's type in the service catalog.
    :ivar path: path of the list.
    :ivar read: a function that returns the things of a project by physical id; its arguments are the context
        and the id of the project.  It raises the errors of a step.
    :ivar is_of_project: whether each thing belongs to a project.  Otherwise the list has things of other
        projects, and of whoever else uses the cloud: none of them is taken for one that was lost.
    """

    service: str
    path: str
    read: Callable[[CloudCalls, str], Mapping[str, JsonMap]] = field(compare=False, repr=False)
    is_of_project: bool = True
