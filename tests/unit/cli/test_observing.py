"""A report on SIGUSR2 goes where the configuration wants it, and one section that breaks ends nothing."""

import pathlib
import subprocess
import sys

PROGRAM = """
import os, pathlib, signal, sys, threading, time
from stoker.cli.daemon import threading_backend
from stoker.cli.config import options
from stoker.cli.daemon.main_loop import SignalQueue
from stoker.cli.wiring.reports import start_reports
folder = pathlib.Path(sys.argv[1])
conf = options.load(["--config-file", str(folder / "stoker.conf")], program="stoker-api")
texts = iter(["it is the first", "it is the second"])
calls = []
reports = folder / "reports"

def section():
    calls.append(time.monotonic())
    if len(calls) == 4:
        threading.Event().wait()
    return next(texts)

def wait_for(condition):
    while not condition():
        time.sleep(0.01)

SignalQueue().report = start_reports(conf, "stoker-api", {"Ours": section})
for count in range(1, 5):  # The fourth begins when the third, whose section breaks, has ended.
    os.kill(os.getpid(), signal.SIGUSR2)
    wait_for(lambda: len(calls) == count)
    if reports.exists() and count < 3:
        wait_for(lambda: len(list(reports.iterdir())) == count)
        time.sleep(1.1)  # The name of a report's file holds the second.
print("still here")
"""


def run(folder: pathlib.Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "stoker.conf").write_text(f"[secrets]\nkey = very-secret\n{text}")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


def test_reports_are_files_where_a_directory_is_configured(tmp_path: pathlib.Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    done = run(tmp_path, f"[oslo_reports]\nlog_dir = {reports}\n")
    texts = [path.read_text() for path in sorted(reports.iterdir())]
    assert all(path.name.startswith("stoker-api_gurumeditation_") for path in reports.iterdir())
    assert ["it is the first" in texts[0], "it is the second" in texts[1], len(texts)] == [True, True, 2]
    assert "very-secret" not in "".join(texts)
    assert "Unable to run Guru Meditation Report" in done.stderr, "of the third, whose section breaks"
    assert done.stdout == "still here\n"


def test_a_report_goes_to_standard_error_otherwise(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, "")
    assert "it is the second" in done.stderr
    assert "product = Stoker" in done.stderr
    assert "very-secret" not in done.stderr
