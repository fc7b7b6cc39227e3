"""A request as the handlers see it."""

import itertools
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jsonschema

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.rows import ListedStack, Stack
from ..db.states import Status
from ..planning.requests import TypeForbidden
from ..sealing.sealer import BoundSealer
from .auth import RequestContext
from .context import Services
from .errors import bad_request, not_found

Json = typing.Any

LARGEST = 2**31 - 1
"""The largest whole number that a column can hold."""

VALUES = 500
"""Values of one query parameter, at the most."""

SHOWN = 300
"""Characters of a value that does not fit that are repeated in the error."""

ERRORS = 100
"""Number of errors that are compared to find the one that says most; a long list may have many more."""

MOST_ENTRIES = 100_000
"""Entries of a body's lists and maps that are checked one by one, at the most: a second of work."""

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})


@dataclass(frozen=True)
class Request:
    """One request.

    :ivar path: variables of the route.
    :ivar query: parameters of the query string, each with all of its values.
    :ivar body: parsed JSON; None without one.
    :ivar base_url: scheme, host and mount point, without a slash at the end.
    """

    services: Services
    caller: RequestContext
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Json
    base_url: str
    query_string: str = ""

    def sealer_of(self, stack: ListedStack) -> BoundSealer:
        """Return the sealer for all that is stored of a stack."""
        return self.services.sealer.of_stack(stack.tenant, stack.root_id)

    def one(self, name: str) -> str | None:
        """The last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else None

    def values(self, name: str) -> list[str]:
        """Return all values of a query parameter that are not empty.

        :raises Fault: 400, there are more than VALUES.
        """
        return _few(name, [value for value in self.query.get(name, ()) if value])

    def parts(self, name: str) -> list[str]:
        """Return all values of a query parameter, split at commas.

        :raises Fault: 400, there are more than VALUES.
        """
        split = [part.strip() for value in self.values(name) for part in value.split(",")]
        return _few(name, [part for part in split if part])

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean query parameter.

        :raises Fault: 400, it is neither true nor false.
        """
        value = self.one(name)
        if value is None or value == "":
            return default
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise bad_request(
            f'Unrecognized value "{shortened(value)}" for "{name}", acceptable values are: true, false'
        )

    def number(self, name: str) -> int | None:
        """A whole number of 0 or more.

        :raises Fault: 400, it is none.
        """
        value = self.one(name)
        if value is None or value == "":
            return None
        # str.isdigit also takes digits that int does not.
        if not re.fullmatch("[0-9]{1,10}", value) or int(value) > LARGEST:
            raise bad_request(
                f'Only whole numbers from 0 to {LARGEST} are allowed for "{name}", not "{shortened(value)}"'
            )
        return int(value)

    def limit(self) -> int | None:
        """How many entries to list: what is asked for, but no more than the service allows."""
        most, wanted = self.services.limits.page, self.number("limit")
        if wanted is None or wanted == 0:
            return most or None
        return min(wanted, most) if most else wanted

    def direction(self) -> str:
        """``asc``, ``desc``, or nothing.

        :raises Fault: 400, it is another word.
        """
        found = (self.one("sort_dir") or "").lower()
        if found not in ("", "asc", "desc"):
            raise bad_request(f'sort_dir must be asc or desc, not "{shortened(found)}"')
        return found

    def statuses(self, *names: str) -> tuple[list[str], list[str]]:
        """Actions and statuses that the query parameters ask for: ``FAILED`` or ``CREATE_FAILED``.

        An unknown word is taken as a status, which nothing has.
        """
        actions, statuses = [], []
        for value in (value.upper() for name in names for value in self.values(name)):
            status = next((known for known in Status if value.endswith(known)), value)
            statuses.append(str(status))
            if action := value.removesuffix(status).rstrip("_"):
                actions.append(action)
        return actions, statuses

    def valid(self, schema: Json) -> Json:
        """The body, if it fits the schema.

        :raises Fault: 400 with the path of what does not.
        """
        if not isinstance(self.body, Mapping):
            raise bad_request("The body must be a JSON object")
        return validated(self.body, schema)

    def stack(self) -> Stack:
        """The stack that the path names by name and id.

        :raises Fault: 404, also for another tenant's.
        """
        stack_id, name = self.path["stack_id"], self.path["stack_name"]
        try:
            found = self.services.database.read(lambda conn: stacks.get(conn, StackId(stack_id)))
        except NotFound as error:
            raise not_found("Stack", f"{name}/{stack_id}") from error
        if not self.caller.may_see(found.tenant) or found.name != name:
            raise not_found("Stack", f"{name}/{stack_id}")
        return found

    def may_use(self, type_name: str) -> bool:
        """Whether the caller may have resources of the type."""
        return self.services.auth.may_use(self.caller, type_name)

    def check_types(self, stack: Stack) -> None:
        """:raises TypeForbidden: in the stack, or nested in it, is a resource of a type that is not the
        caller's to use."""
        for name in self.services.database.read(lambda conn: resources.types_in(conn, stack.id)):
            if not self.may_use(name):
                raise TypeForbidden(name)

    def living_stack(self) -> Stack:
        """As stack, but a deleted one is not found."""
        found = self.stack()
        if found.deleted_at is not None:
            raise not_found("Stack", found.name)
        return found


