"""OS::Heat::SwiftSignalHandle and OS::Heat::SwiftSignal: signals that are objects of Swift.

A handle is an object in a container that has the id of the stack as its name.  Its address carries a
signature of Swift's, with which anybody can write the object.  The container keeps all versions of an object,
so each signal is one version; the first one says that none has come yet.  The layout is Heat's.
"""

import hashlib
import hmac
import json
import secrets
import urllib.parse
from collections.abc import Iterator

from ....shapes import Json, JsonMap
from ....template.constraints import Range
from ...contract import (
    Attribute,
    Done,
    PermanentError,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    physical_name,
)
from ..names import quoted
from ..polling import pause
from ..service import Conflict, RemoteNotFound, Service, service_of

OBJECTS = "object-store"
KEY_HEADER = "x-account-meta-temp-url-key"
WAITING = "in progress"
"""The object before the first signal."""
VALID_UNTIL = 2147483647 - 60
"""The last moment of 32 bits, in which some clients count, less a minute: the address does not expire."""
VERSIONS = 100
"""Versions of a handle that one step deletes."""
LONGEST_REASONS = 4096


class SwiftSignalHandle(ResourceType):
    """An object to which signals are written."""

    type_name = "OS::Heat::SwiftSignalHandle"
    description = "A signal handle: a Swift object that takes the signals for a SwiftSignal."
    support_status = SupportStatus(version="2014.2")
    uses_credentials = True
    service = OBJECTS
    identity = "the name of the object"
    attributes_schema = {
        "token": Attribute("Token; always empty, because the URL needs none.", "string"),
        "endpoint": Attribute("URL to which a client writes its signal by PUT.", "string", sensitive=True),
        "curl_cli": Attribute(
            "Beginning of a command line that sends a signal. Add --data-binary "
            '\'{"status": "SUCCESS"}\', or FAILURE for a failure.',
            "string",
            sensitive=True,
        ),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Make the object, unless an earlier step has, and its address."""
        service = service_of(context, OBJECTS)
        name = target.physical_id or target.physical_name
        container = f"/{target.stack.id}"
        service.set_headers(container, {"X-Versions-Location": target.stack.id}, creates=True)
        path = f"{container}/{quoted(name)}"
        if not _exists(service, path):
            service.put_text(path, WAITING)
        return Done(physical_id=name, data={"endpoint": _signed(service, path)})

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the object with its versions, and the container after the last handle of the stack."""
        return self.check_delete_complete(target, {}, context)

    def check_delete_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Delete more versions: each deletion brings the one before."""
        if target.physical_id is None:
            return Done()
        service = service_of(context, OBJECTS)
        container = f"/{target.stack.id}"
        try:
            for _ in range(VERSIONS):
                context.checkpoint()
                service.delete(f"{container}/{quoted(target.physical_id)}")
        except RemoteNotFound:
            _delete_container(service, container)
            return Done()
        return Poll(progress={}, after=0.0)

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the object is there.

        :raises RemoteNotFound: the object is gone.
        """
        service_of(context, OBJECTS).head(f"/{target.stack.id}/{quoted(str(target.physical_id))}")
        return Done()

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the name of the object, if it exists."""
        name = physical_name(target.stack.name, target.name, key)
        path = f"/{target.stack.id}/{quoted(name)}"
        return name if _exists(service_of(context, OBJECTS), path) else None

    def reference_id(self, target: ResourceView) -> Json:
        """Return the address, which is a secret."""
        return target.data.get("endpoint", target.name)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the address, and a command line with it."""
        endpoint = target.data.get("endpoint")
        return {"token": "", "endpoint": endpoint, "curl_cli": f"curl -i -X PUT '{endpoint}'"}


class SwiftSignal(ResourceType):
    """A condition that a number of signals meets."""

    type_name = "OS::Heat::SwiftSignal"
    description = "A wait condition for signals to a SwiftSignalHandle."
    support_status = SupportStatus(version="2014.2")
    uses_credentials = True
    service = OBJECTS
    identity = "nothing is made"
    properties_schema = {
        "handle": Property(
            "string", "Reference of the signal handle, by get_resource.", required=True, sensitive=True
        ),
        "timeout": Property(
            "number",
            "Timeout for the signals, in seconds.",
            required=True,
            constraints=(Range(minimum=1, maximum=43200),),
        ),
        "count": Property(
            "integer",
            "Number of success signals to wait for.",
            default=1,
            constraints=(Range(minimum=1, maximum=1000),),
        ),
    }
    attributes_schema = {
        "data": Attribute("Data of the signals, as JSON text: a map by signal id.", "string")
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Start to wait.

        :raises PermanentError: the property is not the address of a handle of the stack.
        """
        _object_of(target)
        since = context.now()
        progress = {"since": since, "until": since + target.properties["timeout"], "seen": 0}
        return self.check_create_complete(target, progress, context)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Read the signals, if there is another one; signals are read before the clock.

        :raises PermanentError: there is a signal of failure, or one that is malformed, or the wait timed out.
        """
        service = service_of(context, OBJECTS)
        names = _versions(service, target.stack.id, _object_of(target))
        seconds = progress["until"] - context.now()
        seen = progress["seen"]
        if len(names) != seen or seconds <= 0:
            signals = list(_signals(service, target.stack.id, names))
            # Where the list has changed meanwhile the last object may be a later one, and one is lacking.
            if seconds <= 0 or _versions(service, target.stack.id, _object_of(target)) == names:
                if (done := _ended(signals, target.properties["count"], seconds)) is not None:
                    return done
                seen = len(names)
        after = min(pause(progress["since"], context.now()), max(seconds, 0.0))
        return Poll(progress={**progress, "seen": seen}, after=after)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Return Done: there is no thing that could be missing."""
        return Done()

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the data of all signals by id, as JSON text."""
        return {"data": target.data.get("signals", "null")}


def _ended(signals: list[JsonMap], count: int, seconds: float) -> Step | None:
    """Return the end of the wait; None: it is not over.

    :param seconds: seconds that are left.
    :raises PermanentError: there is a signal of failure, or the wait timed out.
    """
    statuses = [signal["status"] for signal in signals]
    for status in statuses:
        if status not in ("SUCCESS", "FAILURE"):
            raise PermanentError(f"Unknown status: {status}", kind="Error")
    if "FAILURE" in statuses:
        raise PermanentError(_reasons(signals, "FAILURE"), kind="SwiftSignalFailure")
    if len(statuses) >= count:
        return Done(data={"signals": json.dumps({str(item["id"]): item["data"] for item in signals})})
    if seconds <= 0:
        reasons = f" - {_reasons(signals, 'SUCCESS')}" if signals else ""
        raise PermanentError(f"{len(signals)} of {count} received{reasons}", kind="SwiftSignalTimeout")
    return None


def _reasons(signals: list[JsonMap], status: str) -> str:
    return ";".join(str(item["reason"]) for item in signals if item["status"] == status)[:LONGEST_REASONS]


def _versions(service: Service, container: str, name: str) -> list[str]:
    """Return the names of all versions of a handle's object, the oldest first.

    Swift names a version by the object's name with its length before it, and the moment behind it.
    """
    try:
        listed = service.get(f"/{container}", format="json") or []
    except RemoteNotFound:
        return []
    names = [str(entry["name"]) for entry in listed]
    versions = sorted(each for each in names if each.startswith(f"{len(name):03x}{name}/"))
    return [*versions, *(each for each in names if each == name)]


def _signals(service: Service, container: str, names: list[str]) -> Iterator[JsonMap]:
    """Return the signals, complete; one replaces an earlier one with the same id.

    :raises PermanentError: a signal is no JSON.
    """
    signals: dict[str, JsonMap] = {}
    for name in names:
        try:
            text = service.get_text(f"/{container}/{urllib.parse.quote(name)}")
        except RemoteNotFound:
            continue
        if text == WAITING:
            continue
        try:
            details = json.loads(text or "{}")
        except ValueError as error:
            raise PermanentError(f"Failed to parse JSON data: {text[:200]}", kind="Error") from error
        if not isinstance(details, dict):
            raise PermanentError(f"Failed to parse JSON data: {text[:200]}", kind="Error")
        signal_id = details.get("id", len(signals) + 1)
        reason = f"Signal {signal_id} received"
        signals.pop(str(signal_id), None)
        signals[str(signal_id)] = {
            "data": None,
            "reason": reason,
            "status": "SUCCESS",
            **details,
            "id": signal_id,
        }
    yield from signals.values()


def _object_of(target: ResourceView) -> str:
    """Return the name of the object of the handle whose address the property is.

    :raises PermanentError: it is none of this stack.
    """
    path = urllib.parse.urlsplit(target.properties["handle"]).path
    parts = path.split("/", 4)
    if len(parts) < 5 or parts[1] != "v1" or not parts[4].strip("/"):
        invalid = "Swift TempURL path"
    elif parts[3] != target.stack.id:
        invalid = "container name"
    else:
        return urllib.parse.unquote(parts[4])
    text = f'"{path}" is not a valid SwiftSignalHandle.  The {invalid} is invalid'
    raise PermanentError(text, kind="ValueError")


def _signed(service: Service, path: str) -> str:
    """Return the address at which anybody can write an object; the account gets a key, if it has none."""
    key = service.head("").get(KEY_HEADER)
    if key is None:
        service.set_headers("", {KEY_HEADER: secrets.token_hex(16)})
        key = service.head("")[KEY_HEADER]
    root = urllib.parse.urlsplit(service.address())
    full = f"{root.path}{path}"
    text = f"PUT\n{VALID_UNTIL}\n{urllib.parse.unquote(full)}"
    signature = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{root.scheme}://{root.netloc}{full}?temp_url_sig={signature}&temp_url_expires={VALID_UNTIL}"


def _exists(service: Service, path: str) -> bool:
    try:
        service.head(path)
    except RemoteNotFound:
        return False
    return True


def _delete_container(service: Service, container: str) -> None:
    try:
        service.delete(container)
    except (RemoteNotFound, Conflict):
        return  # Other handles of the stack have their objects there.
