"""Stoker on a real OpenStack: a server with network, router, floating IP and volume by the OpenStack client.

The cloud is that of the tests: all services are real, but they have no hosts, so a server is a row.

Usage: make demo-cloud         (installs what it needs, and removes all at the end)
       KEEP=1 make demo-cloud  (leaves it running until Ctrl-C, and prints the lines to paste)
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from harness.cloud.access import CLOUDS, Cloud
from harness.cloud.layout import REGION
from harness.cloud.server import CloudServer
from harness.ports import free_port
from harness.processes import ProcessEnded
from harness.server import MissingServer
from openstack.exceptions import SDKException
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.programs.all_in_one import Embedded, EmbeddedSettings
from stoker.observe.terminal import print_by_line

LOG = pathlib.Path("var", "demo-cloud.log").absolute()
"""Stoker's log; it stays, for a demonstration that fails."""
TEMPLATE = pathlib.Path(__file__).parent / "server.yaml"
BIN = pathlib.Path(sys.executable).parent
STACK = "app"
PROJECT = "demo"


def main() -> int:
    print_by_line()
    try:
        return demonstrate()
    except (MissingServer, ProcessEnded, TimeoutError, OSError, SDKException, WrongConfiguration) as error:
        # What has ended prints its own log, which goes with it.
        say(f"This demonstration cannot start: {error}")
        if LOG.exists():
            say(f"Stoker's log: {LOG}")
        return 1


def demonstrate() -> int:
    """Start a cloud and Stoker, and show them; return the exit code."""
    LOG.parent.mkdir(exist_ok=True)
    LOG.unlink(missing_ok=True)
    began = time.monotonic()
    say("A cloud starts: Keystone, Glance, Placement, Neutron, Nova, Cinder, a MariaDB and a RabbitMQ …")
    # The folder goes last: what stops with the cloud may still write into it.
    folder = tempfile.TemporaryDirectory(prefix="stoker-demo-", ignore_cleanup_errors=True)
    with folder as directory, CloudServer() as server:
        say(f"It serves after {time.monotonic() - began:.0f} s: {server.url}")
        data = pathlib.Path(directory)
        config = data / "cloud.conf"
        config.write_text(f"[DEFAULT]\nlog_file = {LOG}\n{server.cloud.stoker_options()}")
        embedded = Embedded(EmbeddedSettings(data, port=free_port(), config=[config]))
        embedded.start()
        enter(server.cloud, embedded.url)
        say(f"Stoker serves at {embedded.url}, and is the catalog's orchestration service")
        try:
            show(server.cloud)
            if os.environ.get("KEEP"):
                keep(server.cloud)
            remove(server.cloud)
        except subprocess.CalledProcessError as error:
            explain(server.cloud, error)
            return 1
        finally:
            embedded.stop()
    return 0


def enter(cloud: Cloud, url: str) -> None:
    """Enter Stoker in the catalog, as an operator does."""
    identity = cloud.admin.identity
    service = identity.create_service(name="stoker", type="orchestration")
    url = f"{url}/v1/%(project_id)s"
    identity.create_endpoint(service_id=service.id, interface="public", region_id=REGION, url=url)


def show(cloud: Cloud) -> None:
    """Create the stack, and look at it with the commands of each service."""
    openstack(cloud, "stack", "create", "--wait", "-t", str(TEMPLATE), STACK)
    openstack(
        cloud, "stack", "resource", "list", STACK, "-c", "resource_name", "-c", "resource_type", *STATUS
    )
    openstack(cloud, "server", "list", "-c", "Name", "-c", "Status", "-c", "Networks", "-c", "Flavor")
    openstack(cloud, "floating", "ip", "list", "-c", "Floating IP Address", "-c", "Fixed IP Address")
    openstack(cloud, "volume", "list", "-c", "Name", "-c", "Status", "-c", "Size")
    openstack(cloud, "stack", "output", "show", STACK, "--all")


STATUS = ("-c", "resource_status")


def explain(cloud: Cloud, error: subprocess.CalledProcessError) -> None:
    """Say which command failed, and why as far as Stoker knows."""
    say(f"This command failed: openstack {' '.join(error.cmd[1:])}")
    openstack(cloud, "stack", "failures", "list", "--long", STACK, check=False)
    say(f"Stoker's log: {LOG}")


def keep(cloud: Cloud) -> None:
    """Say how to use it, and wait for Ctrl-C."""
    say("Cloud and Stoker run until Ctrl-C. In another terminal:")
    print(f"export OS_CLIENT_CONFIG_FILE={cloud.directory / CLOUDS} OS_CLOUD={PROJECT}")
    print(f"{BIN / 'openstack'} stack show {STACK}")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print()


def remove(cloud: Cloud) -> None:
    """Delete the stack, and look whether anything is left in the cloud."""
    openstack(cloud, "stack", "delete", "--wait", "-y", STACK)
    leftovers = cloud.existing(PROJECT).leftovers()
    say(f"The stack is deleted. What the services still have of it: {leftovers or 'nothing'}")


def openstack(cloud: Cloud, *arguments: str, check: bool = True) -> None:
    """Run the OpenStack client as a user types it.

    :param check: a command that fails ends the demonstration.
    """
    print(f"\n$ openstack {' '.join(arguments)}")
    access = {"OS_CLIENT_CONFIG_FILE": str(cloud.directory / CLOUDS), "OS_CLOUD": PROJECT}
    env = {**os.environ, **access, "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    subprocess.run([str(BIN / "openstack"), *arguments], env=env, check=check)


def say(text: str) -> None:
    print(f"\n== {text}")


if __name__ == "__main__":
    sys.exit(main())
