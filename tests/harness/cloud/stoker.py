"""A Stoker that works on a cloud, all in one."""

import contextlib
import os
import pathlib
import tempfile
import typing
from collections.abc import Iterator

from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.server import joined


@contextlib.contextmanager
def stoker_on(
    cloud: Cloud, folder: pathlib.Path, options: str = "", **settings: typing.Any
) -> Iterator[Service]:
    """A Stoker for the users of the cloud.

    :param folder: folder of the files that Stoker writes.
    :param options: more of its configuration.
    :param settings: parameters of `Service`.
    """
    config = folder / "cloud.conf"
    config.write_text(cloud.stoker_options() + options)
    service = Service(folder, config=config, **settings)
    try:
        yield service
    finally:
        service.stop()


@contextlib.contextmanager
def cloud_and_stoker() -> Iterator[tuple[Cloud, Service]]:
    """For a program: the cloud that runs already, or one that ends with this process, and a Stoker on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cloud = joined(folder, os.getpid())
        with stoker_on(cloud, folder) as service:
            yield cloud, service
