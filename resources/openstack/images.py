"""Images as what a disk or a volume is made of: their state and their size; pure."""

from collections.abc import Iterator

from ...shapes import Json, JsonMap
from ..contract import CloudFacts, Misfit, Thing
from .lists import named

GIB = 1024**3


def image_of(value: Thing | None, cloud: CloudFacts) -> JsonMap | None:
    """Return an image that exists; None: it is not known, or made by a resource."""
    return named(cloud.members("image", "/images", "images"), value) if isinstance(value, str) else None


def image_misfits(resource: str, path: tuple[str | int, ...], image: JsonMap, disk: Json) -> Iterator[Misfit]:
    """Yield why an image cannot be put on a disk.

    :param disk: GiB; anything but a number: it is not known.
    """
    if (status := image.get("status")) != "active":
        yield Misfit(
            resource,
            f"the image {image.get('name')} is {status}",
            path,
            "active",
            str(status),
            "Wait until the image is active, or use another one.",
        )
    needed = max(_whole(image.get("min_disk")), -(-_bytes(image) // GIB))
    if isinstance(disk, int) and needed > disk:
        yield Misfit(
            resource,
            f"the image {image.get('name')} needs a disk of {needed} GiB, but that has {disk}",
            path,
            str(needed),
            str(disk),
            "Use a larger flavor or volume, or a smaller image.",
        )


def _bytes(image: JsonMap) -> int:
    return max(_whole(image.get("size")), _whole(image.get("virtual_size")))


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0
