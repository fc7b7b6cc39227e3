"""The list of resource types without a cloud."""

import json

from harness.programs import BIN, run


def test_without_a_cloud_no_type_of_a_service_is_available(tmp_path) -> None:
    config = tmp_path / "stoker.conf"
    config.write_text("[api]\nauth_strategy = none\n")
    command = [BIN / "stoker-manage", "--config-file", config, "type", "list"]
    rows = {row["Type"]: row["Endpoint"] for row in json.loads(run([*command, "-f", "json"]).stdout)}
    assert (rows["OS::Nova::Server"], rows["OS::Heat::Value"]) == ("no", "")
    assert "there is no cloud" in run(command).stdout
