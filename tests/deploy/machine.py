"""A systemd of the test's own, with Stoker's units as an operator installs them."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from harness.processes import Process
from harness.server import MissingServer, find_program
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
BOOT = pathlib.Path(__file__).parent / "boot"
TARGET = """\
[Unit]
Description=Everything the test wants of the machine
DefaultDependencies=no
"""
DROP_IN = f"""\
[Unit]
# Without these nothing of the machine's own is started.
DefaultDependencies=no
Wants=
After=

[Service]
# The checkout and Python may lie where the unit must not look.
ProtectHome=tmpfs
BindReadOnlyPaths={ROOT} {sys.prefix} {sys.base_prefix}
StandardOutput=append:/run/log/%n
StandardError=append:/run/log/%n
"""


class Machine:
    """Units in namespaces of their own; the network is the real machine's.

    Nothing is aborted for a watchdog that was not fed, except inside `watched`: a test's watchdogs have a
    few seconds only, and a slow machine may stall for longer.

    :param config: Stoker's configuration.
    :param watchdog: seconds, in place of the units' minute.
    """

    def __init__(self, directory: pathlib.Path, *, config: str, watchdog: float) -> None:
        if os.geteuid() != 0:
            raise MissingServer("root, without which no systemd can be started, ", "systemd")
        find_program("systemd-analyze", "systemd")
        find_program("unshare", "util-linux")
        self._directory = directory
        self._cgroup = _cgroup_folder()
        units = directory / "etc" / "systemd" / "system"
        self._install(units, config, watchdog)
        command = [BOOT, self._cgroup, ROOT, sys.prefix, directory / "etc"]
        self.process = Process(command, log=directory / "systemd.log")
        self._init = 0
        try:
            wait_for(self._is_up, 180, self.process.tail)
            self.systemctl("service-watchdogs", "no")
            self.run("systemd-sysusers")
            self.run("chown", "-R", "root:stoker", "/etc/stoker")
            self.run("chmod", "-R", "u=rwX,g=rX,o=", "/etc/stoker")
        except BaseException:
            self.close()
            raise

    def _install(self, units: pathlib.Path, config: str, watchdog: float) -> None:
        units.mkdir(parents=True)
        (units / "stoker-test.target").write_text(TARGET)
        for unit in (ROOT / "systemd").glob("*.service"):
            shutil.copy(unit, units)
            drop_in = units / f"{unit.name}.d"
            drop_in.mkdir()
            (drop_in / "test.conf").write_text(f"{DROP_IN}WatchdogSec={watchdog}\nRestartSec=100ms\n")
        accounts = self._directory / "etc" / "sysusers.d"
        accounts.mkdir()
        shutil.copy(ROOT / "systemd" / "stoker.sysusers", accounts / "stoker.conf")
        (self._directory / "etc" / "hostname").write_text("boiler.example.org\n")
        (self._directory / "etc" / "stoker").mkdir()
        (self._directory / "etc" / "stoker" / "stoker.conf").write_text(config)

    def _is_up(self) -> bool:
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(OSError, ValueError, IndexError):
            self._init = int(children.read_text().split()[0])
            return "running" in self.call("systemctl", "is-system-running").stdout
        return False

    def close(self) -> None:
        """Kill everything in it."""
        self.process.kill()
        for folder in sorted(self._cgroup.rglob("*/"), reverse=True):
            folder.rmdir()
        self._cgroup.rmdir()

    def call(self, *command: str, within: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run a program in there.

        :param within: seconds.
        """
        enter = ["nsenter", "-t", str(self._init), "-p", "-m", "-u", "-i", "-C"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, timeout=within, check=False)

    def run(self, *command: str, within: float = 300.0) -> str:
        """Run a program in there, which must succeed; its output."""
        done = self.call(*command, within=within)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}\n{self._story()}"
        return done.stdout

    def _story(self) -> str:
        logs = sorted(self.path("/run/log").glob("*.service"))
        tails = [f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in logs]
        return "\n".join([self.process.tail(), *tails])

    def systemctl(self, *arguments: str) -> str:
        """Run systemctl, which must succeed."""
        return self.run("systemctl", "--no-pager", *arguments)

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.systemctl("show", unit, "--value", "-p", name).strip()

    def wait_for(self, unit: str, name: str, value: str, within: float = 180.0) -> float:
        """Wait until a property of a unit has this value; the seconds it took."""
        began = time.monotonic()
        describe = lambda: f"{unit} {name}={self.show(unit, name)}\n{self.log(unit)[-3000:]}"  # noqa: E731
        wait_for(lambda: self.show(unit, name) == value, within, describe)
        return time.monotonic() - began

    def wait_restarted(self, unit: str, before: str) -> None:
        """Wait until a unit is active with another main process than before."""

        def restarted() -> bool:
            active = self.show(unit, "ActiveState") == "active"
            return active and self.show(unit, "MainPID") not in ("0", before)

        wait_for(restarted, 200, lambda: self.log(unit)[-3000:])

    def fed(self, unit: str) -> float:
        """When a unit has last fed its watchdog, in seconds."""
        return int(self.show(unit, "WatchdogTimestampMonotonic")) / 1e6

    @contextlib.contextmanager
    def watched(self, unit: str) -> Iterator[None]:
        """Inside, a unit that does not feed its watchdog is aborted; it begins with one that does."""
        self.systemctl("service-watchdogs", "yes")
        try:
            before = self.fed(unit)
            wait_for(lambda: self.fed(unit) > before, 180, lambda: self.log(unit)[-3000:])
            yield
        finally:
            self.systemctl("service-watchdogs", "no")

    def log(self, unit: str) -> str:
        """Return the output of a unit's processes."""
        with contextlib.suppress(OSError):
            return self.path(f"/run/log/{unit}.service").read_text(errors="replace")
        return ""

    def path(self, path: str) -> pathlib.Path:
        """A file in there, as it is reached from outside."""
        return pathlib.Path(f"/proc/{self._init}/root{path}")


def _cgroup_folder() -> pathlib.Path:
    """A new folder below our own cgroup."""
    mounts = subprocess.run(
        ["findmnt", "-n", "-t", "cgroup2", "-o", "TARGET"], capture_output=True, text=True, check=True
    )
    mounted = pathlib.Path(mounts.stdout.split()[0])
    lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    cgroup = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
    return mounted / cgroup.strip("/") / f"stoker-test-{os.getpid()}"
