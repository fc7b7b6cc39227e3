"""``stoker``: everything in one process."""

import argparse
import pathlib
import sys

from ..config.files import named
from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works
from ..daemon.main_loop import OperatorSignal, SignalQueue
from ..daemon.main_thread import run
from ..daemon.version import VERSION
from ..wiring.embedded import PROGRAM, Embedded, EmbeddedSettings

TENANT = "demo"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stoker", description="Orchestration engine for OpenStack.")
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve", help="run the API and several conductors in this process, with no other server"
    )
    serve.add_argument("--data-dir", type=pathlib.Path, required=True, help="keeps the database and the keys")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, default=8004, help="port to listen on (default: %(default)s)")
    serve.add_argument("--conductors", type=int, default=3, help="how many (default: %(default)s)")
    serve.add_argument(
        "--config-file", type=pathlib.Path, action="append", default=[], help="oslo.config file"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after a stop by SIGTERM or SIGINT, 1 if it could not start, 2 for wrong
    arguments."""
    wanted = _parser().parse_args(arguments)
    if wanted.conductors < 1:
        print(f"stoker: --conductors must be 1 or more, not {wanted.conductors}", file=sys.stderr)
        return 2
    files = wanted.config_file or named()
    settings = EmbeddedSettings(wanted.data_dir.resolve(), wanted.host, wanted.port, wanted.conductors, files)
    return run(PROGRAM, Serve(Embedded(settings)))


class Serve:
    """The all-in-one as a daemon."""

    def __init__(self, embedded: Embedded) -> None:
        self.signals = SignalQueue()
        self._embedded = embedded

    def start(self) -> None:
        """Start to serve, see Daemon."""
        self._embedded.start()
        self.signals.report = self._embedded.start_reports()

    def serve(self) -> int:
        """Serve until a stop is wanted, see Daemon."""
        print(f"Stoker serves at {self._embedded.url}; use it with:", flush=True)
        print(f"export {client_environment(self._embedded.url)}", flush=True)
        while self.signals.next() != OperatorSignal.STOP:
            print("stoker: SIGHUP changes nothing here; restart it instead", file=sys.stderr)
        return 0

    def stop(self) -> bool:
        """Stop what was started, see Daemon."""
        return self._embedded.stop()


def client_environment(url: str, tenant: str = TENANT) -> str:
    """Variables for the OpenStack client, as a shell takes them."""
    return f"OS_AUTH_TYPE=none OS_ENDPOINT={url}/v1/{tenant}"
