"""The interfaces of services that handlers ask, and that other layers implement or cli/wiring makes."""

import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db.ids import StackId
from ..db.rows import Stack
from ..engine.context import Review
from ..engine.planning.requests import CallersCloud, CreateRequest, UpdateRequest
from ..keystone.caller import CallerAccess
from ..shapes import JsonMap

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
