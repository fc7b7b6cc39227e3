"""The modules of the console that need no browser: their tests run in Node (*.test.js)."""

import pathlib
import subprocess

import pytest
from harness.server import MissingServer, find_program

FOLDER = pathlib.Path(__file__).parents[2] / "console" / "tests"


def test_the_modules_that_need_no_browser() -> None:
    try:
        node = find_program("node", "nodejs")
    except MissingServer as error:
        pytest.fail(str(error), pytrace=False)
    files = sorted(FOLDER.glob("*.test.js"))
    assert files
    # Node takes some seconds for a hundred tests; a minute is for a machine that is busy.
    outcome = subprocess.run(
        [node, "--test", *files], capture_output=True, text=True, timeout=60, check=False
    )
    if outcome.returncode:
        pytest.fail(f"node --test:\n{outcome.stdout}{outcome.stderr}", pytrace=False)
