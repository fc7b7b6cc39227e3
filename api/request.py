"""A request as it was sent, and the values that it carries."""

import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field

from oslo_utils import strutils
from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.rows import Stack
from ..db.states import Status
from ..engine.planning.requests import CallersCloud, TypeForbidden
from ..shapes import Json
from .authenticator import Authenticator, is_allowed
from .collaborators import Downloads
from .context import RequestContext
from .ec2_signatures import SignedRequest
from .errors import bad_request, not_found, shortened
from .schemas import validated
from .settings import ApiLimits
from .strangers import NO_ATTEMPT, Attempt

T = typing.TypeVar("T")
CHANGING_METHODS: Set[str] = frozenset({"POST", "PUT", "PATCH", "DELETE"})
"""Methods of requests that may change something."""

LARGEST = 2**31 - 1
"""The largest whole number that a column can hold."""

VALUES = 500
"""Most values of one query parameter."""

_EMPTY: tuple[Json, ...] = (None, "", {}, [])


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """A request as it was sent.

    :ivar auth: the authenticator, for further questions about the caller's rights.
    :ivar cloud: the cloud as the caller sees it; None: nothing is known of it.
    :ivar path: the values of the route's variables.
    :ivar query: the parameters of the query string, each with all of its values.
    :ivar body: the parsed JSON; None: the request has no body.
    :ivar base_url: scheme, host and mount point, without a slash at the end.
    :ivar headers: the headers by name, in upper case.
    :ivar signed: the parts that a guest has signed, with `body` None; None: the operation takes no
        signature.
    :ivar request_id: the id in the log and the answer.
    :ivar downloads: the means to fetch files that the body names; None: it may name no files.
    :ivar attempt: the request until its signer is known.
    """

    caller: RequestContext
    auth: Authenticator
    limits: ApiLimits
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Json
    base_url: str
    query_string: str = ""
    cloud: CallersCloud | None = None
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    signed: SignedRequest | None = None
    request_id: str = ""
    downloads: Downloads | None = None
    attempt: Attempt = NO_ATTEMPT

    def one(self, name: str) -> str | None:
        """Return the last value of a query parameter; None: there is none."""
        values = self.query.get(name)
        return values[-1] if values else None

    def values(self, name: str, *, split: bool = False) -> list[str]:
        """Return all values of a query parameter that are not empty.

        :param split: whether values are split at commas.
        :raises Fault: 400, the parameter has more than VALUES values.
        """
        values = self.query.get(name, ())
        if split:
            values = [part.strip() for value in values for part in value.split(",")]
        filled = [value for value in values if value]
        if len(filled) > VALUES:
            raise bad_request(f'"{name}" has {len(filled)} values, above the limit of {VALUES}')
        return filled

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean query parameter.

        :raises Fault: 400, the value is neither true nor false.
        """
        value = self.one(name)
        if value is None or value == "":
            return default
        return boolean_word(value, name)

    def number(self, name: str) -> int | None:
        """Return a query parameter that is a whole number of 0 or more; None: it is not given.

        :raises Fault: 400, the value is no such number.
        """
        value = self.one(name)
        return None if value is None or value == "" else whole_number(value, name)

    def limit(self) -> int | None:
        """Return how many entries to list: as many as requested, but no more than the service allows.

        As in Heat, 0 are none.
        """
        most = self.limits.page
        requested = self.number("limit")
        if requested is None:
            return most or None
        return min(requested, most) if most else requested

    def direction(self) -> str:
        """Return the requested direction: ``asc``, ``desc``, or nothing.

        :raises Fault: 400, the direction is another word.
        """
        text = (self.one("sort_dir") or "").lower()
        if text not in ("", "asc", "desc"):
            raise bad_request(f'sort_dir must be asc or desc, not "{shortened(text)}"')
        return text

    def statuses(self, *names: str) -> tuple[list[str], list[str]]:
        """Return the actions and statuses of query parameters such as ``FAILED`` or ``CREATE_FAILED``.

        An unknown word is taken as a status, which nothing has.
        """
        actions = []
        statuses = []
        for value in (value.upper() for name in names for value in self.values(name)):
            status = next((candidate for candidate in Status if value.endswith(candidate)), value)
            statuses.append(str(status))
            if action := value.removesuffix(status).rstrip("_"):
                actions.append(action)
        return actions, statuses

    def valid(self, schema: Json, *, optional: Collection[str] = ()) -> Json:
        """Return the body, if it fits the schema.

        :param optional: fields that are left out where they are empty.  As in Heat they are not sent then:
            clients send ``{}``, ``[]`` or ``""`` for each part that they do not use.
        :raises Fault: 400, with the path of the wrong value.
        """
        if not isinstance(self.body, Mapping):
            raise bad_request("The body must be a JSON object")
        sent = {
            name: value for name, value in self.body.items() if name not in optional or value not in _EMPTY
        }
        return validated(sent, schema)

    def find_stack(self, conn: Connection) -> Stack:
        """Return the stack that the path names by name and id.

        :raises Fault: 404, also for a stack of another project.
        """
        return self.find_by(lambda stack_id: (stacks.get(conn, stack_id), None))[0]

    def find_by(self, read: Callable[[StackId], tuple[Stack, T]]) -> tuple[Stack, T]:
        """Return the stack that the path names by name and id, and the value that is read with it.

        :param read: reads both by the id, or raises NotFound.
        :raises Fault: 404, also for a stack of another project.
        """
        stack_id = self.path["stack_id"]
        name = self.path["stack_name"]
        try:
            stack, value = read(StackId(stack_id))
        except NotFound as error:
            raise not_found("Stack", f"{name}/{stack_id}") from error
        if not self.caller.may_see(stack.project_id) or stack.name != name:
            raise not_found("Stack", f"{name}/{stack_id}")
        return stack, value

    def find_living_stack(self, conn: Connection) -> Stack:
        """Return the stack of the path, unless it is deleted.

        :raises Fault: 404.
        """
        stack = self.find_stack(conn)
        if stack.deleted_at is not None:
            raise not_found("Stack", stack.name)
        return stack

    def may_use(self, type_name: str) -> bool:
        """Return whether the caller may have resources of the type."""
        return self.auth.may_use(self.caller, type_name)

    def may(self, rule: str) -> bool:
        """Return whether the policy allows the caller the operation of a rule."""
        return is_allowed(self.auth, self.caller, rule)

    def check_types(self, conn: Connection, stack: Stack) -> None:
        """Check that the caller may use the type of each resource in the stack and in its nested stacks.

        :raises TypeForbidden: a type is not for the caller.
        """
        for name in resources.types_in(conn, stack.id):
            if not self.may_use(name):
                raise TypeForbidden(name)


def whole_number(value: str, name: str) -> int:
    """Return the number of 0 or more that a text is.

    :raises Fault: 400 in Heat's words, the text is no such number.
    """
    # str.isdigit also takes digits that int does not.
    if re.fullmatch("[0-9]{1,10}", value) and int(value) <= LARGEST:
        return int(value)
    text = f"Only integer is acceptable by '{name}'."
    if re.fullmatch("[+-]?[0-9]+", value):
        text = f"Value '{shortened(value)}' is invalid for '{name}' which only accepts non-negative integer."
    raise bad_request(f'{text} It must be a whole number from 0 to {LARGEST}, not "{shortened(value)}"')


def boolean_word(value: str, name: str) -> bool:
    """Return the boolean that a word means, in the words of OpenStack's services.

    :raises Fault: 400, the value is neither true nor false.
    """
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError as error:
        raise bad_request(
            f'Unrecognized value "{shortened(value)}" for "{name}", acceptable values are: true, false'
        ) from error


def boolean(value: Json, name: str, *, default: bool) -> bool:
    """Return a boolean of a body, which may also be a word.

    :raises Fault: 400, the value is neither true nor false.
    """
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    return boolean_word(str(value), name)
