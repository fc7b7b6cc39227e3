"""A real OpenStack: Keystone, Glance, Placement, Neutron, Nova and Cinder, with a database and a broker.

It has no hypervisor, no agents and no disks: see the folder ``installed/plugins``.
"""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from harness.cloud.access import READY, Cloud
from harness.processes import ProcessEnded
from harness.server import Server

TESTS = pathlib.Path(__file__).parents[2]
GIVEN = "STOKER_TEST_CLOUD"
"""Variable with the directory of a cloud that runs already, for tests to use."""
START_WITHIN = 900.0
"""Seconds; the first start makes the databases."""
PORTS = {"PYTEST_XDIST_WORKER": "gw31"}
"""A share of the ports that no process of the tests has."""


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

    def _command(self) -> Sequence[str]:
        return [sys.executable, "-m", "harness.cloud", str(self._place)]

    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(TESTS)}

    def _answers(self) -> bool:
        return (self._place / READY).exists()


def joined(folder: pathlib.Path, run: int) -> Cloud:
    """The one cloud of a test run, which the first of its processes starts.

    It ends with the run, however that ends.

    :param folder: the run's own, the same for all its processes.
    :param run: the pid of the process that ends last.
    :raises ProcessEnded: it could not be started.
    """
    if given := os.environ.get(GIVEN):
        return Cloud(pathlib.Path(given))
    place, log = folder / "cloud-directory", folder / "cloud.log"
    with open(folder / "cloud-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            # Written first: where it fails once, the other processes need not try it again.
            directory = pathlib.Path(tempfile.mkdtemp(prefix="stoker-cloud-"))
            place.write_text(str(directory))
            _launch(directory, log, run)
    directory = pathlib.Path(place.read_text())
    if not (directory / READY).exists():
        raise ProcessEnded(f"the cloud could not be started:\n{log.read_text()[-5000:]}")
    return Cloud(directory)


def _launch(directory: pathlib.Path, log: pathlib.Path, run: int) -> None:
    """Start a cloud that outlives this process, and wait until it serves or has ended."""
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.cloud", directory, "--until", str(run), "--remove"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=TESTS,
            env={**os.environ, **PORTS},
            start_new_session=True,
        )
    end = time.monotonic() + START_WITHIN
    while not (directory / READY).exists() and time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            return
