"""Turns errors of the layers below into answers in Heat's shape, so that its client prints them."""

import http
from collections.abc import Callable, Mapping, Sequence

from ..db.errors import DamagedRow, NameTaken, NotFound, RowLocked, TooMuchToRead, TooSlow, Unavailable
from ..engine.errors import (
    ActionInProgress,
    AmbiguousId,
    Changing,
    ConfigInUse,
    ContainerNotRead,
    InvalidHook,
    NoContainers,
    NotAvailable,
    NotUpdatable,
    TemplateNotFetched,
    UnknownConfig,
)
from ..engine.planning.requests import TypeForbidden, TypeUnavailable
from ..keystone.delegated_auth import DelegationRefused, KeystoneUnavailable
from ..resources.contract.errors import (
    AbsentType,
    NotSupported,
    PropertyError,
    SignalError,
    SignalNotSupported,
    UnknownType,
)
from ..sealing.sealer import SealError
from ..shapes import Json
from ..template.errors import InvalidDeclaration, InvalidProperty, LimitExceeded, TemplateError, dotted
from ..template.sandbox.errors import HelperUnavailable

_LONGEST_LINE = 300
"""Characters of a further error in a message; ``error.errors`` has all of it."""

SHOWN = 300
"""Most characters of a wrong value that an error repeats."""

NO_SNIFFING = ("X-Content-Type-Options", "nosniff")
"""The header with which browsers take an answer for nothing but what its type says."""


class Fault(Exception):
    """An answer other than success.

    :ivar status: the status code of HTTP.
    :ivar kind: the stable name of the error, Heat's where Heat has one.
    :ivar errors: all errors of a template, this one first, where there are several.
    :ivar headers: further headers of the answer.
    :param retry_after: seconds after which the same request may succeed; None: that is not known.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        errors: Sequence[Mapping[str, str]] = (),
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.errors = errors
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, retry_after))}

    def body(self) -> Json:
        """Return the answer's body."""
        error: dict[str, Json] = {"type": self.kind, "message": self.message, "traceback": None}
        if self.errors:
            error["errors"] = list(self.errors)
        return {
            "code": self.status,
            "title": http.HTTPStatus(self.status).phrase,
            "explanation": _EXPLANATIONS.get(self.status, self.message),
            "error": error,
        }


_EXPLANATIONS = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    501: "The server does not support the functionality required to fulfill the request.",
    503: "The server is currently unavailable. Please try again at a later time.",
}


def bad_request(message: str, kind: str = "HTTPBadRequest") -> Fault:
    """Return the answer 400."""
    return Fault(400, kind, message)


def shortened(text: str) -> str:
    """Return a text for an error message: of a long text, its beginning."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def resource_not_found(resource: str, stack: str) -> Fault:
    """Return the answer 404 in Heat's words."""
    message = f"The Resource ({resource}) could not be found in Stack {stack}."
    return Fault(404, "ResourceNotFound", message)


def not_found(kind: str, key: str) -> Fault:
    """Return the answer 404 in Heat's words."""
    return Fault(404, "EntityNotFound", f"The {kind} ({key}) could not be found.")


def _template(error: Exception) -> Fault:
    assert isinstance(error, TemplateError)
    kind, text = _in_heats_words(error)
    if not error.others and not error.is_whole:
        return Fault(400, kind, text)
    errors = [{"path": dotted(one.path), "message": one.message} for one in (error, *error.others)]
    return Fault(400, kind, text + _further(errors[1:]) if error.others else text, errors)


_LIMIT = "Request limit exceeded: "


def _in_heats_words(error: TemplateError) -> tuple[str, str]:
    """Return Heat's type of an error, and its text, which begins as Heat's.

    Heat checks documents where it parses them, and calls an error there a bad request.
    """
    if isinstance(error, InvalidProperty) and error.path:
        # Heat's engine and API both put a colon behind each part, and clients match what comes out of that.
        return error.code, f"{error.prefix}: : {dotted(error.path)}: : {error.message}"
    if isinstance(error, LimitExceeded):
        return error.code, f"{_LIMIT}{str(error).removeprefix(_LIMIT)}"  # Texts of quotas begin with it.
    if type(error) in (TemplateError, InvalidDeclaration):
        if error.path[:1] == ("environment",) or error.message.startswith("the environment "):
            return "HTTPBadRequest", f"Environment not in valid format: {error}"
        if not error.path and error.message.startswith("the template "):
            return "HTTPBadRequest", f"Template not in valid format: {error}"
        if (name := _parameter_of(error.path)) is not None:
            return _of_parameter(error, name)
    return error.code, str(error)


