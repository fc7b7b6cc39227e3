"""TCP ports of the loopback interface."""

import os
import pathlib
import random
import socket

HOST = "127.0.0.1"
LOWEST = 15000
_assigned: set[int] = set()
WORKERS = 32
"""Processes of one run that may search for ports at the same time: each has ports of its own."""


def _share() -> int:
    """Which of them we are, from the name that pytest-xdist gives: gw0, gw1 …"""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS


def _lowest_ephemeral() -> int:
    text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    return int(text.split()[0])


def free_port() -> int:
    """A port that nobody listens on and that this function has not given before.

    It is below the range from which the kernel takes the ports of outgoing connections: there, a
    connection could take a stopped server's port before the server is started again.
    """
    highest = _lowest_ephemeral()
    for _ in range(1000):
        port = random.randrange(LOWEST + _share(), highest, WORKERS)
        if port in _assigned:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        _assigned.add(port)
        return port
    raise RuntimeError(f"no free port between {LOWEST} and {highest}")
