"""The metadata that a guest reads: Heat's shape."""

import pytest
from stoker.resources.context import GuestAccess, Presigned
from stoker.resources.guests import POLL_SERVER_CFN, POLL_TEMP_URL, collect_config, guest_metadata

ACCESS = GuestAccess(
    stack_name="s",
    resource_name="r",
    metadata_url="http://m/v1/",
    access_key="1d.1",
    secret_key="00",
    presigned=Presigned("http://m/v1/x", "ff"),
)
CFN = {
    "metadata_url": "http://m/v1/",
    "access_key_id": "1d.1",
    "secret_access_key": "00",
    "stack_name": "s",
    "path": "r.Metadata",
}


@pytest.mark.parametrize(
    ("transport", "entries"),
    [
        (POLL_SERVER_CFN, {"collectors": ["ec2", "cfn", "local"], "cfn": CFN}),
        (
            POLL_TEMP_URL,
            {
                "collectors": ["ec2", "request", "local"],
                "request": {"metadata_url": "http://m/v1/x?Signature=ff"},
            },
        ),
    ],
)
def test_each_transport_has_the_entries_that_os_collect_config_reads(
    transport: str, entries: dict[str, object]
) -> None:
    assert collect_config(transport, ACCESS, ["ec2"]) == entries


def test_the_metadata_has_that_of_the_template_and_what_the_server_is_to_do() -> None:
    own = {"a": 1, "os-collect-config": {"collectors": ["x"], "polling_interval": 5}, "deployments": ["old"]}
    made = guest_metadata(own, {"collectors": ["cfn"], "cfn": CFN}, [{"id": "1"}])
    assert made == {
        "a": 1,
        "os-collect-config": {"collectors": ["cfn"], "cfn": CFN, "polling_interval": 5},
        "deployments": [{"id": "1"}],
    }
    assert guest_metadata({"os-collect-config": "text"}, {}, [])["os-collect-config"] == {}
