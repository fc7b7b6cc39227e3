"""An operator sees which resource types their cloud has no service for."""

import json
import pathlib

from harness.cloud.access import Cloud
from harness.programs import BIN, run

MAGNUM = "container-infrastructure-management"
"""The type of a service that no test starts."""


def listed(config: pathlib.Path, *arguments: str) -> dict[str, tuple[str, str]]:
    """Service and endpoint by type."""
    command = [BIN / "stoker-manage", "--config-file", config, "type", "list", "-f", "json", *arguments]
    done = run(command)
    assert done.returncode == 0, done.stderr
    return {row["Type"]: (row["Service"], row["Endpoint"]) for row in json.loads(done.stdout)}


def test_types_without_an_endpoint_are_listed_so(cloud: Cloud, tmp_path: pathlib.Path) -> None:
    config = tmp_path / "stoker.conf"
    config.write_text(cloud.stoker_options())
    types = listed(config)
    assert types["OS::Nova::Server"] == ("compute", "yes")
    assert types["OS::Magnum::Cluster"] == (MAGNUM, "no")
    assert types["OS::Heat::RandomString"] == ("", "")
    missing = listed(config, "--unavailable")
    assert {endpoint for _, endpoint in missing.values()} == {"no"}
    # Other tests start and stop services meanwhile.
    before, after = (
        {name: row for name, row in each.items() if row[1] == "no"} for each in (types, listed(config))
    )
    assert before.items() & after.items() <= missing.items() <= before.items() | after.items()
    config.write_text(cloud.stoker_options() + "[clients_magnum]\nendpoint_override = http://magnum.test\n")
    assert listed(config)["OS::Magnum::Cluster"] == (MAGNUM, "yes")
    config.write_text(cloud.stoker_options().replace("username = stoker", "username = nobody"))
    refused = run([BIN / "stoker-manage", "--config-file", config, "type", "list"])
    assert refused.returncode == 1
    assert refused.stderr.startswith("[trustee]: ")
