"""Stoker at work, with no other server: create a stack with the OpenStack client, lose a conductor meanwhile.

Usage: python examples/demo.py    (`make demo` installs what it needs)
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

from stoker.cli.daemon.main_loop import end_process
from stoker.cli.programs.all_in_one import Embedded, EmbeddedSettings
from stoker.conductor.service import Conductor
from stoker.observe.terminal import print_by_line

TEMPLATE = pathlib.Path(__file__).parent / "first_stack.yaml"
BIN = pathlib.Path(sys.executable).parent
STACK = "first"
KILL_AFTER = 1.5
OPTIONS = """\
[DEFAULT]
log_file = {log}
[coordination]
heartbeat = 1
timeout = 3
poll = 1
"""
"""Options of an installation of one process, where a conductor is missed sooner than across a network."""


def main() -> int:
    print_by_line()
    with tempfile.TemporaryDirectory(prefix="stoker-demo-", ignore_cleanup_errors=True) as folder:
        data = pathlib.Path(folder)
        options = data / "demo.conf"
        options.write_text(OPTIONS.format(log=data / "stoker.log"))
        embedded = Embedded(EmbeddedSettings(data, port=_free_port(), config=[options]))
        embedded.start()
        say(f"Stoker serves at {embedded.url}: an API and {len(embedded.conductors)} conductors, SQLite")
        try:
            return show(embedded, data)
        finally:
            embedded.stop()


def show(embedded: Embedded, data: pathlib.Path) -> int:
    """The demonstration; the exit code."""
    client = Client(embedded.url, data / "stoker.conf")
    client.manage("ring", "show", *COLUMNS)
    killer = Killer(embedded.conductors)
    killer.start()
    client.openstack(
        *("stack", "create", "--wait", "--poll", "1", "--parameter", "seconds=3", "-t", str(TEMPLATE), STACK)
    )
    killer.join()
    say(f"{killer.killed} was taken away while the stack was being created; the ring without it:")
    client.manage("ring", "show", *COLUMNS)
    client.openstack("stack", "resource", "list", STACK)
    client.openstack("stack", "output", "show", STACK, "--all")
    client.openstack("stack", "delete", "--wait", "-y", STACK)
    say("Done: the stack was created and deleted although a conductor was lost.")
    return 0


COLUMNS = ("-c", "Host", "-c", "State", "-c", "Shards", "-c", "Share", "-c", "Alive")


class Client:
    """Runs commands as a user types them; a failing one ends the demonstration."""

    def __init__(self, url: str, config: pathlib.Path) -> None:
        self._env = {
            **os.environ,
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": f"{url}/v1/demo",
            "PYTHONUNBUFFERED": "1",  # The client prints events as they come, into a pipe, too.
        }
        self._config = config

    def openstack(self, *arguments: str) -> None:
        """Run the OpenStack client, without what its libraries say to each other."""
        self._run("openstack", *arguments, PYTHONWARNINGS="ignore")

    def manage(self, *arguments: str) -> None:
        """Run the operator's command."""
        self._run("stoker-manage", "--config-file", str(self._config), *arguments)

    def _run(self, program: str, *arguments: str, **variables: str) -> None:
        print(f"\n$ {program} {' '.join(arguments)}")
        subprocess.run([str(BIN / program), *arguments], env={**self._env, **variables}, check=True)


class Killer(threading.Thread):
    """Ends the first conductor found at work, without a word to the others, as kill -9 would."""

    def __init__(self, conductors: list[Conductor]) -> None:
        super().__init__(name="killer", daemon=True)
        self._conductors = conductors
        self.killed = "no conductor"

    def run(self) -> None:
        """Wait for a conductor at work, and end it."""
        while not any(conductor.in_progress for conductor in self._conductors):
            time.sleep(0.05)
        time.sleep(KILL_AFTER)
        busy = max(self._conductors, key=lambda conductor: conductor.in_progress)
        self.killed = busy.host
        self._conductors.remove(busy)
        busy.kill()
        print(f"-- {self.killed} is gone")


def say(text: str) -> None:
    print(f"\n== {text}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    end_process(main())  # As a daemon ends: no thread writes into the folder once it is removed.
