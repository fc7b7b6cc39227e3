"""The command of attacks: none succeeds on Stoker, it leaves nothing, and it notices a hole."""

import http.server
import pathlib
import sqlite3
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import requests
from attack.__main__ import tried
from attack.cases import CASES
from attack.target import Party, Target
from client.serving import Service
from fuzz.laws import CANARY

TESTS = pathlib.Path(__file__).parents[1]
PAGE = TESTS.parent / "doc" / "security.md"
Hole = Callable[[str, requests.Response], tuple[int, bytes]]
"""A function of a path and its answer that returns a worse answer."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("attack"), conductors=1)
    yield running
    running.stop()


@contextmanager
def holey(url: str, hole: Hole) -> Iterator[str]:
    """Yield the address of a proxy that answers worse than the API behind it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            response = requests.request(
                self.command,
                f"{url}{self.path}",
                data=self.rfile.read(length),
                headers=headers,
                allow_redirects=False,
                timeout=120,
            )
            status, text = hole(self.path, response)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *arguments: typing.Any) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _lenient(path: str, answer: requests.Response) -> tuple[int, bytes]:
    return 200 if 400 <= answer.status_code < 500 else answer.status_code, answer.content


def _broken(path: str, answer: requests.Response) -> tuple[int, bytes]:
    return 500 if answer.status_code >= 400 else answer.status_code, answer.content


def _talkative(path: str, answer: requests.Response) -> tuple[int, bytes]:
    return answer.status_code, answer.content + CANARY.encode()


NEED_KEYSTONE = {
    *("operations_by_role", "foreign_projects_by_role", "tokens_without_a_project"),
    *("foreign_project_in_the_path", "nobody", "operators_requests"),
}
"""Attacks with tokens, which tests/deploy/test_keystone.py makes."""
LENIENT = {
    *("reads_by_foreign_ids", "changes_by_foreign_ids", "wrong_signatures", "beyond_its_server"),
    *("wrong_addresses", "other_purpose", "release_by_signal", "wrong_passwords", "broken_signals"),
    *("yaml_bomb", "yaml_tags", "regular_expression", "server_side_requests", "files_of_the_host"),
    *("broken_bodies", "foreign_config", "foreign_names", "foreign_pages", "change_by_get"),
    "foreign_ids_as_nobodys",
}
HOLES: dict[str, tuple[Hole, set[str]]] = {
    "what must be refused is accepted": (_lenient, LENIENT),
    "what must be refused is an error of the server": (_broken, LENIENT),
    "each answer has the other project's data": (
        _talkative,
        LENIENT | {"lists_of_foreign_things", "own_metadata"},
    ),
}
"""Holes, each with the attacks that must notice it."""


@pytest.mark.full
def test_no_attack_succeeds_and_nothing_is_left(service: Service) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "attack", service.url]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert {name for name in CASES if f" {name} " in done.stdout} == CASES.keys()
    assert {line.split()[1] for line in lines if line.split()[2:3] == ["skipped"]} == NEED_KEYSTONE, (
        done.stdout
    )
    with sqlite3.connect(f"file:{service.data / 'stoker.sqlite'}?mode=ro", uri=True) as conn:
        living = conn.execute("SELECT name FROM stack WHERE deleted_at IS NULL").fetchall()
    assert living == []


@pytest.mark.full
@pytest.mark.parametrize("hole", HOLES)
def test_a_hole_is_noticed(service: Service, hole: str) -> None:
    worsen, names = HOLES[hole]
    target = Target(service.url, Party("hole-a"), Party("hole-b"))
    try:
        target.set_up()
        with holey(service.url, worsen) as url:
            behind = Target(
                url, target.attacker, target.victim, target.run, target.names, target.stacks, target.outputs
            )
            unnoticed = [name for name in names if not tried(CASES[name], behind)]
    finally:
        left = target.clean()
    assert (unnoticed, left) == ([], [])


def test_each_attack_is_described() -> None:
    text = PAGE.read_text()
    assert [name for name in CASES if f"`{name}`" not in text] == []
