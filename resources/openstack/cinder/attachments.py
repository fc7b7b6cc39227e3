"""Calls that attach volumes to servers and detach them; Nova and Cinder both know of an attachment."""

from ....shapes import Json, JsonMap
from ...contract import PermanentError, RetryableError, StepContext
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of

ATTACHING = ("reserved", "attaching")
"""States of a volume while one of the services attaches it to a server."""


def find_attachment(context: StepContext, server: str, volume: str) -> Json:
    """Return the attachment of a volume to a server, None if there is none."""
    try:
        answer = service_of(context, "compute").get(f"{_path(server)}/{volume}")
    except RemoteNotFound:
        return None
    return answer["volumeAttachment"]


def attach(context: StepContext, server: str, volume: str, device: str | None) -> Json:
    """Start to attach a volume; return the attachment.

    :raises RetryableError: the state of the server or of the volume forbids it now.
    :raises PermanentError: the service refuses the attachment; an earlier call may have attached it.
    """
    body = {"volumeId": volume, **({"device": device} if device else {})}
    try:
        return service_of(context, "compute").post(_path(server), {"volumeAttachment": body})[
            "volumeAttachment"
        ]
    except Conflict as error:
        raise in_use(error) from error
    except RemoteNotFound:
        raise
    except PermanentError as error:
        # Nova refuses a volume in the wrong state by 400; an earlier step may have started to attach it.
        if (status := _status(context, volume)) not in (*ATTACHING, "detaching"):
            raise
        raise RetryableError(f"the volume is {status}: {error}") from error


def ensure_attached(context: StepContext, server: str, volume: str, device: str | None) -> None:
    """Start to attach a volume that was attached before, unless an earlier call has.

    :raises RetryableError, PermanentError: the errors of `attach`.
    """
    try:
        if find_attachment(context, server, volume) is None:
            attach(context, server, volume, device)
    except PermanentError:
        if find_attachment(context, server, volume) is None:
            raise


def detach(context: StepContext, server: str, volume: str) -> bool:
    """Start to detach a volume; return whether there was something to detach.

    :raises RetryableError: the server does not release it in its present state.
    """
    try:
        service_of(context, "compute").delete(f"{_path(server)}/{volume}")
    except RemoteNotFound:
        return False
    except Conflict as error:
        raise in_use(error) from error
    except PermanentError as error:
        status = _status(context, volume)
        if status in ATTACHING:
            raise RetryableError(f"the volume is {status}: {error}") from error
        if status != "detaching":  # An earlier step has begun.
            raise
    return True


def has_server(volume: JsonMap, server: str | None) -> bool:
    """Return whether the block storage service knows that the server has the volume."""
    return volume["status"] == "in-use" and any(item["server_id"] == server for item in volume["attachments"])


def is_attached(context: StepContext, server: str, volume: JsonMap) -> bool:
    """Return whether one of the services knows of an attachment, or works on its end."""
    if any(item["server_id"] == server for item in volume["attachments"]) or volume["status"] == "detaching":
        return True
    return find_attachment(context, server, str(volume["id"])) is not None


def get_volume(service: Service, volume: str) -> JsonMap:
    """Return a volume as the block storage service has it now.

    :raises RemoteNotFound: the volume does not exist.
    """
    answer: JsonMap = service.get(f"/volumes/{volume}")["volume"]
    return answer


def _status(context: StepContext, volume: str) -> str:
    return str(get_volume(service_of(context, "block-storage"), volume)["status"])


def _path(server: str) -> str:
    return f"/servers/{server}/os-volume_attachments"
