"""Calls of one service of the cloud, and the one table of the meaning of its errors to a step.

A reason carries the service, the status code, the service's own text, and its request id.
"""

import contextlib
import json
import os.path
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter
from requests import Response

from ...shapes import Json, JsonMap
from ..contract import CloudCalls, OverQuota, PermanentError, RetryableError
from ..list_pages import EndlessList, ListReader

TAG = re.compile(r"<title>.*?</title>|<[^>]*>", re.DOTALL)
QUOTA = re.compile(r"quota|over ?limit|maximum number of \w+ exceeded", re.IGNORECASE)
"""The words of a refusal for a quota; Nova has the last ones for a quota of ports at Neutron."""
MOST_TEXT = 1000
"""Characters of a service's text that become part of a reason."""
LONGEST_ECHO = 60
"""Characters of a value of the request that a service may repeat in its text; a longer value is left out."""
MOST_USERS = 5
"""Users of a thing that a reason names."""
QUOTA_PAUSE = 20.0
"""Seconds until a step is retried that met a quota: others have to delete something first."""
LATE_CALL = 5.0
"""Seconds for which a service may still carry out a call whose answer was lost."""
TOO_LONG = 3600.0
"""Seconds above which a service's Retry-After is not believed."""
BUSY = frozenset({429, 500, 502, 503, 504})
"""Status codes after which the same request may succeed later."""


class RemoteNotFound(PermanentError):
    """The service does not know the thing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, kind="NotFound")


class Conflict(PermanentError):
    """The thing's state, or another thing, forbids the call now."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, kind="Conflict")


