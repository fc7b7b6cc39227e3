"""The sealing key is lost: secrets are lost with it, which is said, and all else works."""

import pathlib
import re
import subprocess

import pytest
from client.serving import Service
from harness.processes import ProcessEnded
from harness.programs import BIN, run
from stoker.sealing.sealer import Sealer

SECRET = {
    "heat_template_version": "2018-08-31",
    "parameters": {"password": {"type": "string", "hidden": True}},
    "resources": {
        "user": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "password"}}}
    },
    "outputs": {"said": {"value": {"get_attr": ["user", "output"]}}},
}
PLAIN = {
    "heat_template_version": "2018-08-31",
    "resources": {"user": {"type": "OS::Heat::TestResource", "properties": {"value": "plain"}}},
}


def outputs(service: Service, path: str) -> dict[str, str | None]:
    return {one["output_key"]: one["output_value"] for one in service.get(path)["stack"]["outputs"]}


def forget(config: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return run([BIN / "stoker-manage", "--config-file", config, "secrets", "forget"])


def ends(service: Service, path: str, status: str) -> None:
    assert service.settled(path)["stack_status"] == status


def test_without_the_key_secrets_are_lost_and_nothing_else(tmp_path: pathlib.Path) -> None:
    service = Service(tmp_path)
    plain = service.created("t", "plain", PLAIN)
    sealed = service.created("t", "sealed", SECRET, parameters={"password": "first"})
    service.stop()
    config = service.data / "stoker.conf"
    config.write_text(re.sub("(?m)^key *=.*$", f"key = {Sealer.generate_key()}", config.read_text()))
    check = run([BIN / "stoker-manage", "--config-file", config, "secrets", "rotate", "--check"])
    assert (check.returncode, "is not among [secrets] key" in check.stderr) == (1, True), check
    log = tmp_path / "stoker.log"
    log.unlink()  # The next process is ready once it says so itself.
    with pytest.raises(ProcessEnded, match="if it is lost, run stoker-manage secrets forget"):
        Service(tmp_path)
    log.unlink()
    assert forget(config).returncode == 0
    assert "nothing is lost" in forget(config).stderr

    service = Service(tmp_path)
    changed = {**PLAIN, "description": "changed"}
    assert service.call("PUT", plain, {"template": changed}).status == 202
    ends(service, plain, "UPDATE_COMPLETE")
    new = service.created("t", "new", SECRET, parameters={"password": "new"})
    assert outputs(service, new) == {"said": "new"}
    assert "first" not in str(outputs(service, sealed))
    refused = service.call("PATCH", sealed, {})
    assert (refused.status, refused.error["type"]) == (409, "SecretUnreadable")
    assert service.call("DELETE", sealed).status == 204
    ends(service, sealed, "DELETE_COMPLETE")
    service.stop()
