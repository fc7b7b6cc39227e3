"""Images and containers of the tests' own, in storage of their own, on the network of the machine."""

import os
import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from harness.guard import GUARD
from harness.processes import Process
from harness.server import MissingServer, find_program

BASE = "localhost/base"
MIRROR = "http://deb.debian.org/debian"
OWN_CGROUPS = "umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup && exec "
"""crun refuses a machine with the first version of control groups next to the second one."""
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
"""Root may not set everywhere the limits that podman sets by default."""


class Podman:
    """Podman with a folder for all that it stores.

    :param folder: an empty one.
    :raises MissingServer: podman, crun or mmdebstrap is not installed, or the user is not root.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        if os.geteuid() != 0:
            raise MissingServer("root, without which no container can be started here, ", "podman")
        program = find_program("podman", "podman")
        runtime = find_program("crun", "crun")
        self._folder = folder
        storage = ["--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "overlay"]
        self._podman = [program, *storage, "--cgroup-manager", "cgroupfs", "--runtime", runtime]
        self._containers: list[str] = []
        GUARD.directory(folder)

    def make_base(self) -> None:
        """Make the image BASE: Debian with Python, as Containerfile wants it.

        No registry of images is asked.
        """
        archive = self._folder / "base.tar"
        command: list[str | os.PathLike[str]] = [find_program("mmdebstrap", "mmdebstrap")]
        command += ["-q", "--variant=minbase", "--include=ca-certificates,python3-venv", "bookworm"]
        _output_of([*command, archive, MIRROR])
        self.run("import", archive, BASE)
        archive.unlink()

    def build(self, folder: pathlib.Path, name: str) -> None:
        """Build an image from the Containerfile of a folder, on BASE.

        The build trusts the certificates that this machine trusts.
        """
        certificates = "/etc/ssl/certs:/etc/ssl/certs:ro"
        options = ["--isolation", "chroot", "--network", "host", "--format", "docker", "-v", certificates]
        self.run("build", "-q", *options, "--build-arg", f"BASE={BASE}", "-t", name, folder)

    def run(self, *arguments: str | os.PathLike[str]) -> str:
        """Run podman, which must succeed; return its output."""
        return _output_of(self._command(arguments))

    def start(
        self,
        name: str,
        image: str,
        command: Sequence[str],
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a container on the machine's network; return the process that ends with it.

        :param options: those of `podman run`.
        """
        variables = [f"--env={key}={value}" for key, value in (environment or {}).items()]
        host = ["--rm", "--name", name, "--network", "host", "--cgroups", "disabled", "--no-healthcheck"]
        self._containers.append(name)
        arguments = ["run", *host, *LIMITS, *options, *variables, image, *command]
        return Process(self._command(arguments), log=self._folder / f"{name}.log")

    def close(self) -> None:
        """Kill the containers, and remove all that is stored."""
        for name in self._containers:
            subprocess.run(
                self._command(["rm", "-f", "-t", "0", "-i", name]), capture_output=True, timeout=60
            )
        subprocess.run(self._command(["rmi", "-a", "-f"]), capture_output=True, timeout=300)
        shutil.rmtree(self._folder, ignore_errors=True)
        GUARD.directory_removed(self._folder)

    def _command(self, arguments: Sequence[str | os.PathLike[str]]) -> list[str]:
        line = shlex.join(map(str, [*self._podman, *arguments]))
        return [str(find_program("unshare", "util-linux")), "-m", "sh", "-c", OWN_CGROUPS + line]


def _output_of(command: Sequence[str | os.PathLike[str]]) -> str:
    outcome = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900)
    assert outcome.returncode == 0, (command, outcome.stdout[-3000:], outcome.stderr[-3000:])
    return outcome.stdout
