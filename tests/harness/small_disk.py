"""A disk that can be full: a file system in memory."""

import os
import pathlib
import subprocess

from harness.guard import GUARD

SIZE = 384
"""Megabytes."""
BALLAST = "ballast"
CHUNK = b"\0" * (1 << 20)


class SmallDisk:
    """A file system of limited size, where the account of the tests may mount one: root, as a rule.

    :param path: where it is mounted; the folder is made.
    """

    def __init__(self, path: pathlib.Path, *, size: int = SIZE) -> None:
        self._path = path
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "stoker-tests", str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        self.is_mounted = done.returncode == 0
        if self.is_mounted:
            GUARD.mount(path)

    @staticmethod
    def can_be_mounted() -> bool:
        """Return whether this account may mount file systems, in this container or on this host."""
        command = ["unshare", "--mount", "mount", "-t", "tmpfs", "stoker-tests", "/mnt"]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False

    def fill(self) -> None:
        """Take all space that is left."""
        with open(self._path / BALLAST, "ab", buffering=0) as file:
            for size in (len(CHUNK), 4096):
                self._append(file.fileno(), CHUNK[:size])

    @staticmethod
    def _append(descriptor: int, chunk: bytes) -> None:
        try:
            while os.write(descriptor, chunk) == len(chunk):
                pass
        except OSError:
            return

    def free(self) -> None:
        """Give that space back."""
        (self._path / BALLAST).unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it, with all that it has."""
        if self.is_mounted:
            subprocess.run(["umount", str(self._path)], check=True)
            self.is_mounted = False
            GUARD.unmounted(self._path)
