"""A real OpenStack: Keystone, Glance, Placement, Neutron, Nova and Cinder, with a database and a broker.

It has no hypervisor, no agents and no disks: see the folder ``installed/plugins``.
"""

import os
import pathlib
import sys
from collections.abc import Sequence

from harness.cloud.access import READY, Cloud
from harness.once import TESTS, start_once
from harness.server import Server

GIVEN = "STOKER_TEST_CLOUD"
"""Variable with the directory of a cloud that runs already, for tests to use."""
START_WITHIN = 900.0
"""Seconds; the first start makes the databases."""
SHARE = 31
"""The share of the ports that no other process of the tests has."""


class CloudServer(Server):
    """A cloud of its own, for one who stops, pauses or kills it."""

    name = "Cloud"
    start_within = START_WITHIN

    @property
    def url(self) -> str:
        """Keystone's v3 root, once it runs."""
        return self.cloud.auth_url

    @property
    def cloud(self) -> Cloud:
        return Cloud(self._place)

    @property
    def _place(self) -> pathlib.Path:
        return self.directory / "cloud"

    def _prepare(self) -> None:
        self.directory.chmod(0o711)  # Its database server has an account of its own.

    def _command(self) -> Sequence[str]:
        return [sys.executable, "-m", "harness.cloud", str(self._place)]

    def _environment(self) -> dict[str, str]:
        # A cloud that is killed is killed with its guard, and removes nothing: all it writes is below.
        return {"PYTHONPATH": str(TESTS), "TMPDIR": str(self.directory)}

    def _answers(self) -> bool:
        return (self._place / READY).exists()


def joined(folder: pathlib.Path, until: int) -> Cloud:
    """Return the one cloud of a test run, which the first of its processes starts.

    It ends with the run, however that ends.

    :param folder: the run's own, the same for all its processes.
    :param until: the pid of the process that ends last.
    :raises ProcessEnded: the cloud could not be started.
    """
    if running := os.environ.get(GIVEN):
        return Cloud(pathlib.Path(running))
    # Next to the folder, which may be removed a moment before the cloud has ended.  Under a name that begins
    # as those of pytest it would be taken for an old one of them, and removed by the next run.
    directory = folder.with_name(f"cloud-of-{folder.name}")
    start_once(
        folder / "cloud.lock",
        ["harness.cloud", str(directory), "--until", str(until), "--remove"],
        ready=directory / READY,
        share=SHARE,
        within=START_WITHIN,
    )
    return Cloud(directory)