class BadRequest(PermanentError):
    """The service takes the call for wrong; some services say so of a thing that is in use."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, kind="BadRequest")


class UnreadableAnswer(RetryableError):
    """The service, or a proxy in front of it, has answered something that its API does not know.

    A later answer may be right: half an answer and a proxy's page come with a success, too.
    """

    def __init__(self, service: str, problem: str) -> None:
        super().__init__(f"{service}: the answer cannot be read: {problem[:MOST_TEXT]}")


class RemoteMap(dict[str, typing.Any]):
    """An object of an answer.  A field that it lacks is an error of the service, not of the type."""

    def __missing__(self, name: str) -> typing.NoReturn:
        raise UnreadableAnswer("a service", f"it lacks the field {name}")


def object_of(value: Json, name: str = "") -> JsonMap:
    """Return an object of an answer, or the object that is a field of it.

    :param name: the field; empty: the value itself is the object.
    :raises UnreadableAnswer: it is no object, or lacks the field.
    """
    if name and isinstance(value, Mapping):
        value = value[name]
    if not isinstance(value, Mapping):
        raise UnreadableAnswer("a service", f"{name or 'the answer'} is not an object")
    return value


def objects_of(value: JsonMap, name: str) -> list[JsonMap]:
    """Return the objects of a list that is a field of an answer's object; none where the field is null.

    :raises UnreadableAnswer: the field is missing, or no list of objects.
    """
    return [] if value[name] is None else _list_of(value[name], Mapping, f"{name} is not a list of objects")


def first_of(value: JsonMap, name: str) -> JsonMap:
    """Return the first object of a list that is a field of an answer's object.

    :raises UnreadableAnswer: the field is missing, no list of objects, or an empty one.
    """
    objects = objects_of(value, name)
    if not objects:
        raise UnreadableAnswer("a service", f"{name} is empty")
    return objects[0]


def texts_of(value: JsonMap, name: str) -> list[str]:
    """Return the texts of a list that is a field of an answer's object.

    :raises UnreadableAnswer: the field is missing, or no list of texts.
    """
    return _list_of(value[name], str, f"{name} is not a list of texts")


def _list_of(members: Json, kind: type, problem: str) -> list[typing.Any]:
    if not isinstance(members, list) or not all(isinstance(member, kind) for member in members):
        raise UnreadableAnswer("a service", problem)
    return [*members]


class Service:
    """Calls of one service with the rights of the stack's user; what they raise, a step may raise.

    :param adapter: the service's endpoint, with its version.
    :param checkpoint: called between the pages of a list; raises whatever is to end the step.
    """

    def __init__(self, adapter: Adapter, checkpoint: Callable[[], None] = lambda: None) -> None:
        self._adapter = adapter
        self._checkpoint = checkpoint
        self.name = str(adapter.service_type)

    def get(self, path: str, **query: str | int | bool | Sequence[str]) -> Json:
        """Return the body of the answer to a GET, an object or a list.

        :raises RemoteNotFound, PermanentError, RetryableError: the errors of `step_error`.
        """
        answer = self._request("GET", path, params=query)
        if not isinstance(answer, Mapping | list):
            raise UnreadableAnswer(self.name, "it is neither an object nor a list")
        return answer

    def act_by_get(self, path: str, **query: str | int | bool) -> None:
        """Let the service do something that it takes a GET for, and whose answer says nothing.

        :raises RemoteNotFound, PermanentError, RetryableError: the errors of `step_error`.
        """
        self._send("GET", path, params=query)

    def get_as(self, media_type: str, path: str) -> Json:
        """Return JSON that a user has stored at the service as another media type.

        :raises ValueError: the answer is no JSON.
        :raises RemoteNotFound, PermanentError, RetryableError: the errors of `step_error`.
        """
        answer = self._send("GET", path, headers={"Accept": media_type})
        return answer.json() if answer.content else None

    def head(self, path: str) -> Mapping[str, str]:
        """Return the headers of the answer to a HEAD, their names in lower case.

        :raises RemoteNotFound, PermanentError, RetryableError: the errors of `step_error`.
        """
        return {name.lower(): value for name, value in self._send("HEAD", path).headers.items()}

    def get_text(self, path: str, media_type: str = "*/*") -> str:
        """Return the body of the answer to a GET as text.

        :raises RemoteNotFound, PermanentError, RetryableError: the errors of `step_error`.
        """
        return str(self._send("GET", path, headers={"Accept": media_type}).text)

    def put_text(self, path: str, text: str, media_type: str = "text/plain") -> None:
        """Send a text by a PUT.

        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        self._send("PUT", path, data=text.encode(), headers={"Content-Type": media_type})

    def send_text(self, method: str, path: str, text: str, media_type: str = "text/plain") -> JsonMap:
        """Return the object that the service answers to a text.

        :param method: POST or PUT.
        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        headers = {"Content-Type": media_type}
        with _late_call(method):
            return object_of(self._request(method, path, data=text.encode(), headers=headers))

    def set_headers(self, path: str, headers: Mapping[str, str], *, creates: bool = False) -> None:
        """Send headers without a body: by a POST to what there is, or by a PUT, which creates it.

        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        self._send("PUT" if creates else "POST", path, headers=dict(headers))

    def address(self) -> str:
        """Return the address of the service, without a slash at its end."""
        return str(self._adapter.get_endpoint()).rstrip("/")

    def post(self, path: str, body: Json, **headers: str) -> Json:
        """Return the body of the answer to a POST, None if there is none.

        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        with _late_call("POST"):
            return self._request("POST", path, json=body, headers=headers)

    def put(self, path: str, body: Json, *, creates: bool = False, **headers: str) -> Json:
        """Return the body of the answer to a PUT, None if there is none.

        :param creates: whether the request is not sent again where its connection ends: the first one may
            have been received, and the service refuses a second one.
        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        once = {"connect_retries": 0, "status_code_retries": 0} if creates else {}
        return self._request("PUT", path, json=body, headers=headers, **once)

    def patch(self, path: str, body: Json, **headers: str) -> Json:
        """Return the body of the answer to a PATCH, None if there is none.

        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        return self._request("PATCH", path, json=body, headers=headers)

    def delete(self, path: str, **query: str | int | bool) -> None:
        """Delete a thing.

        :raises RemoteNotFound, Conflict, PermanentError, RetryableError: the errors of `step_error`.
        """
        self._request("DELETE", path, params=query)

    def list_all(self, path: str, items: str, **query: str | int | bool | Sequence[str]) -> list[Json]:
        """Return all members of a collection, page by page, within the bounds of list_pages.py.

        :param items: key of the members in an answer; links to further pages are ``ITEMS_links`` or ``next``.
        :raises PermanentError, RetryableError: the errors of `step_error`.
        :raises Cancelled: the step is to end.
        """

        def read(address: str) -> tuple[JsonMap, int]:
            answer = self._send("GET", address, **({"params": query} if address == path else {}))
            page = self._json(answer)
            if not isinstance(page, Mapping):
                raise UnreadableAnswer(self.name, "it is not an object")
            return page, len(answer.content)

        def following(answer: JsonMap) -> str | None:
            return _next_page(answer, items)

        reader = ListReader(read, following, self._checkpoint, self.address)
        try:
            return [member for answer in reader.pages(path) for member in objects_of(answer, items)]
        except EndlessList as error:
            raise UnreadableAnswer(self.name, str(error)) from error

    def _request(self, method: str, path: str, **arguments: typing.Any) -> Json:
        return self._json(self._send(method, path, **arguments))

    def _json(self, answer: Response) -> Json:
        try:
            return json.loads(answer.content, object_hook=RemoteMap) if answer.content else None
        except (ValueError, RecursionError) as error:
            raise UnreadableAnswer(self.name, f"it is not JSON: {error}") from error

    def _send(self, method: str, path: str, **arguments: typing.Any) -> Response:
        if headers := arguments.get("headers"):
            arguments["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            answer: Response = self._adapter.request(path, method, **arguments)
        except exceptions.HttpError as error:
            raise step_error(self.name, error) from error
        except exceptions.ClientException as error:
            raise _unreached(self.name, error) from error
        return answer


@contextlib.contextmanager
def _late_call(method: str) -> Iterator[None]:
    """Let a creation be repeated late: the service may carry it out yet.  A repetition searches first."""
    try:
        yield
    except RetryableError as error:
        # A refusal for a quota is an answer: nothing of it is carried out later.
        if method != "POST" or isinstance(error, OverQuota):
            raise
        raise RetryableError(str(error), after=error.after, at_least=LATE_CALL) from error


def _next_page(answer: JsonMap, items: str) -> str | None:
    """Return the address of the next page, None for the last one: the services have two forms of it."""
    links = f"{items}_links"
    for link in objects_of(answer, links) if links in answer else ():
        if link["rel"] == "next":
            return str(link["href"])
    following = answer.get("next")  # Glance's form: a path from the root of the service.
    return following.removeprefix("/v2") if isinstance(following, str) and answer[items] else None


def _unreached(service: str, error: exceptions.ClientException) -> PermanentError | RetryableError:
    if isinstance(error, exceptions.EndpointNotFound | exceptions.CatalogException):
        return PermanentError(f"{service}: the cloud has no such service ({error})", kind="EndpointNotFound")
    if isinstance(error, exceptions.ConnectionError | exceptions.DiscoveryFailure):
        return RetryableError(f"{service}: no connection: {str(error)[:MOST_TEXT]}")
    return PermanentError(f"{service}: {type(error).__name__}: {str(error)[:MOST_TEXT]}")


def step_error(service: str, error: exceptions.HttpError) -> PermanentError | RetryableError:
    """Return the step's error for a service's refusal: the table of the module."""
    status = error.http_status
    text = _text(error)
    reason = f"{service} {status}: {text}"
    if error.request_id:
        reason += f" [{error.request_id}]"
    if status in BUSY:
        return RetryableError(reason, after=_retry_after(error))
    if _is_quota(status, error):
        return OverQuota(f"over the quota: {reason}", after=QUOTA_PAUSE)
    if status == 400:
        return BadRequest(reason)
    if status == 404:
        return RemoteNotFound(reason)
    if status == 409:
        return Conflict(reason)
    return PermanentError(reason, kind=KINDS.get(status, "ResourceFailure"))


KINDS: Mapping[int, str] = {
    401: "Unauthorized",
    403: "Forbidden",
    405: "MethodNotAllowed",
    413: "OverLimit",
}
"""By status code the kind of failure, which is shown before the reason."""


def in_use(error: PermanentError, users: Sequence[str] = ()) -> RetryableError:
    """Return the error of a change or deletion that the service refuses as long as something is in use.

    It names no pause: that of a retry grows, so that the retries last for minutes.

    :param users: the users of the thing, as far as the service names them.
    """
    names = [*users[:MOST_USERS], *([f"{len(users) - MOST_USERS} more"] if len(users) > MOST_USERS else [])]
    return RetryableError(f"still in use{' by ' if names else ''}{', '.join(names)}: {error}")


def _is_quota(status: int, error: exceptions.HttpError) -> bool:
    """Return whether the status stands for a quota: Nova answers 403, Neutron 409, Cinder and Glance 413."""
    if status not in (403, 409, 413):
        return False
    return QUOTA.search(_body_text(error)) is not None


def _retry_after(error: exceptions.HttpError) -> float | None:
    header = error.response.headers.get("Retry-After", "") if error.response is not None else ""
    return min(float(header), TOO_LONG) if header.isdecimal() else None


def _body_text(error: exceptions.HttpError) -> str:
    return error.response.text if error.response is not None else ""


def _text(error: exceptions.HttpError) -> str:
    """Return the service's own text; every service puts it into another place of its answer."""
    try:
        text = _innermost(error.response.json()) if error.response is not None else None
    except ValueError:
        text = None
    if text is None and error.response is not None and error.response.text.lstrip().startswith("<"):
        text = " ".join(TAG.sub(" ", error.response.text).split())  # Glance answers with a page.
    text = str(text or error.details or error.message or type(error).__name__)
    request = error.response.request if error.response is not None else None
    body = request.body if request is not None else None
    return own_words(text, body if isinstance(body, str | bytes) else None)[:MOST_TEXT]


