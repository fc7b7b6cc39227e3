"""`stoker-manage secrets rotate` while the API and the conductors work, as doc/day2.md has it."""

import pathlib
import re
import subprocess

import pytest
from client.serving import Service
from harness.programs import BIN, run
from stoker.sealing.sealer import Sealer

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"password": {"type": "string", "hidden": True}},
    "resources": {
        "user": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"get_param": "password"}, "wait_secs": 1},
        },
        "made": {"type": "OS::Heat::RandomString"},
    },
    "outputs": {"made": {"value": {"get_attr": ["made", "value"]}}},
}
GIVEN = {"environment": {"parameters": {"password": "planted-secret"}}}


class Keys:
    """The keys of a data directory, and the command."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._file = directory / "data" / "stoker.conf"

    @property
    def first(self) -> str:
        [key] = re.findall("^key *= *(.*)$", self._file.read_text(), re.MULTILINE)
        return str(key)

    def put(self, *keys: str) -> None:
        without_keys = [line for line in self._file.read_text().splitlines() if not line.startswith("key")]
        lines = "\n".join(f"key = {key}" for key in keys)
        self._file.write_text("\n".join(without_keys).replace("[secrets]", f"[secrets]\n{lines}") + "\n")

    def rotate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [BIN / "stoker-manage", "--config-file", self._file, "secrets", "rotate", *arguments]
        return run(command)


def started(directory: pathlib.Path) -> Service:
    """It waits for a line of its log, which is that of the one before."""
    (directory / "stoker.log").unlink(missing_ok=True)
    return Service(directory, conductors=1)


@pytest.mark.commit
def test_a_key_is_changed_under_running_daemons_and_the_old_one_removed(tmp_path: pathlib.Path) -> None:
    service = started(tmp_path)
    keys = Keys(tmp_path)
    path = service.created("t", "before", TEMPLATE, **GIVEN)
    value = service.get(path)["stack"]["outputs"][0]["output_value"]
    service.stop()
    old = keys.first
    new = Sealer.generate_key()
    [old_id] = Sealer([old]).fingerprints
    [new_id] = Sealer([new]).fingerprints

    keys.put(new, old)
    service = started(tmp_path)
    later = [service.create("t", f"meanwhile{number}", TEMPLATE, **GIVEN) for number in range(5)]
    checked = keys.rotate("--check")
    assert checked.returncode == 2, checked
    assert f"key {old_id}: still needed, sealed " in checked.stdout
    rotated = keys.rotate("--batch", "2")
    assert rotated.returncode == 0, rotated
    assert re.search("^resource: [0-9]+ rows resealed$", rotated.stdout, re.MULTILINE)
    assert "content: 1 rows resealed\n" in rotated.stdout
    assert "content: 1 environments moved to their new ids\n" in rotated.stdout
    assert rotated.stdout.endswith(f"key {old_id}: not needed any more\n")
    for later_path in later:
        assert service.settled(later_path)["stack_status"] == "CREATE_COMPLETE"
    assert keys.rotate("--check").returncode == 0
    service.stop()

    keys.put(new)
    service = started(tmp_path)
    checked = keys.rotate("--check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert re.fullmatch(f"key {new_id}, the first: sealed [0-9]+ values .*\n", checked.stdout)
    assert service.get(path)["stack"]["outputs"][0]["output_value"] == value
    answer = service.call("PATCH", path, {"parameters": {}})
    assert answer.status == 202, answer
    assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    service.stop()


def test_a_missing_key_is_named_by_its_fingerprint_only(tmp_path: pathlib.Path) -> None:
    service = started(tmp_path)
    keys = Keys(tmp_path)
    service.created("t", "sealed", TEMPLATE, **GIVEN)
    service.stop()
    old = keys.first
    keys.put(Sealer.generate_key())
    refused = keys.rotate("--wait", "1")
    assert refused.returncode == 1, refused
    message = f"key {Sealer([old]).fingerprints[0]} is not among [secrets] key, and sealed "
    assert refused.stderr.startswith(message)
    assert old not in refused.stderr + refused.stdout
    keys.put("not a key")
    wrong = keys.rotate("--check")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "[secrets] key: a sealing key must be base64 of 32, 48 or 64 bytes\n"
