"""`stoker serve`: everything in one process, with no other server."""

import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from harness import templates
from harness.deployment import call
from harness.ports import free_port
from harness.processes import Process
from harness.programs import BIN, Program, run
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]


class Embedded:
    """A `stoker serve` that can be killed and started again on the same data."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: Process | None = None
        self._folder = folder

    def start(self, *arguments: str, kind: type[Process] = Program) -> Process:
        command = [BIN / "stoker", "serve", "--data-dir", self.data, "--port", str(self.port), *arguments]
        log = self._folder / "serve.log"
        log.write_text("")
        self.process = kind(command, log=log, env={"PYTHONWARNINGS": "ignore"})
        self.process.wait_for_text("use it with")
        return self.process

    def status(self, path: str) -> str:
        code, answer = call(self.url, "GET", path)
        return str(answer["stack"]["stack_status"]) if code == 200 else str(code)

    def manage(self, *arguments: str) -> str:
        done = run([BIN / "stoker-manage", "--config-file", self.data / "stoker.conf", *arguments])
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def embedded(tmp_path: pathlib.Path) -> Iterator[Embedded]:
    started = Embedded(tmp_path)
    yield started
    if started.process is not None and started.process.is_running:
        started.process.kill()


def create(embedded: Embedded, name: str, template: object, **fields: object) -> str:
    body = {"stack_name": name, "template": template, **fields}
    code, answer = call(embedded.url, "POST", "/v1/demo/stacks", body)
    assert code == 201, answer
    return f"/v1/demo/stacks/{name}/{answer['stack']['id']}"


@pytest.mark.commit
def test_a_stack_in_progress_continues_after_the_whole_process_was_killed(embedded: Embedded) -> None:
    first = embedded.start(kind=Process)
    hooks = {"resource_registry": {"resources": {"l2_0": {"hooks": "pre-create"}}}}  # It cannot end before.
    path = create(embedded, "survivor", templates.layered(3, 4, wait_secs=2), environment=hooks)
    wait_for(lambda: "CREATE_COMPLETE" in str(call(embedded.url, "GET", f"{path}/resources")[1]), 60)
    first.kill()
    embedded.start()
    assert embedded.status(path) == "CREATE_IN_PROGRESS"
    go_on = {"continue": None}
    wait_for(lambda: call(embedded.url, "POST", f"{path}/actions", go_on)[0] == 200, 60)
    wait_for(lambda: embedded.status(path) == "CREATE_COMPLETE", 60, lambda: embedded.status(path))


@pytest.mark.commit
def test_it_prints_the_line_for_the_client_and_stops_with_0(embedded: Embedded) -> None:
    process = embedded.start("--conductors", "1")
    before, line, _ = process.text().partition(f"export OS_AUTH_TYPE=none OS_ENDPOINT={embedded.url}/v1/demo")
    assert line
    assert len(before.splitlines()) <= 3, before
    assert process.stop() == 0


def test_a_signal_makes_it_report_on_all_its_parts(embedded: Embedded, tmp_path: pathlib.Path) -> None:
    with_news = tmp_path / "debug.conf"
    with_news.write_text("[DEFAULT]\ndebug = true\n")
    process = embedded.start("--conductors", "2", "--config-file", str(with_news))
    wait_for(lambda: process.text().count("The ring has 2 members now") >= 2, 60, process.text)
    path = create(embedded, "waits", templates.flat(1, wait_secs=3600))
    stack_id = path.rsplit("/", 1)[1]
    wait_for(lambda: "CREATE_IN_PROGRESS" in str(call(embedded.url, "GET", f"{path}/resources")[1]), 60)
    process.send(signal.SIGUSR2)
    process.wait_for_text("Duties of conductor-2")
    wait_for(lambda: process.text().count("\nTaskDue ") == 2, 60)
    report = process.text()
    for host in ("conductor-1", "conductor-2"):
        part = report.split(f"Ring of {host} ")[1]
        assert re.search(rf"this conductor is {host}/\w+, active\nversion \w+, 2 members:", part)
        assert f"Running steps of {host} " in part
    assert len(re.findall(rf"\n\d+ +1 +{stack_id} +\S+ +CREATE +20\S+Z", report)) == 1
    key = re.search(r"key = (\S+)", (embedded.data / "stoker.conf").read_text())
    assert key is not None
    assert key[1] not in report
    assert embedded.status(path) == "CREATE_IN_PROGRESS"


def test_its_configuration_holds_the_key_for_its_owner_only_and_serves_the_admin(
    embedded: Embedded,
) -> None:
    embedded.start()
    mode = stat.S_IMODE(os.stat(embedded.data / "stoker.conf").st_mode)
    assert mode == 0o600
    assert "every one of 4096 shards has one owner" in embedded.manage("ring", "rebalance", "--wait")
    printed = embedded.manage("ring", "show", "-f", "value", "-c", "Host", "-c", "Shards")
    shares = dict(line.split() for line in printed.splitlines())
    assert set(shares) == {"conductor-1", "conductor-2", "conductor-3"}
    assert sum(map(int, shares.values())) == 4096
    drained = embedded.manage("ring", "drain", "conductor-1", "--wait").splitlines()
    assert drained == [
        "conductor-1 is asked to be draining",
        "conductor-1 is draining: it owns 0 shards; steps that run there: 0",
    ]
    back = embedded.manage("ring", "undrain", "conductor-1", "--wait").splitlines()[-1]
    assert back.startswith(f"conductor-1 is active: it owns {shares['conductor-1']} shards")
    *_, summary = embedded.manage("ring", "plan", "--leave", "conductor-1").splitlines()
    moved, shares_text = summary.split("% of the ring moves, with 0 stacks in progress; then the shares are ")
    assert 33 <= int(moved) <= 37
    assert set(shares_text.split(", ")) == {"conductor-2 50%", "conductor-3 50%"}
    path = create(embedded, "owned", templates.flat(1, wait_secs=-1))
    stack_id = path.rsplit("/", 1)[1]
    owner = embedded.manage("ring", "show", "--stack", stack_id, "-f", "value", "-c", "Owner").strip()
    assert owner in shares
    busy = embedded.manage("ring", "show", "-f", "value", "-c", "Host", "-c", "Stacks")
    counts = dict(line.split() for line in busy.splitlines())
    assert {host for host, count in counts.items() if count == "1"} == {owner}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--conductors", "0"], "--conductors must be 1 or more, not 0"),
        (["--port", "x"], "invalid int value: 'x'"),
        (["--config-file", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_arguments_are_errors(tmp_path: pathlib.Path, arguments: list[str], message: str) -> None:
    command = [BIN / "stoker", "serve", "--data-dir", tmp_path / "data", *arguments]
    done = run(command)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported(embedded: Embedded, tmp_path: pathlib.Path) -> None:
    embedded.start()
    command = [BIN / "stoker", "serve", "--data-dir", tmp_path / "other", "--port", str(embedded.port)]
    done = run(command)
    assert done.returncode == 1
    assert "cannot start" in done.stderr
    assert str(embedded.port) in done.stderr


def test_the_demonstration_runs_and_prints_only_its_own_lines(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, ROOT / "examples" / "demo.py"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert not list(tmp_path.iterdir()), "it removes what it has made"
    assert "warning" not in done.stdout.lower()
    assert "CREATE_COMPLETE" in done.stdout
    assert "was taken away while the stack was being created" in done.stdout
    assert done.stdout.rstrip().endswith("although a conductor was lost.")


def test_its_metrics_are_served_where_they_are_enabled(embedded: Embedded, tmp_path: pathlib.Path) -> None:
    extra = tmp_path / "metrics.conf"
    extra.write_text("[metrics]\napi = true\n")
    embedded.start("--conductors", "1", "--config-file", str(extra))
    assert call(embedded.url, "GET", "/v1/demo/stacks")[0] == 200
    with urllib.request.urlopen(f"{embedded.url}/metrics", timeout=60) as answer:
        assert 'route="/v1/{tenant_id}/stacks",status="200"} 1.0' in answer.read().decode()