def own_words(text: str, body: str | bytes | None) -> str:
    """Return a service's text without the long values that it repeats from the request.

    Nova writes ``Invalid input for field/attribute user_data. Value: …``, with all of the value.

    :param body: the body of the request; None: it has none.
    """
    if not body:
        return text
    try:
        values = list(_long_texts(json.loads(body)))
    except ValueError:
        values = [body.decode(errors="replace") if isinstance(body, bytes) else body]
    for value in values:
        # Within a map or a list a service writes a value as Python or JSON does.
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1]):
            start = 0
            while len(form) > LONGEST_ECHO and (start := text.find(form[:LONGEST_ECHO], start)) >= 0:
                length = len(os.path.commonprefix([text[start : start + len(form)], form]))
                text = f"{text[:start]}…{text[start + length :]}"
    return text


def _long_texts(value: Json) -> Iterator[str]:
    """Yield the texts in a value that are longer than a service may repeat."""
    if isinstance(value, str) and len(value) > LONGEST_ECHO:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _long_texts(item)


def _innermost(body: Json) -> str | None:
    """Return the text of an error's body.

    Nova and Cinder answer ``{KIND: {message}}``, Neutron ``{NeutronError: {type, message}}``, Octavia
    ``{faultstring}``, Keystone ``{error: {message}}``.
    """
    if not isinstance(body, dict):
        return None
    for name in ("message", "faultstring", "description", "detail"):
        if isinstance(body.get(name), str):
            return str(body[name])
    texts = (_innermost(part) for part in body.values() if isinstance(part, dict))
    return next((text for text in texts if text), None)


