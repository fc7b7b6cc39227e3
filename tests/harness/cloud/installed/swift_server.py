"""Runs all of Swift with one copy of each object: swift_server.py CONFIGURATION STATE.

CONFIGURATION is that of the proxy.  The servers of accounts, containers and objects are processes of this
one, on ports that are free; they end with it.
"""

import configparser
import ctypes
import os
import pathlib
import signal
import socket
import sys

from swift.common import utils
from swift.common.ring import RingBuilder
from swift.common.wsgi import run_wsgi

KINDS = ("account", "container", "object")
PR_SET_PDEATHSIG = 1
SERVER = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {directory}
devices = {devices}
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
workers = 0
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
HASHES = "[swift-hash]\nswift_hash_path_suffix = cloud\nswift_hash_path_prefix = cloud\n"


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def write_ring(path, port):
    builder = RingBuilder(4, 1, 1)
    device = {"region": 1, "zone": 1, "weight": 1, "device": "one", "meta": ""}
    address = {"ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1", "replication_port": port}
    builder.add_dev({**device, **address})
    builder.rebalance()
    builder.get_ring().save(str(path))


def start(path, kind):
    if os.fork():
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    run(path, kind)
    os._exit(1)


def run(path, kind):
    sys.exit(run_wsgi(str(path), f"{kind}-server"))


if __name__ == "__main__":
    proxy, state = map(pathlib.Path, sys.argv[1:])
    directory = proxy.parent
    (state / "devices/one").mkdir(parents=True, exist_ok=True)
    (directory / "swift.conf").write_text(HASHES)
    utils.SWIFT_CONF_FILE = str(directory / "swift.conf")
    options = configparser.RawConfigParser()
    options.read(proxy)
    values = {"user": options["DEFAULT"]["user"], "directory": directory, "devices": state / "devices"}
    for kind in KINDS:
        port = free_port()
        path = directory / f"{kind}.conf"
        path.write_text(SERVER.format(kind=kind, port=port, **values))
        write_ring(directory / f"{kind}.ring.gz", port)
        start(path, kind)
    run(proxy, "proxy")
