"""One server at the compute service: its states, the calls that change it, and its snapshots."""

from collections.abc import Callable, Iterable

from ....shapes import Json, JsonMap
from ...contract import PermanentError, ResourceView, StepContext, physical_name
from ..marks import PREFIX, mark_of
from ..names import is_id
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of
from ..statuses import StatusMeaning

IMAGE = "snapshot_image_id"
"""Key of the image's id in the data of a snapshot, as in Heat."""
BAD_IMAGES = ("error", "killed", "deleted", "pending_delete")
UPLOADING = ("image_snapshot", "image_snapshot_pending", "image_pending_upload", "image_uploading")
TASK_STATE = "OS-EXT-STS:task_state"
DELETING = ("deleting", "soft-deleting")
"""Task states of a server whose deletion has begun."""
DETACHED_AGAIN = 5.0
"""Seconds after which an interface that is still there is detached once more."""
PENDING = (
    *("BUILD", "HARD_REBOOT", "PASSWORD", "REBOOT", "RESCUE", "RESIZE"),
    *("REVERT_RESIZE", "SHUTOFF", "SUSPENDED", "VERIFY_RESIZE"),
)
"""States from which a server becomes ACTIVE again, by itself or by a user."""
RUNS = "ACTIVE"
STOPPED = "SHUTOFF"


class ServerStatus(StatusMeaning):
    """The meaning of a server's status: ACTIVE is good, and one that is not listed is unknown."""

    def of(self, server: JsonMap) -> str:
        """Return the status in capitals; some clouds append more in parentheses."""
        return super().of(server).split("(")[0]

    def is_pending(self, server: JsonMap, problem: Callable[[JsonMap], str]) -> bool:
        """Return whether the server is on its way to ACTIVE.

        :raises PermanentError: the server is in a bad state, or in an unknown one.
        """
        status = self.of(server)
        if super().is_pending(server, problem) or not status:
            return True
        if status not in self.good:
            raise unknown_status("Server is not active", status)
        return False


SERVER_STATUS = ServerStatus(pending=PENDING, good=(RUNS,))


def fault_of(server: JsonMap) -> str:
    """Return the service's message and code of a server's fault."""
    fault = server.get("fault") or {}
    return f"Message: {fault.get('message', 'Unknown')}, Code: {fault.get('code', 'Unknown')}"


def asked_for(properties: JsonMap) -> str:
    """Return what a new server asks of the scheduler, in words."""
    hints = properties.get("scheduler_hints") or {}
    values = {
        "flavor": properties.get("flavor"),
        "image": properties.get("image"),
        "availability zone": properties.get("availability_zone"),
        "server group": hints.get("group"),
    }
    return ", ".join(f"{name} {value}" for name, value in values.items() if value)


def unknown_status(failure: str, status: str) -> PermanentError:
    """Return the error of a server in a state in which the action cannot end well."""
    return PermanentError(
        f'{failure} - Unknown status {status} due to "Unknown"', kind="ResourceUnknownStatus"
    )


def is_settled(server: JsonMap) -> bool:
    """Return whether the service works on nothing of the server."""
    return server.get(TASK_STATE) is None and SERVER_STATUS.of(server) in (RUNS, STOPPED)


def users_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags without the mark, which is one of them."""
    return [tag for tag in tags if not is_mark(tag)]


def is_mark(tag: str) -> bool:
    """Return whether a tag is a mark."""
    return tag.startswith(PREFIX) and is_id(tag.removeprefix(PREFIX))


def without_mark(server: JsonMap) -> dict[str, Json]:
    """Return the service's view of the server, without the mark."""
    return {**server, "tags": users_tags(server["tags"])} if "tags" in server else dict(server)


