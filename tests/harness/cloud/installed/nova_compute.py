"""Runs nova-compute with the hypervisor of the folder plugins; Nova itself finds its own only."""

import pathlib

from nova.cmd import compute  # First: it decides how Nova waits.

import nova.virt  # isort: skip
from nova.scheduler.client import report  # isort: skip


def _no_allocations(client, context, nodename):
    """Return no allocations for a reshape, which the hypervisor of the tests never needs.

    Nova reads those of all servers of a host, one by one, whenever the host gets another one.  Here one host
    has all servers of the cloud, so that two hundred of them take forty thousand requests.
    """
    return {}


if __name__ == "__main__":
    report.SchedulerReportClient.get_allocations_for_provider_tree = _no_allocations
    nova.virt.__path__.append(str(pathlib.Path(__file__).parent / "plugins"))
    compute.main()
