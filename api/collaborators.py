"""The interfaces of services that handlers ask, and that other layers implement or cli/wiring makes."""

import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db.ids import ResourceId, StackId
from ..db.queries.guests import GuestServer
from ..db.rows import ListedResource, Resource, Stack
from ..engine.context import Review
from ..engine.planning.requests import CallersCloud, CreateRequest, UpdateRequest
from ..keystone.caller import CallerAccess
from ..shapes import Json, JsonMap

Columns = Mapping[StackId, JsonMap]
"""Fields that lists of stacks show beyond Heat's, by stack; a stack for which there are none is missing."""
ReadColumns = Callable[[Connection, Sequence[StackId]], Columns]

Exchange = Callable[[JsonMap], Mapping[str, str]]
"""Returns the headers of the user whose EC2 credentials have signed a request; see Ec2Tokens."""

CloudOf = Callable[[CallerAccess], CallersCloud | None]
"""Returns the cloud as the owner of an access sees it; None: nothing is known of it."""


def no_cloud(access: CallerAccess) -> CallersCloud | None:
    """Return None: nobody asks a cloud."""
    return None


@dataclass(frozen=True)
class Downloads:
    """Functions that fetch the files that a request names and does not send.

    :ivar template: a function that returns the text of a template at an address.
    :ivar files: a function that returns the files of a container, without those whose names it is given.
    """

    template: Callable[[str], str]
    files: Callable[[CallerAccess | None, str, Collection[str]], Mapping[str, str]]


class GuestPolls(typing.Protocol):
    """Answers the polls of guests; see engine/guests.py."""

    def secret(self, access_key: str) -> str:
        """Return the secret of a guest's access key; whether its row exists is not looked up."""

    def imported(self, key: str) -> Sequence[tuple[GuestServer, str | None]]:
        """Return the resources of a key or an account of before an import, each with its secret."""

    def account(self, user_id: str, password: str) -> tuple[GuestServer, str] | None:
        """Return the resource for which an account acts, and its endpoint; None: there is no such account."""

    def find(self, stack_id: StackId, row: ResourceId) -> GuestServer | None:
        """Return the server of a row; None: it is gone."""

    def readable(self, server: GuestServer, name: str) -> GuestServer | None:
        """Return the resource of that name; None: the keys of the server or access key do not reach it."""

    def admits(self, server: GuestServer, transport: str) -> bool:
        """Return whether a server's guest may ask by a transport."""

    def last_modified(self, server: GuestServer) -> int:
        """Return the seconds since the epoch for Last-Modified."""

    def document(self, server: GuestServer) -> tuple[GuestServer, str] | None:
        """Return the metadata as JSON text, and the server at that moment; None: its row is gone."""

    def deployments(self, conn: Connection, stack: Stack, server: Resource) -> Sequence[Json]:
        """Return the configs that a server's guest applies; none of other resources."""

    def record(self, server: GuestServer, transport: str) -> None:
        """Note that the server's guest has asked now by a transport."""

    def reasons(
        self, conn: Connection, rows: Iterable[Resource | ListedResource]
    ) -> Mapping[ResourceId, str]:
        """Return the reasons of deployments that wait: they say how far their servers' guests are."""


class Preflight(typing.Protocol):
    """Compares what a request would make with the cloud of its caller, before anything is begun."""

    def of_creation(self, request: CreateRequest, access: CallerAccess | None) -> Sequence[JsonMap]:
        """Return the findings for a stack that would be created, each as the API shows it.

        :param access: the caller's access to the services; None: Keystone has not named the caller.
        """

    def of_update(
        self, stack: Stack, request: UpdateRequest, access: CallerAccess | None
    ) -> Sequence[JsonMap]:
        """Return the findings for an update."""

    def review_of_creation(self, access: CallerAccess) -> Review:
        """Return the review of a stack that is to be created.

        It raises an answer 409 if the stack's environment asks for that and the cloud would not carry it out.
        """

    def review_of_update(self, stack: Stack, request: UpdateRequest, access: CallerAccess) -> Review:
        """Return the review of an update; see review_of_creation."""
