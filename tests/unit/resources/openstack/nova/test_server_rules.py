"""A server's rules over several properties, the body that creates it, its attributes: without a cloud."""

import base64
import typing
from collections.abc import Mapping
from dataclasses import replace

import pytest
from harness.fake_context import target_of
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.schema import Property
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.neutron.port import Port
from stoker.resources.openstack.neutron.schema import EXTRA_PROPERTIES, extra_fields
from stoker.resources.openstack.nova.body import (
    devices,
    encoded,
    legacy_devices,
    metadata_field,
    networks_field,
)
from stoker.resources.openstack.nova.compute import SERVER_STATUS, fault_of, is_mark
from stoker.resources.openstack.nova.interfaces import Nic
from stoker.resources.openstack.nova.server import Server
from stoker.template.language import ResourceDefinition

Json = typing.Any
SERVER = Server()


def _resolved(**values: Json) -> dict[str, Json]:
    properties = resolve_properties(SERVER.properties_schema, {"flavor": "f", **values})
    SERVER.validate(properties)
    return properties


def test_metadata_with_deployments_are_of_no_server_with_an_agent():
    properties = {"user_data_format": "SOFTWARE_CONFIG"}
    definition = ResourceDefinition(
        "s", "OS::Nova::Server", "OS::Nova::Server", properties=properties, metadata={"deployments": []}
    )
    with pytest.raises(PropertyError, match="deployments key not allowed in resource metadata"):
        SERVER.validate_in_stack(definition, {})
    SERVER.validate_in_stack(replace(definition, properties={}), {})
    SERVER.validate_in_stack(replace(definition, metadata={"a": "b"}), {})


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, "neither an image nor a disk"),
        ({"image": "i", "block_device_mapping": [{"device_name": "vdb"}]}, "exactly one of volume_id"),
        (
            {"block_device_mapping": [{"device_name": "vda", "volume_id": "v", "snapshot_id": "s"}]},
            "exactly one of volume_id",
        ),
        ({"block_device_mapping": [{"device_name": "vdb", "volume_id": "v"}]}, "neither an image"),
        (
            {
                "block_device_mapping": [{"device_name": "vda", "volume_id": "v"}],
                "block_device_mapping_v2": [{"volume_id": "v"}],
            },
            "cannot both be given",
        ),
        ({"image": "i", "block_device_mapping_v2": [{"volume_id": "v"}]}, "boot_index 0"),
        ({"block_device_mapping_v2": [{"volume_id": "v"}, {"image": "i"}]}, "boot_index 0"),
        ({"image": "i", "block_device_mapping_v2": [{"boot_index": 1}]}, "exactly one of "),
        (
            {"image": "i", "block_device_mapping_v2": [{"swap_size": 1, "ephemeral_size": 1}]},
            "exactly one of ",
        ),
        ({"block_device_mapping_v2": [{"swap_size": 1}]}, "neither an image"),
        ({"image": "i", "networks": [{}]}, "one of network, port"),
        ({"image": "i", "networks": [{"allocate_network": "auto", "network": "n"}]}, "with anything else"),
        (
            {"image": "i", "networks": [{"allocate_network": "auto"}, {"network": "n"}]},
            "in the only entry",
        ),
        ({"image": "i", "networks": [{"port": "p", "fixed_ip": "10.0.0.1"}]}, "fixed_ip and port"),
        ({"image": "i", "networks": [{"network": "n", "floating_ip": "f"}]}, "floating_ip needs a port"),
        ({"image": "i", "networks": [{"port": "p"}], "security_groups": ["g"]}, "give them to the port"),
    ],
)
def test_what_contradicts_itself_is_refused(properties: dict[str, Json], words: str) -> None:
    with pytest.raises(PropertyError, match=words):
        _resolved(**properties)


@pytest.mark.parametrize(
    "properties",
    [
        {"image": "i"},
        {"block_device_mapping": [{"device_name": "vda", "volume_id": "v"}]},
        {"block_device_mapping_v2": [{"volume_id": "v"}, {"swap_size": 1}]},
        {"image": "i", "block_device_mapping_v2": [{"volume_id": "v", "boot_index": -1}]},
        {"image": "i", "networks": [{"uuid": "n", "fixed_ip": "10.0.0.1"}]},
        {"image": "i", "networks": [{"subnet": "s", "floating_ip": "f"}], "security_groups": ["g"]},
        {"image": "i", "networks": [{"allocate_network": "none"}]},
    ],
)
def test_what_heat_takes_is_taken(properties: dict[str, Json]) -> None:
    assert _resolved(**properties)["flavor"] == "f"


def test_nothing_is_refused_for_what_is_not_known_yet() -> None:
    SERVER.validate({"flavor": "f"})