def _few(name: str, values: list[str]) -> list[str]:
    if len(values) > VALUES:
        raise bad_request(f'"{name}" has {len(values)} values, above the limit of {VALUES}')
    return values


def validated(value: Json, schema: Json, context: str = "") -> Json:
    """The value, if it fits the schema.

    :param context: said before what is wrong.
    :raises Fault: 400 with the path of what does not.
    """
    _refuse_many(value, schema, context)
    errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
    error = jsonschema.exceptions.best_match(itertools.islice(errors, ERRORS))
    if error is not None:
        raise bad_request(context + _explained(error))
    return value


def _refuse_many(value: Json, schema: Json, context: str = "", where: str = "") -> None:
    """Refuse a list or map of more entries than are worth the time that each takes to be checked.

    :raises Fault: 400 with the path.
    """
    each = schema.get("items"), schema.get("additionalProperties")
    if (
        isinstance(value, list | dict)
        and len(value) > MOST_ENTRIES
        and any(isinstance(e, dict) for e in each)
    ):
        raise bad_request(f"{context}{where}: has {len(value)} entries, above the limit of {MOST_ENTRIES}")
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            _refuse_many(value.get(name), inner, context, f"{where}.{name}" if where else name)


def shortened(text: str) -> str:
    """A text for an error message: of a long one, its beginning."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _explained(error: jsonschema.ValidationError) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    message = shortened(error.message)
    if error.validator == "type":
        wanted: Json = error.validator_value
        kinds = wanted if isinstance(wanted, str) else " or ".join(wanted)
        message = f"{shortened(repr(error.instance))} is not of type {kinds}"
    if error.validator == "additionalProperties" and isinstance(error.schema, Mapping):
        message = f"{message}; known are: {', '.join(sorted(error.schema['properties']))}"
    if error.validator == "maxItems":
        items: Json = error.instance
        message = f"{len(items)} items are above the limit of {error.validator_value}"
    return f"{shortened(where)}: {message}" if where else message


@dataclass(frozen=True)
class Reply:
    """An answer.

    :ivar body: JSON; None: no body, and with 200 the JSON ``null``.
    """

    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


ACCEPTED = Reply({"code": "202 Accepted", "title": "Accepted", "message": "The request is accepted."}, 202)
"""The answer to a request that is carried out later: an object, as Heat answers.  openstacksdk, and with it
Ansible, look for the stack in this body and fail on ``null``."""

Handler = Callable[[Request], Reply]


@dataclass(frozen=True)
class Operation:
    """One method of one route.

    :ivar rule: Heat's policy rule; None: the handler asks for one, or it is open to everybody: then there is
        no tenant in the path.
    :ivar presigned: who knows the signature of the path may do it, and nobody else.
    """

    handler: Handler
    rule: str | None
    presigned: bool = False