@dataclass(frozen=True)
class Interface:
    """The interface of a service that the types speak.

    :ivar version: its major version.
    :ivar microversion: the newest microversion that is used; an older service gets its own newest one.
        None: the service has none.
    """

    version: str
    microversion: str | None = None


INTERFACES: Mapping[str, Interface] = {
    "alarm": Interface("2"),
    "application-container": Interface("1", "1.36"),
    "baremetal": Interface("1", "1.78"),
    "block-storage": Interface("3", "3.60"),
    "compute": Interface("2.1", "2.96"),
    "container-infrastructure-management": Interface("1"),
    "database": Interface("1"),
    "dns": Interface("2"),
    "identity": Interface("3"),
    "image": Interface("2"),
    "key-manager": Interface("1"),
    "load-balancer": Interface("2"),
    "message": Interface("2"),
    "network": Interface("2"),
    "object-store": Interface("1"),
    "orchestration": Interface("1"),
    "reservation": Interface("1"),
    "shared-file-system": Interface("2", "2.60"),
    "workflow": Interface("2"),
}
"""By the service's type in the service catalog."""


def service_of(
    context: CloudCalls,
    service: str,
    microversion: str | None = None,
    interface: Interface | None = None,
    headers: Mapping[str, str] | None = None,
) -> Service:
    """Return the calls of a service for a step.

    :param microversion: the newest microversion to be used; None: that of the interface.
    :param interface: the interface of a service that is not in `INTERFACES`; None: the service's entry there.
    :param headers: headers of all calls.
    :raises PermanentError: the cloud has no such service, or the stack has no credential.
    :raises RetryableError: Keystone or the service is unavailable.
    """
    interface = interface or INTERFACES[service]
    adapter = context.adapter(service, interface.version, microversion or interface.microversion)
    if headers:
        adapter.additional_headers = {**adapter.additional_headers, **headers}
    return Service(adapter, context.checkpoint)
