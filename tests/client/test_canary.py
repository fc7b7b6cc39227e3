"""The canary for operators: it finds nothing wrong with Stoker, and notices an API that lies."""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import typing
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from client.serving import Json, Service
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "canary.py"
OPTIONS = ("--poll", "0.1", "--patience", "30", "--json")
Lie = Callable[[str, str, Json], Json]
"""A function of method, path and body of an answer that returns another body."""


def started(url: str, *options: str) -> subprocess.Popen[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", PROGRAM, url, *OPTIONS, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    )


def stacks(service: Service, project: str) -> list[str]:
    return [stack["stack_name"] for stack in service.get(f"/v1/{project}/stacks")["stacks"]]


def test_it_finds_nothing_wrong_and_leaves_nothing(service: Service) -> None:
    canary = started(f"{service.url}/v1/canary", "--rounds", "1", "--users", "2")
    out, err = canary.communicate(timeout=240)
    assert (canary.returncode, err) == (0, ""), out
    report = json.loads(out)
    assert set(report["scenarios"].values()) == {2}
    assert report["requests"]["create"]["count"] == sum(report["scenarios"].values()) == 12
    assert report["requests"]["show"]["p50"] <= report["requests"]["show"]["p99"]
    assert stacks(service, "canary") == []


def test_it_does_not_begin_where_nobody_answers() -> None:
    canary = started("http://127.0.0.1:1/v1/canary")
    out, err = canary.communicate(timeout=240)
    assert (canary.returncode, out) == (1, "")
    assert err.startswith("canary: no answer to GET /stacks")


def test_it_leaves_nothing_after_an_interrupt(service: Service) -> None:
    canary = started(f"{service.url}/v1/interrupted", "--users", "3")
    wait_for(lambda: len(stacks(service, "interrupted")) == 3)
    canary.send_signal(signal.SIGINT)
    out, err = canary.communicate(timeout=240)
    assert (canary.returncode, err, json.loads(out)["left"]) == (0, "", [])
    assert stacks(service, "interrupted") == []


class LyingProxy:
    """A proxy in front of an API that changes answers."""

    def __init__(self, url: str, lie: Lie) -> None:
        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                response = requests.request(
                    self.command,
                    f"{url}{self.path}",
                    data=body,
                    headers={"Content-Type": "application/json"},
                    allow_redirects=False,
                    timeout=60,
                )
                text = response.content
                if text and "json" in response.headers.get("Content-Type", ""):
                    text = json.dumps(lie(self.command, self.path, response.json())).encode()
                self.send_response(response.status_code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

            def log_message(self, *arguments: typing.Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def is_show(method: str, path: str) -> bool:
    return method == "GET" and re.fullmatch("/v1/[^/]+/stacks/[^/]+/[^/]+", path) is not None


def another_output(method: str, path: str, body: Json) -> Json:
    for output in body.get("stack", {}).get("outputs", []):
        if output["output_key"] == "word":
            output["output_value"] = "another"
    return body


def success_in_place_of_failure(method: str, path: str, body: Json) -> Json:
    if is_show(method, path) and body.get("stack", {}).get("stack_status") == "CREATE_FAILED":
        body["stack"]["stack_status"] = "CREATE_COMPLETE"
    return body


def events_backwards(method: str, path: str, body: Json) -> Json:
    return {"events": body["events"][::-1]} if "events" in body else body


class StepBack:
    """Shows a stack in progress again after it was complete, once for each stack."""

    def __init__(self) -> None:
        self._complete: set[str] = set()

    def __call__(self, method: str, path: str, body: Json) -> Json:
        if is_show(method, path) and body.get("stack", {}).get("stack_status") == "UPDATE_COMPLETE":
            if path in self._complete:
                body["stack"]["stack_status"] = "UPDATE_IN_PROGRESS"
            self._complete.add(path)
        return body


class Ghost:
    """Lists each stack without end."""

    def __init__(self) -> None:
        self._stacks: dict[str, Json] = {}

    def __call__(self, method: str, path: str, body: Json) -> Json:
        if is_show(method, path) and "stack" in body:
            self._stacks[body["stack"]["stack_name"]] = body["stack"]
        if "stacks" in body:
            return {"stacks": list(self._stacks.values())}
        return body


@pytest.fixture
def proxies() -> Iterator[list[LyingProxy]]:
    running: list[LyingProxy] = []
    yield running
    for proxy in running:
        proxy.stop()


@pytest.mark.full
@pytest.mark.parametrize(
    ("make_lie", "text"),
    [
        (lambda: another_output, "has the outputs {'word': 'another'"),
        (lambda: success_in_place_of_failure, "it must be CREATE_FAILED in the end"),
        (lambda: events_backwards, "has CREATE COMPLETE before IN_PROGRESS"),
        (StepBack, "is UPDATE_IN_PROGRESS after it was UPDATE_COMPLETE, without a request"),
        (Ghost, "is deleted, but it is listed"),
    ],
    ids=["output", "status", "events", "step back", "ghost"],
)
def test_it_notices_a_lie(
    service: Service,
    proxies: list[LyingProxy],
    monkeypatch: pytest.MonkeyPatch,
    make_lie: Callable[[], Lie],
    text: str,
) -> None:
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import canary  # noqa: PLC0415 - a program beside the package

    proxies.append(LyingProxy(service.url, make_lie()))
    tally = canary.Tally()
    options = argparse.Namespace(users=1, rounds=1, seconds=0, poll=0.1, patience=30, seed=1)
    run = canary.Canary(canary.open_api(f"{proxies[0].url}/v1/liar", tally), options)
    run.run()
    run.clean()
    assert any(text in accusation for accusation in tally.wrong), tally.wrong
    assert stacks(service, "liar") == []


def test_it_does_not_flood_an_api_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import canary  # noqa: PLC0415 - a program beside the package

    tally = canary.Tally()
    options = argparse.Namespace(users=1, rounds=0, seconds=0.2, poll=0.1, patience=30, seed=1)
    canary.Canary(canary.open_api("http://127.0.0.1:1/v1/gone", tally), options).run()
    # Without the pause these would be dozens.
    assert len(tally.wrong) == 1