def _parameter_of(path: Sequence[str | int]) -> str | None:
    """Return the name of the parameter to which a path leads; None: to none."""
    places = [index for index, part in enumerate(path[:-1]) if str(part).lower() == "parameters"]
    return str(path[places[-1] + 1]) if places and "properties" not in path else None


def _of_parameter(error: TemplateError, name: str) -> tuple[str, str]:
    where = dotted(error.path)
    if str(error.path[-1]).lower() == "default":
        text = f"Parameter '{name}' is invalid: Invalid default ({error.message}) ({where})"
        return InvalidDeclaration.code, text
    return error.code, f"Parameter '{name}' is invalid: {error.message} ({where})"


def _further(errors: Sequence[Mapping[str, str]]) -> str:
    """Return the text after the first error of a template, for clients that print the message only."""
    lines = [f"- {error['path']}: {error['message']}" for error in errors]
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in lines]
    count = "1 more error" if len(lines) == 1 else f"{len(lines)} more errors"
    return "\n".join(["", f"{count}:", *lines])


def _missing(error: Exception) -> Fault:
    return Fault(404, "EntityNotFound", str(error))


FAULTS: Mapping[type[Exception], Callable[[Exception], Fault]] = {
    TemplateError: _template,
    PropertyError: lambda error: Fault(400, "StackValidationFailed", f"Property error: {error}"),
    NotFound: _missing,
    AbsentType: lambda error: Fault(400, "ResourceTypeUnavailable", str(error)),
    UnknownType: _missing,
    NameTaken: lambda error: Fault(409, "StackExists", str(error)),
    ActionInProgress: lambda error: Fault(409, "ActionInProgress", str(error)),
    NotUpdatable: lambda error: Fault(400, "NotSupported", str(error)),
    Changing: lambda error: Fault(409, "ActionInProgress", str(error)),
    NotAvailable: lambda error: Fault(404, "ResourceNotAvailable", str(error)),
    AmbiguousId: lambda error: Fault(400, "PhysicalResourceIDAmbiguity", str(error)),
    TemplateNotFetched: lambda error: bad_request(f"Could not retrieve template: {error}"),
    NoContainers: lambda error: bad_request(str(error)),
    ContainerNotRead: lambda error: Fault(404, "NotFound", str(error)),
    ConfigInUse: lambda error: Fault(400, "InvalidRestrictedAction", str(error)),
    UnknownConfig: lambda error: Fault(400, "Invalid", str(error)),
    InvalidHook: lambda error: Fault(400, "InvalidBreakPointHook", str(error)),
    SignalNotSupported: lambda error: Fault(
        400, "ResourceActionNotSupported", f"signal is not supported for resource. {error}"
    ),
    NotSupported: lambda error: Fault(400, "NotSupported", str(error)),
    SignalError: lambda error: Fault(400, "StackValidationFailed", str(error)),
    TypeForbidden: lambda error: Fault(403, "Forbidden", str(error)),
    TypeUnavailable: lambda error: Fault(400, "ResourceTypeUnavailable", str(error)),
    DelegationRefused: lambda error: Fault(
        403, "Forbidden", f"Keystone does not let you hand your rights over to the stack: {error}"
    ),
    KeystoneUnavailable: lambda error: Fault(
        503, "ServiceUnavailable", f"Keystone is not available: {error}"
    ),
    HelperUnavailable: lambda error: Fault(
        503, "ServiceUnavailable", f"Expressions cannot be evaluated now: {error}"
    ),
    RowLocked: lambda error: Fault(
        503,
        "ServiceUnavailable",
        "Another transaction holds what this request would change; try again later.",
    ),
    TooSlow: lambda error: Fault(503, "ServiceUnavailable", "The database takes too long for this request."),
    SealError: lambda error: Fault(409, "SecretUnreadable", str(error)),
    TooMuchToRead: lambda error: bad_request(
        f"{error}, for this answer: ask for less, by a smaller limit or nested_depth, or without details",
        "RequestLimitExceeded",
    ),
    DamagedRow: lambda error: Fault(
        500,
        "DamagedRow",
        f"This release cannot read what is stored; operators find the request in the log. {error}",
    ),
    Unavailable: lambda error: Fault(503, "ServiceUnavailable", "The database is not available."),
}
"""The answer to each error of the layers below."""


def fault_of(error: Exception) -> Fault | None:
    """Return the answer to an error; None: the error is not the user's."""
    if isinstance(error, Fault):
        return error
    for kind, make in FAULTS.items():
        if isinstance(error, kind):
            return make(error)
    return None
