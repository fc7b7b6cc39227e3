"""The servers that all processes of a test run share: ``python -m harness.shared KIND FILE --until PID``.

The first process that asks for a server starts a program that keeps it.  A test that stops, pauses or kills a
server starts one of its own instead.
"""

import argparse
import os
import pathlib
import pickle
import select
import signal
import sys
import typing

from harness.etcd import Etcd
from harness.keystone import Keystone
from harness.mariadb import MariaDB
from harness.memcached import Memcached
from harness.once import start_once
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.redis import Redis
from harness.server import MissingServer, Server
from harness.zookeeper import ZooKeeper

KINDS: dict[str, type[Server]] = {
    kind.name: kind for kind in (RabbitMQ, PostgreSQL, MariaDB, Etcd, Redis, ZooKeeper, Memcached, Keystone)
}
FIRST_SHARE = 20
"""The first share of the ports that no process of the tests has."""
START_WITHIN = 300.0
"""Seconds."""
S = typing.TypeVar("S", bound=Server)


def shared(kind: type[S], folder: pathlib.Path, until: int) -> S:
    """Return the one server of this kind; it runs, and is neither stopped nor closed by the caller.

    :param folder: the run's own, the same for all its processes.
    :param until: the pid of the process that ends last.
    :raises MissingServer: the server is not installed.
    :raises ProcessEnded: the server could not be started.
    """
    ready = folder / f"{kind.name}.server"
    start_once(
        folder / f"{kind.name}.lock",
        [__name__, kind.name, str(ready), "--until", str(until)],
        ready=ready,
        share=FIRST_SHARE + list(KINDS).index(kind.name),
        within=START_WITHIN,
    )
    server = pickle.loads(ready.read_bytes())
    if isinstance(server, MissingServer):
        raise server
    assert isinstance(server, kind)
    return server


def main() -> int:
    """Keep a server until SIGTERM or the end of a process; the exit code."""
    parser = argparse.ArgumentParser(prog=__name__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--until", type=int, required=True, metavar="PID")
    parsed = parser.parse_args()
    end = os.pidfd_open(parsed.until)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with KINDS[parsed.kind]() as server:
            _tell(parsed.file, server)
            select.select([end], [], [])
    except MissingServer as error:
        _tell(parsed.file, error)
    return 0


def _tell(file: pathlib.Path, content: Server | MissingServer) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps(content))
    unfinished.rename(file)


if __name__ == "__main__":
    sys.exit(main())
