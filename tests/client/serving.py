"""A running Stoker, all in one, as ``stoker serve`` starts it, and a plain HTTP client of it."""

import contextlib
import dataclasses
import json
import pathlib
import re
import sqlite3
import typing
from collections.abc import Iterator, Mapping

import requests
from harness.owned_statements import WATCHED, ReportedOffences
from harness.ports import free_port
from harness.processes import Process
from harness.programs import BIN, Program
from harness.waiting import wait_for

Json = typing.Any
TABLES = ("stack", "stack_tag", "content", "traversal", "task", "resource", "event")
PATIENT = {"OS_COORDINATION__TIMEOUT": "60"}
"""Environment of a service whose conductors count as dead after a minute: a host that pauses loses none.

The all-in-one has two seconds, after which a task would be done twice.
"""


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer; the body is None where there is none."""

    status: int
    headers: Mapping[str, str]
    body: Json

    @property
    def error(self) -> Json:
        """The fault's own part: type and message."""
        return self.body["error"]


class Service:
    """``stoker serve`` in a process of its own, with its data in a directory."""

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        conductors: int = 2,
        config: pathlib.Path | None = None,
        env: Mapping[str, str] | None = None,
        kind: type[Process] = Program,
    ) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.data = directory / "data"
        self._http = requests.Session()
        command = [BIN / "stoker", "serve", "--data-dir", self.data, "--port", str(port)]
        self.process = kind(
            [*command, "--conductors", str(conductors), *(["--config-file", config] if config else [])],
            log=directory / "stoker.log",
            env={"PYTHONWARNINGS": "ignore", WATCHED: "1", **(env or {})},
        )
        self._offences = ReportedOffences(self.process.log)
        self.process.wait_for_text("Stoker serves at", 120)

    @property
    def key(self) -> str:
        """The key with which it seals."""
        [key] = re.findall("^key *= *(.*)$", (self.data / "stoker.conf").read_text(), re.MULTILINE)
        return str(key)

    def stop(self) -> None:
        """Stop it as an operator does; no request may have ended in an error of the server."""
        self._http.close()
        assert self.process.stop() == 0
        assert " broke: " not in self.process.text(), self.process.tail()
        self.check_statements()

    def check_statements(self) -> None:
        """Check that it has reached things through their owners since the last call.

        :raises AssertionError: a statement has an id alone; harness/owned_statements.py.
        """
        self._offences.check()

    def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; redirects are not followed.

        :param path: below the root, with the query.
        :param raw: sent in place of the body.
        """
        data = raw if raw is not None or body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.url + path
        sent = {"Content-Type": "application/json", **(headers or {})}
        response = self._http.request(
            method, url, data=data, headers=sent, allow_redirects=False, timeout=120
        )
        self.check_statements()
        is_json = "json" in response.headers.get("Content-Type", "")
        return Answer(
            response.status_code,
            response.headers,
            response.json() if is_json and response.content else response.text or None,
        )

    def get(self, path: str) -> Json:
        """The body of a GET that must succeed."""
        answer = self.call("GET", path)
        assert answer.status == 200, (path, answer)
        return answer.body

    def create(self, tenant: str, name: str, template: Json, **fields: Json) -> str:
        """Create a stack; its path below the root."""
        body = {"stack_name": name, "template": template, **fields}
        answer = self.call("POST", f"/v1/{tenant}/stacks", body)
        assert answer.status == 201, answer
        return f"/v1/{tenant}/stacks/{name}/{answer.body['stack']['id']}"

    def created(self, tenant: str, name: str, template: Json, **fields: Json) -> str:
        """Create a stack and wait until it is complete; its path."""
        path = self.create(tenant, name, template, **fields)
        assert self.settled(path)["stack_status"] == "CREATE_COMPLETE", self.get(path)
        return path

    def settled(self, path: str) -> Json:
        """The stack, once no action is in progress."""
        wait_for(lambda: not self._status(path).endswith("IN_PROGRESS"), 200, lambda: self._status(path))
        return self.get(path)["stack"]

    def _status(self, path: str) -> str:
        status: str = self.get(f"{path}?resolve_outputs=false")["stack"]["stack_status"]
        return status

    def rows(self) -> dict[str, int]:
        """How many rows the tables of stacks have."""
        with sqlite3.connect(f"file:{self.data / 'stoker.sqlite'}?mode=ro", uri=True) as conn:
            return {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def fault(answer: Answer) -> tuple[int, str]:
    """Status and type of a fault, whose shape is checked."""
    assert set(answer.body) == {"code", "title", "explanation", "error"}, answer
    assert answer.body["code"] == answer.status
    assert set(answer.error) - {"errors"} == {"type", "message", "traceback"}
    assert answer.error["traceback"] is None
    assert answer.headers["X-Openstack-Request-Id"].startswith("req-")
    return answer.status, answer.error["type"]


LIMITS = "limits.conf"
"""Name of the file beside a service's data that has the options of `serving`."""


@contextlib.contextmanager
def serving(directory: pathlib.Path, options: str, *, conductors: int = 1) -> Iterator[Service]:
    """Serve with these options until the end of the block."""
    config = directory / LIMITS
    config.write_text(options)
    service = Service(directory, conductors=conductors, config=config, env=PATIENT)
    try:
        yield service
    finally:
        service.stop()
