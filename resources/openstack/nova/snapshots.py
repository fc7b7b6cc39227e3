"""Snapshots of a server: images that the compute service makes of it."""

from collections.abc import Mapping

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView
from ...errors import PermanentError
from ..marks import mark_of
from ..service import Conflict, RemoteNotFound, Service, in_use, service_of
from .states import TASK_STATE

IMAGE = "snapshot_image_id"
"""Key of the image's id in the data of a snapshot, as in Heat."""
BAD = ("error", "killed", "deleted", "pending_delete")
UPLOADING = ("image_snapshot", "image_snapshot_pending", "image_pending_upload", "image_uploading")


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
        body = {"name": self._target.physical_name, "metadata": {"stoker": self._mark}}
        try:
            answer = compute.post(f"/servers/{self._target.physical_id}/action", {"createImage": body})
        except Conflict as error:
            raise in_use(error) from error
        return str(answer["image_id"])

    def is_complete(self, image: str, server: Mapping[str, Json]) -> bool:
        """Return whether the image is complete, and the server free for other actions.

        :raises PermanentError: the image is in a bad state, or gone.
        """
        status = str(self._images.get(f"/images/{image}")["status"]).lower()
        if status in BAD:
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

    def _marked_images(self) -> list[Mapping[str, Json]]:
        images = self._images.list_all("/images", "images", stoker=self._mark)
        return [image for image in images if image.get("stoker") == self._mark]
