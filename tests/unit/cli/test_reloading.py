"""SIGHUP: what can change at run time is taken over, what cannot is named, what is wrong changes nothing."""

import pathlib
import subprocess
import sys

import pytest

PROGRAM = """
import sys, pathlib
from stoker.cli.config import options
from stoker.cli.config.options import reload_options
file, *texts = sys.argv[1:]
path = pathlib.Path(file)
arguments = ["--config-file", file, "--host", "h"]
path.write_text(texts[0])
conf = options.load(arguments, program="stoker-conductor")
for text in texts[1:]:
    path.write_text(text) if text else path.unlink()
    print(reload_options(conf, arguments, program="stoker-conductor"))
    print(conf.conductor.weight, conf.conductor.drain, conf.debug, conf.conductor.threads, conf.host)
"""
"""In a process of its own: oslo.config's object is the process's."""
CASES = [
    (
        "[conductor]\nweight=2\n[stacks]\nmax_events_per_stack=5\n",
        "changed: conductor.weight, stacks.max_events_per_stack",
        "2.0 30.0 False 32 h",
    ),
    (
        "[DEFAULT]\ndebug=true\n[conductor]\ndrain=1\n",
        "changed: DEFAULT.debug, conductor.drain",
        "1.0 1.0 True 32 h",
    ),
    (
        "[conductor]\nthreads=2\n[secrets]\nkey=s3cret\n",
        "need a restart: conductor.threads, secrets.key",
        "1.0 30.0 False 32 h",
    ),
    ("[conductor]\nweight=-1\ndrain=9\n", "stays as it is: ", "1.0 30.0 False 32 h"),
    (
        "[conductor]\nthreads=none\ndrain=9\n",
        "stoker.conf: [conductor] threads: invalid literal",
        "1.0 30.0 False 32 h",
    ),
    ("no section", "stays as it is: ", "1.0 30.0 False 32 h"),
    ("", "stays as it is: ", "1.0 30.0 False 32 h"),
    ("[database]\n", "nothing has changed", "1.0 30.0 False 32 h"),
]


def test_each_change_is_reported(tmp_path: pathlib.Path) -> None:
    """Each one comes after a return to the beginning."""
    start = "[api]\n"
    texts = [start] + [text for case in CASES for text in (case[0], start)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / "stoker.conf"), *texts],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for number, (_, status_text, values) in enumerate(CASES):
        status, values_found, _, back = lines[4 * number : 4 * number + 4]
        assert status_text in status
        assert values_found == values
        assert back == "1.0 30.0 False 32 h"
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.parametrize("program", ["stoker-conductor"])
def test_the_values_that_may_change_are_marked_in_the_sample(program: str) -> None:
    sample = (pathlib.Path(__file__).parents[3] / "etc" / "stoker.conf.sample").read_text()
    assert sample.count("can be changed without restarting") >= 4
