"""A program that the fork server has started is as one that was started for real."""

import json
import pathlib
import signal
import subprocess
import sys
import typing

import pytest
from harness import proctree, programs
from harness.processes import Process, ProcessEnded
from harness.programs import Program
from harness.waiting import wait_for

SCRIPT = """
import json, os, signal, sys, threading, time
import beside
told = {
    "arguments": sys.argv,
    "named": __name__,
    "path": [sys.path[0], *[entry for entry in sys.path if entry == os.environ["PYTHONPATH"]]],
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "files": sorted(int(entry) for entry in os.listdir("/proc/self/fd"))[:-1],
    "input": sys.stdin.read(),
    "threads": len(os.listdir("/proc/self/task")),
    "ignored": [int(n) for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN],
    "ours": sorted(name for name in sys.modules if name.partition(".")[0] in ("harness", "pytest")),
}
print(json.dumps(told), flush=True)
print("on the other one", file=sys.stderr)
if sys.argv[1] == "waits":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    print("waits", flush=True)
    time.sleep(600)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "beside.py").write_text("")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def started(kind: type[Process], script: pathlib.Path, *arguments: str) -> Process:
    command = [script, *arguments] if kind is Program else [sys.executable, script, *arguments]
    log = script.with_name(f"{kind.__name__}.log")
    env = {"PYTHONPATH": "/no/such/folder", "OURS": "1"}
    return kind(command, log=log, env=env, directory=script.parent)


def state(process: Process) -> str:
    state = proctree.read(process.pid)
    return state.state if state is not None else ""


def output_of(kind: type[Process], script: pathlib.Path) -> typing.Any:
    process = started(kind, script, "0")
    wait_for(lambda: process.exit_code == 0, 60, process.tail)
    return json.loads(script.with_name(f"{kind.__name__}.log").read_text().splitlines()[0])


def test_it_finds_itself_as_one_that_was_started_for_real(script: pathlib.Path) -> None:
    real = output_of(Process, script)
    forked = output_of(Program, script)
    assert real["environment"]["OURS"] == "1"
    assert forked == real


@pytest.mark.parametrize("kind", [Process, Program])
def test_signals_reach_it_and_its_end_is_noticed(script: pathlib.Path, kind: type[Process]) -> None:
    process = started(kind, script, "waits")
    process.wait_for_text("\nwaits")
    assert process.exit_code is None
    process.pause()
    wait_for(lambda: state(process) == "T", 60)
    process.resume()
    assert process.stop() == 7
    assert process.exit_code == 7
    process.send(signal.SIGTERM)  # Nothing, now.
    process = started(kind, script, "waits")
    process.wait_for_text("\nwaits")
    process.kill()
    assert process.exit_code == -signal.SIGKILL
    assert state(process) == ""
    with pytest.raises(ProcessEnded, match="ended with 3"):
        started(kind, script, "3").wait_for_text("what it never says")


@pytest.mark.parametrize(
    "last",
    [
        "sys.exit()",
        "sys.exit('it says why')",
        "raise KeyError('broken')",
        "raise KeyboardInterrupt",
        "threading.Thread(target=lambda: (time.sleep(0.2), print('later'))).start()",
        "atexit.register(print, 'at the end'); os.close(2)",
        "print('unread' * 9); os.close(1)",
    ],
)
def test_it_ends_as_one_that_was_started_for_real(tmp_path: pathlib.Path, last: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import atexit, os, sys, threading, time\n{last}\n")
    real = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    forked = programs.run([script])
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout)
    assert forked.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_the_two_outputs_of_one_that_runs_to_its_end_are_shown(script: pathlib.Path) -> None:
    done = programs.run([script, "5"], env={"PYTHONPATH": "/no/such/folder"})
    assert done.returncode == 5
    assert json.loads(done.stdout)["arguments"] == [str(script), "5"]
    assert done.stderr == "on the other one\n"
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run([script, "waits"], env={"PYTHONPATH": ""}, within=0.5)
