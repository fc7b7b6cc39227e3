"""The metadata that a guest reads: Heat's shape; and the defaults of how it reads."""

import pytest
from harness.fake_context import FakeContext, target_of
from stoker.cli.config.options import GROUPS
from stoker.conductor.steps.returned import guest_attributes
from stoker.resources.contract.guests import GuestAccess, Presigned, StackUser
from stoker.resources.guests import (
    POLL_SERVER_CFN,
    POLL_SERVER_HEAT,
    POLL_TEMP_URL,
    TRANSPORTS,
    collect_config,
    guest_metadata,
)
from stoker.resources.heat.software_deployments import OFFERED
from stoker.resources.registry import ResourceRegistry
from stoker.resources.rendering import resource_type_schema

ACCESS = GuestAccess(
    stack_name="s",
    resource_name="r",
    metadata_url="http://m/v1/",
    access_key="1d.1",
    secret_key="00",
    presigned=Presigned("http://m/v1/x", "ff"),
    user=StackUser("http://m/v1/identity/v3", "1d.1", "ee", "p", "s/1d", "r"),
)
HEAT = {
    "auth_url": "http://m/v1/identity/v3",
    "user_id": "1d.1",
    "password": "ee",
    "project_id": "p",
    "stack_id": "s/1d",
    "resource_name": "r",
}
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
        (POLL_SERVER_HEAT, {"collectors": ["ec2", "heat", "local"], "heat": HEAT}),
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
    template_metadata = {
        "a": 1,
        "os-collect-config": {"collectors": ["x"], "polling_interval": 5},
        "deployments": ["old"],
    }
    metadata = guest_metadata(template_metadata, {"collectors": ["cfn"], "cfn": CFN}, [{"id": "1"}])
    assert metadata == {
        "a": 1,
        "os-collect-config": {"collectors": ["cfn"], "cfn": CFN, "polling_interval": 5},
        "deployments": [{"id": "1"}],
    }
    assert guest_metadata({"os-collect-config": "text"}, {}, [])["os-collect-config"] == {}


@pytest.mark.parametrize(
    ("name", "option", "configured"),
    [
        ("OS::Nova::Server", "default_software_config_transport", POLL_TEMP_URL),
        ("OS::Heat::DeployedServer", "default_software_config_transport", POLL_TEMP_URL),
        ("OS::Heat::SoftwareDeployment", "default_deployment_signal_transport", "NO_SIGNAL"),
        ("OS::Heat::StructuredDeploymentGroup", "default_deployment_signal_transport", "NO_SIGNAL"),
    ],
)
def test_an_option_is_the_default_of_transports(name: str, option: str, configured: str) -> None:
    registry = ResourceRegistry.installed(defaults={option: configured, "metadata_url": "http://m"})
    [default] = [
        prop["default"]
        for key, prop in resource_type_schema(name, registry.get(name))["properties"].items()
        if key in ("software_config_transport", "signal_transport")
    ]
    assert default == configured
    assert ResourceRegistry.installed().get(name).properties_schema != registry.get(name).properties_schema


def test_the_options_offer_what_servers_can_do() -> None:
    offered = {
        option.dest: option.type.choices
        for option in GROUPS["guests"]
        if option.type.type_name == "string value"
    }
    assert offered == {
        "default_software_config_transport": dict.fromkeys(TRANSPORTS),
        "default_deployment_signal_transport": dict.fromkeys(OFFERED),
    }


@pytest.mark.parametrize("name", ["OS::Nova::Server", "OS::Heat::DeployedServer"])
def test_a_server_with_an_agent_has_the_keys_as_an_attribute(name: str) -> None:
    plugin = ResourceRegistry.installed().get(name)
    is_nova = name == "OS::Nova::Server"
    properties = {"user_data_format": "SOFTWARE_CONFIG", "flavor": "f"} if is_nova else {}
    config = guest_attributes(plugin, target_of(plugin, properties), FakeContext())["os_collect_config"]
    assert config["collectors"] == [*(["ec2"] if is_nova else []), "cfn", "local"]
    assert config["cfn"]["path"] == "thing.Metadata"


def test_a_server_without_an_agent_has_no_keys() -> None:
    plugin = ResourceRegistry.installed().get("OS::Nova::Server")
    assert not guest_attributes(plugin, target_of(plugin, {"flavor": "f"}), FakeContext())
