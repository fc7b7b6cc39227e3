"""The samples in etc/ are what the generators make of the code."""

import difflib
import pathlib
import subprocess
import sys
from collections.abc import Sequence

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(sys.executable).parent
GENERATORS = {
    "stoker.conf.sample": ["oslo-config-generator", "--config-file", "etc/config-generator.conf"],
    "policy.yaml.sample": ["oslopolicy-sample-generator", "--namespace", "stoker"],
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_sample_is_up_to_date(tmp_path: pathlib.Path, name: str) -> None:
    program, *arguments = GENERATORS[name]
    generated = tmp_path / name
    command = [BIN / program, *arguments, "--output-file", generated]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    difference = lines_that_differ(ROOT / "etc" / name, generated)
    if difference:
        program_line = f".venv/bin/{program} {' '.join(arguments)} --output-file etc/{name}"
        pytest.fail("\n".join([f"make it again: {program_line}", *difference]), pytrace=False)


def lines_that_differ(stored: pathlib.Path, generated: pathlib.Path) -> Sequence[str]:
    """The lines of a unified diff from the stored sample to the generated one, without its two headers."""
    lines = [path.read_text().splitlines() for path in (stored, generated)]
    return list(difflib.unified_diff(*lines, n=1, lineterm=""))[2:]