def test_old_names_are_those_of_their_successors() -> None:
    properties = _resolved(networks=[{"uuid": "n"}], block_device_mapping_v2=[{"image_id": "i"}])
    assert properties["networks"][0]["network"] == "n"
    assert properties["block_device_mapping_v2"][0]["image"] == "i"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"flavor": "f"}, {"flavor": "g"}, False),
        ({"flavor": "f"}, {"flavor": "g", "flavor_update_policy": "REPLACE"}, True),
        ({"flavor": "f", "flavor_update_policy": "REPLACE"}, {"flavor": "g"}, False),
        ({"flavor": "f"}, {"flavor": "f", "flavor_update_policy": "REPLACE"}, False),
        ({"image": "i"}, {"image": "j"}, False),
        ({"image": "i"}, {"image": "j", "image_update_policy": "REPLACE"}, True),
        ({"image": "i"}, {"image": "j", "image_update_policy": "REBUILD_PRESERVE_EPHEMERAL"}, False),
        ({"image": "i"}, {"image": None}, True),
        ({"user_data": "a"}, {"user_data": "b"}, True),
        ({"user_data": "a"}, {"user_data": "b", "user_data_update_policy": "IGNORE"}, False),
        ({"user_data": "a"}, {"user_data": "b", "user_data_update_policy": "REBUILD"}, False),
    ],
)
def test_the_policies_say_whether_a_change_replaces(
    before: dict[str, Json], after: dict[str, Json], expected: bool
) -> None:
    schema = SERVER.properties_schema
    base = {"flavor": "f", "image": "i"}
    versions = [resolve_properties(schema, {**base, **part}) for part in (before, after)]
    if after.get("image", "") is None:
        versions[1]["image"] = None
    assert SERVER.needs_replace(*versions) is expected


def test_disks_have_the_fields_of_the_service() -> None:
    properties = _resolved(
        block_device_mapping_v2=[
            {"volume_id": "v", "delete_on_termination": True, "device_name": "vda"},
            {"image": "i", "boot_index": 1, "volume_size": 3, "volume_type": "fast"},
            {"snapshot_id": "s", "boot_index": 2, "disk_bus": "virtio", "device_type": "disk"},
            {"swap_size": 512},
            {"ephemeral_size": 2, "ephemeral_format": "ext4"},
        ]
    )
    stored = {"destination_type": "volume", "delete_on_termination": False}
    blank = {"source_type": "blank", "destination_type": "local", "boot_index": -1}
    assert devices(properties["block_device_mapping_v2"], None, lambda kind, value: f"{kind}/{value}") == [
        {
            **stored,
            "uuid": "cinder.volume/v",
            "source_type": "volume",
            "boot_index": 0,
            "delete_on_termination": True,
            "device_name": "vda",
        },
        {
            **stored,
            "uuid": "glance.image/i",
            "source_type": "image",
            "boot_index": 1,
            "volume_size": 3,
            "volume_type": "fast",
        },
        {
            **stored,
            "uuid": "cinder.snapshot/s",
            "source_type": "snapshot",
            "boot_index": 2,
            "disk_bus": "virtio",
            "device_type": "disk",
        },
        {**blank, "delete_on_termination": True, "guest_format": "swap", "volume_size": 512},
        {**blank, "delete_on_termination": True, "guest_format": "ext4", "volume_size": 2},
    ]


def test_the_image_is_the_first_of_the_disks() -> None:
    [root] = devices([], "i", lambda _, value: value)
    assert (root["uuid"], root["destination_type"], root["boot_index"]) == ("i", "local", 0)


def test_older_disks_have_what_is_given() -> None:
    properties = _resolved(
        block_device_mapping=[
            {"device_name": "vda", "volume_id": "v", "delete_on_termination": True},
            {"device_name": "vdb", "snapshot_id": "s", "volume_size": 2},
        ]
    )
    assert legacy_devices(properties["block_device_mapping"]) == [
        {"device_name": "vda", "volume_id": "v", "delete_on_termination": True},
        {"device_name": "vdb", "snapshot_id": "s", "volume_size": 2},
    ]


@pytest.mark.parametrize(
    ("entries", "nics", "expected"),
    [
        (None, [], "auto"),
        ([], [], "auto"),
        ([{"allocate_network": "none"}], [], "none"),
        (
            [{"allocate_network": None}],
            [Nic(network="n", fixed_ip="10.0.0.1", tag="t")],
            [{"uuid": "n", "fixed_ip": "10.0.0.1", "tag": "t"}],
        ),
        ([{"allocate_network": None}], [Nic(network="n", port="p")], [{"port": "p"}]),
    ],
)
def test_networks_have_the_form_of_the_service(entries: Json, nics: list[Nic], expected: Json) -> None:
    assert networks_field(entries, nics) == expected


def test_metadata_is_text() -> None:
    assert metadata_field({"a": "x", "b": 1, "c": {"d": None}}) == {"a": "x", "b": "1", "c": '{"d": null}'}


