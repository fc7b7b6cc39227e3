"""TCP ports of the loopback interface."""

import os
import pathlib
import random
import socket

HOST = "127.0.0.1"
LOWEST = 15000
_guards: dict[int, socket.socket] = {}
"""The ports that `free_port` has given, each with the socket by which all runs on this host know it."""
WORKERS = 32
"""Processes of one run that may search for ports at the same time: each has ports of its own."""


def _share() -> int:
    """Which of them we are, from the name that pytest-xdist gives: gw0, gw1 …"""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS


def _lowest_ephemeral() -> int:
    text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    return int(text.split()[0])


def free_port() -> int:
    """A port that nobody listens on, and that no process of any run on this host has been given.

    A server that is about to be started again does not listen meanwhile, and the clients of its test would
    reach another run's server there.  So each process holds a socket with the port's name until it ends.

    It is below the range from which the kernel takes the ports of outgoing connections: there, a
    connection could take a stopped server's port before the server is started again.
    """
    highest = _lowest_ephemeral()
    for _ in range(1000):
        port = random.randrange(LOWEST + _share(), highest, WORKERS)
        guard = socket.socket(socket.AF_UNIX)
        try:
            guard.bind(f"\0stoker-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
        except OSError:
            guard.close()
            continue
        _guards[port] = guard
        return port
    raise RuntimeError(f"no free port between {LOWEST} and {highest}")
