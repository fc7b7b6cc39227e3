"""The samples in etc/ are what the generators make of the code."""

import pathlib
import subprocess
import sys

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
    stored = (ROOT / "etc" / name).read_text()
    assert stored == generated.read_text(), (
        f"make it again: {program} {' '.join(arguments)} --output-file etc/{name}"
    )
