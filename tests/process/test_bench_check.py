"""No commit makes a resource dearer unseen."""

import pathlib
import subprocess
import sys

import pytest

CHECK = pathlib.Path(__file__).parents[2] / "benchmarks" / "check.py"


@pytest.mark.full
@pytest.mark.alone
def test_resources_cost_no_more_than_is_stored() -> None:
    done = subprocess.run([sys.executable, CHECK], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}; if it has to be: {CHECK} --store"
