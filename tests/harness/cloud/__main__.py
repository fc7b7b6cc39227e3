"""The program that runs a cloud: ``python -m harness.cloud DIRECTORY``, in the folder ``tests``."""

import argparse
import json
import os
import pathlib
import select
import shutil
import signal
import sys
import typing

import yaml
from harness.cloud.access import ANSWERED, CLOUDS, READY, request_of
from harness.cloud.layout import PASSWORD, REGION, Layout
from harness.cloud.making import prepare
from harness.cloud.running import Running
from harness.cloud.services import OPTIONAL
from harness.guard import GUARD
from harness.processes import ProcessEnded

LOOK = 1.0
"""Seconds after which it checks again whether all parts run."""


def main() -> int:
    """Run a cloud until SIGTERM, SIGINT or the end of a process; the exit code."""
    arguments = _parser().parse_args()
    _leave_at(lambda *_: sys.exit(0))
    prepared = prepare()
    if arguments.prepare:
        return 0
    directory: pathlib.Path = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    if any(file.name != "log" for file in directory.iterdir()):
        print(f"{directory} is not empty", file=sys.stderr)
        return 2
    if arguments.remove:
        GUARD.directory(directory)
    cloud = Running(directory, prepared)
    try:
        cloud.start_servers()
        cloud.start()
        for service in OPTIONAL:
            if service.name in arguments.include:
                cloud.start_optional(service)
        _tell(cloud.layout)
        return _serve(cloud, arguments.until)
    finally:
        _leave_at(signal.SIG_IGN)
        (directory / READY).unlink(missing_ok=True)
        cloud.close()
        if arguments.remove:
            shutil.rmtree(directory, ignore_errors=True)
            GUARD.directory_removed(directory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="harness.cloud", description="A real OpenStack for the tests.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("directory", nargs="?", type=pathlib.Path, help="new; for all that the services write")
    mode.add_argument("--prepare", action="store_true", help="make the databases, and end")
    names = [service.name for service in OPTIONAL]
    more = {"action": "append", "default": [], "choices": names, "metavar": "SERVICE"}
    parser.add_argument("--with", dest="include", help=f"start this one, too: {', '.join(names)}", **more)
    parser.add_argument("--until", type=int, metavar="PID", help="end with this process")
    parser.add_argument("--remove", action="store_true", help="remove the directory at the end")
    return parser


def _leave_at(handler: typing.Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def _tell(layout: Layout) -> None:
    """Write down where the cloud is, for people and for tests."""

    def access(user: str) -> typing.Any:
        who = {"username": user, "password": PASSWORD, "project_name": user}
        domains = {"user_domain_id": "default", "project_domain_id": "default"}
        auth = {"auth_url": layout.auth_url, **who, **domains}
        return {"auth": auth, "region_name": REGION, "identity_api_version": 3}

    clouds = {"clouds": {user: access(user) for user in ("admin", "demo")}}
    (layout.directory / CLOUDS).write_text(yaml.safe_dump(clouds))
    urls = {name: layout.url(name) for name in layout.ports}
    facts = {"auth_url": layout.auth_url, "urls": urls, "database": layout.database, "broker": layout.broker}
    unfinished = layout.directory / f"{READY}.unfinished"
    unfinished.write_text(json.dumps({**facts, "pid": os.getpid()}))
    unfinished.rename(layout.directory / READY)
    print("A cloud runs; use it with:", flush=True)
    print(f"export OS_CLIENT_CONFIG_FILE={layout.directory / CLOUDS} OS_CLOUD=demo", flush=True)
    print(f"export STOKER_TEST_CLOUD={layout.directory}", flush=True)


def _serve(cloud: Running, until: int | None) -> int:
    waited = [] if until is None else [os.pidfd_open(until)]
    while not select.select(waited, [], [], LOOK)[0]:
        if (message := cloud.ended()) is not None:
            print(message, file=sys.stderr, flush=True)
            return 1
        _start_requested(cloud)
    return 0


def _start_requested(cloud: Running) -> None:
    """Start the services that somebody has asked for; see `access.Cloud.start`."""
    for service in OPTIONAL:
        request = request_of(cloud.layout.directory, service.name)
        answer = request.with_suffix(ANSWERED)
        if request.exists() and not answer.exists():
            unfinished = answer.with_suffix(".unfinished")
            try:
                cloud.start_optional(service)
                unfinished.touch()
            except (ProcessEnded, TimeoutError) as error:
                unfinished.write_text(str(error))
            unfinished.rename(answer)


if __name__ == "__main__":
    sys.exit(main())
