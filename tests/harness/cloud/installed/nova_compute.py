"""Runs nova-compute with the hypervisor of the folder plugins; Nova itself finds its own only."""

import pathlib

from nova.cmd import compute  # First: it decides how Nova waits.

import nova.virt  # isort: skip

if __name__ == "__main__":
    nova.virt.__path__.append(str(pathlib.Path(__file__).parent / "plugins"))
    compute.main()