class ServerCalls:
    """Calls of the compute service for one server.

    :ivar service: requests to the compute service.
    :ivar id: id of the server.
    """

    def __init__(self, service: Service, server: str) -> None:
        self.service = service
        self.id = server

    @classmethod
    def of(cls, target: ResourceView, context: StepContext) -> "ServerCalls":
        """Return the calls for a resource's server."""
        return cls(service_of(context, "compute"), str(target.physical_id))

    @property
    def path(self) -> str:
        """The server's path."""
        return f"/servers/{self.id}"

    def get(self) -> JsonMap:
        """Return the server as it is now.

        :raises RemoteNotFound: the server does not exist.
        """
        server: JsonMap = self.service.get(self.path)["server"]
        return server

    def delete(self) -> None:
        """Start to delete the server; a missing one is ignored."""
        try:
            self.service.delete(self.path)
        except RemoteNotFound:
            return

    def put(self, below: str, body: Json) -> None:
        """Change the server, or what is below it."""
        self.service.put(f"{self.path}{below}", body)

    def act(self, action: str, body: Json, *, ignore_conflict: bool = False) -> None:
        """Start an action of the server.

        :param ignore_conflict: whether a refusal is ignored, as the caller reads the state again.
        :raises RetryableError: the server's state forbids it now.
        """
        try:
            self.service.post(f"{self.path}/action", {action: body})
        except Conflict as error:
            if not ignore_conflict:
                raise in_use(error) from error

    def detach(self, port: str) -> None:
        """Start to detach an interface; a missing one is ignored.

        :raises RetryableError: the server is busy.
        """
        try:
            self.service.delete(f"{self.path}/os-interface/{port}")
        except RemoteNotFound:
            return
        except Conflict as error:
            raise in_use(error) from error

    def detach_within(self, port: str, context: StepContext) -> None:
        """Start to detach an interface, once in some seconds however often the step is repeated meanwhile.

        The service works on it behind its answer, and may lose it.

        :raises RetryableError: the server is busy.
        """
        context.shared(("detach", self.id, port), lambda: self.detach(port), DETACHED_AGAIN)

    def attach(self, port: str, tag: str | None = None) -> None:
        """Attach a port.

        :raises RetryableError: the server is busy.
        """
        body = {"port_id": port, **({"tag": tag} if tag else {})}
        try:
            self.service.post(f"{self.path}/os-interface", {"interfaceAttachment": body})
        except Conflict as error:
            raise in_use(error) from error


class ServerSnapshot:
    """The image of one snapshot; it bears the mark of the snapshot's key in its property ``stoker``."""

    def __init__(self, target: ResourceView, context: StepContext) -> None:
        self._target = target
        self._images = service_of(context, "image")
        self._mark = mark_of(target.key)

    def start(self, compute: Service) -> str:
        """Start to make the image, and return its id; a repetition finds the one that is there.

        :raises RetryableError: the server is busy.
        """
        if self._target.attempt > 1 and (images := self._marked_images()):
            return str(images[0]["id"])
        name = physical_name(self._target.stack.name, self._target.name, self._target.key)
        body = {"name": name, "metadata": {"stoker": self._mark}}
        try:
            answer = compute.post(f"/servers/{self._target.physical_id}/action", {"createImage": body})
        except Conflict as error:
            raise in_use(error) from error
        return str(answer["image_id"])

    def is_complete(self, image: str, server: JsonMap) -> bool:
        """Return whether the image is complete, and the server free for other actions.

        :raises PermanentError: the image is in a bad state, or gone.
        """
        status = str(self._images.get(f"/images/{image}")["status"]).lower()
        if status in BAD_IMAGES:
            raise PermanentError(f"image {image} of the snapshot is in status {status}", kind="Error")
        return status == "active" and server.get(TASK_STATE) not in UPLOADING

    def delete(self) -> None:
        """Delete the image; a missing one is ignored."""
        image_id: Json = self._target.data.get(IMAGE)
        for image in {str(item["id"]) for item in self._marked_images()} | (
            {str(image_id)} if image_id else set()
        ):
            try:
                self._images.delete(f"/images/{image}")
            except RemoteNotFound:
                continue
            except Conflict as error:
                raise in_use(error) from error

    def _marked_images(self) -> list[JsonMap]:
        images = self._images.list_all("/images", "images", stoker=self._mark)
        return [image for image in images if image.get("stoker") == self._mark]