@pytest.mark.parametrize(
    ("server", "kind", "words"),
    [
        (
            {"status": "ERROR", "fault": {"message": "No valid host", "code": 500}},
            "ResourceInError",
            'Went to status ERROR due to "Message: No valid host, Code: 500"',
        ),
        (
            {"status": "PAUSED"},
            "ResourceUnknownStatus",
            'Server is not active - Unknown status PAUSED due to "Unknown"',
        ),
    ],
)
def test_a_state_that_does_not_lead_to_active_is_named(server: Json, kind: str, words: str) -> None:
    with pytest.raises(PermanentError) as error:
        SERVER_STATUS.is_pending(server, fault_of)
    assert (error.value.kind, str(error.value)) == (kind, words)


@pytest.mark.parametrize(
    ("status", "pending"), [("BUILD", True), ("ACTIVE", False), ("ACTIVE(x)", False), ("", True)]
)
def test_a_state_on_the_way_to_active_is_waited_for(status: str, pending: bool) -> None:
    assert SERVER_STATUS.is_pending({"status": status}, fault_of) is pending


def _attributes(server: Json, facts: Json = None, **fields: Json) -> Mapping[str, Json]:
    """The attributes of a server that the service last reported so."""
    target = target_of(SERVER, {"flavor": "f"}, data={REMOTE: server, **(facts or {})}, **fields)
    return SERVER.attribute_values(target)


def test_the_attributes_of_a_server_are_fields_of_the_services_answer() -> None:
    fields = {"name": "web", "accessIPv4": "203.0.113.5", "accessIPv6": "2001:db8::5"}
    values = _attributes({**fields, "OS-EXT-SRV-ATTR:instance_name": "instance-1", "console_urls": "token"})
    assert values.keys() == SERVER.attributes_schema.keys()
    assert {name: values[name] for name in fields} == fields
    assert (values["instance_name"], values["console_urls"]) == ("instance-1", None)


def test_a_ports_properties_are_the_same_for_a_servers_entry_and_for_a_port() -> None:
    entry = typing.cast(Property, SERVER.properties_schema["networks"].schema).schema
    extras = typing.cast(Mapping[str, Property], entry)["port_extra_properties"].schema
    assert extras == {name: Port.properties_schema[name] for name in EXTRA_PROPERTIES}


def test_a_servers_port_gets_the_fields_of_its_extra_properties() -> None:
    properties = resolve_properties(
        EXTRA_PROPERTIES,
        {
            "qos_policy": "fast",
            "no_fixed_ips": True,
            "value_specs": {"hint": "a"},
            "allowed_address_pairs": [{"ip_address": "10.0.0.9"}],
        },
    )
    assert extra_fields(properties, lambda kind, name: f"{kind}:{name}") == {
        "admin_state_up": True,
        "binding:vnic_type": "normal",
        "qos_policy_id": "neutron.qos_policy:fast",
        "allowed_address_pairs": [{"ip_address": "10.0.0.9"}],
        "hint": "a",
    }
    assert extra_fields({"qos_policy": "", "mac_address": None}, str) == {}


def test_attributes_show_no_mark() -> None:
    mark = "stoker-0f5b5a4e-5f6c-4e0f-9c1b-2d3e4f5a6b7c"
    assert is_mark(mark)
    assert not is_mark("stoker-mine")
    values = _attributes({"tags": ["a", mark, "stoker-mine"]})
    assert values["tags"] == values["show"]["tags"] == ["a", "stoker-mine"]


def test_addresses_have_their_port_and_network_under_both_names() -> None:
    entry = {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS-MAC:mac_addr": "m", "OS-EXT-IPS:type": "fixed"}
    floating = {**entry, "addr": "203.0.113.5", "OS-EXT-IPS:type": "floating"}
    data = {
        "interfaces": [{"port": "p", "network": "n", "mac": "m", "fixed_ips": [["s", "10.0.0.5"]]}],
        "networks": {"n": {"name": "net"}},
        "subnets": {"s": {"cidr": "10.0.0.0/24"}},
    }
    values = _attributes(
        {"addresses": {"net": [entry, floating]}}, data, metadata={"os-collect-config": {"a": 1}}
    )
    assert values["networks"] == {key: ["10.0.0.5", "203.0.113.5"] for key in ("net", "n")}
    assert values["addresses"]["n"] == values["addresses"]["net"]
    assert values["addresses"]["n"] == [
        {**entry, "port": "p", "subnets": [{"cidr": "10.0.0.0/24"}], "network": {"name": "net"}},
        {**floating, "port": None},
    ]
    assert (values["first_address"], values["os_collect_config"]) == ("10.0.0.5", {"a": 1})


def test_a_server_without_addresses_has_an_empty_first_one() -> None:
    assert _attributes({})["first_address"] == ""


def test_user_data_is_encoded_as_the_service_asks() -> None:
    assert base64.b64decode(encoded("häh")) == "häh".encode()
