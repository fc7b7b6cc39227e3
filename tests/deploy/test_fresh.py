"""The end of `make fresh` before its time: nothing of the new machine is left."""

import os
import pathlib
import signal
import subprocess

import pytest
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("registries")]


def processes_of(folder: pathlib.Path) -> list[str]:
    """Return the commands of the processes that work on a folder, but for `rm`, which removes it."""
    lines = subprocess.run(
        ["ps", "-wweo", "args"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [line for line in lines if str(folder) in line and "rm -rf" not in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process_no_mount_and_no_file(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    command = [ROOT / "tools" / "fresh" / "run", "bookworm"]
    output = tmp_path / "output"
    folders = tmp_path / "folders"
    folders.mkdir()
    with output.open("w") as stream:
        running = subprocess.Popen(
            command,
            env={**os.environ, "TMPDIR": str(folders)},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    wait_for(lambda: list(folders.glob("fresh.*/root/etc")), 600, output.read_text)
    assert processes_of(folders)
    running.send_signal(number)
    running.wait(60)
    assert running.returncode != 0
    wait_for(lambda: not list(folders.iterdir()), 120)
    wait_for(lambda: not processes_of(folders), 60)
    assert str(folders) not in pathlib.Path("/proc/self/mountinfo").read_text()
