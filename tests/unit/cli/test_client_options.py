"""Settings for the calls to services: a section for all of them, and one for each that differs."""

import pathlib

import pytest
from oslo_config import cfg
from stoker.cli.commands.config import in_file, known_options
from stoker.cli.config.client_options import SERVICES, client_options
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.config.options import list_opts
from stoker.keystone.client_options import ClientOptions, ServiceOptions, official_type


def read(tmp_path: pathlib.Path, text: str) -> ClientOptions:
    file = tmp_path / "stoker.conf"
    conf = cfg.ConfigOpts()
    file.write_text(text)
    for group, options in list_opts():
        conf.register_opts(options, group)
    conf([], default_config_files=[str(file)])
    return client_options(conf)


def test_nothing_said_is_the_defaults(tmp_path: pathlib.Path) -> None:
    options = read(tmp_path, "")
    assert options == ClientOptions()
    assert options.of("compute") == ServiceOptions(interface="public", timeout=60.0, connect_retries=2)


def test_a_section_of_a_service_wins_over_that_of_all(tmp_path: pathlib.Path) -> None:
    options = read(
        tmp_path,
        """
[clients]
endpoint_type = internalURL
region_name = north
ca_file = /etc/ca.pem
timeout = 5
[clients_nova]
region_name = south
insecure = true
timeout = 0
max_microversion = 2.79
[clients_neutron]
endpoint_type = admin
insecure = false
""",
    )
    all_others = ServiceOptions(interface="internal", region_name="north", verify="/etc/ca.pem", timeout=5.0)
    assert options.default == options.of("image") == options.of("acme") == all_others
    assert options.of("compute") == ServiceOptions(
        interface="internal", region_name="south", verify=False, timeout=None, max_microversion="2.79"
    )
    assert options.of("network").interface == "admin"
    assert options.of("network").verify == "/etc/ca.pem"


@pytest.mark.parametrize("name", ["block-storage", "volumev3", "volume"])
def test_each_name_of_a_service_type_finds_its_section(tmp_path: pathlib.Path, name: str) -> None:
    options = read(tmp_path, "[clients_cinder]\nregion_name = south\n")
    assert options.of(name).region_name == "south"


def test_a_client_certificate_may_have_its_key_in_a_file_of_its_own(tmp_path: pathlib.Path) -> None:
    options = read(tmp_path, "[clients]\ncert_file = /c.pem\n[clients_nova]\nkey_file = /k.pem\n")
    assert options.default.cert == "/c.pem"
    assert options.of("compute").cert == ("/c.pem", "/k.pem")


def test_heats_addresses_are_taken(tmp_path: pathlib.Path) -> None:
    options = read(
        tmp_path,
        """
[clients_heat]
url = http://127.0.0.1:8004/v1/%(tenant_id)s
[clients_keystone]
auth_uri = http://127.0.0.1:5000
[clients_swift]
endpoint_override = https://swift/v1/AUTH_%(project_id)s
""",
    )
    assert options.of("orchestration").endpoint_override == "http://127.0.0.1:8004/v1/%(project_id)s"
    assert options.of("identity").endpoint_override == "http://127.0.0.1:5000"
    assert options.of("object-store").endpoint_override == "https://swift/v1/AUTH_%(project_id)s"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[clients_nova]\nkey_file = /k.pem\n", "[clients_nova] key_file: cert_file is missing"),
        ("[clients_nova]\nmax_microversion = latest\n", "[clients_nova] max_microversion: must be like 2.79"),
    ],
)
def test_what_cannot_work_is_named(tmp_path: pathlib.Path, text: str, message: str) -> None:
    with pytest.raises(WrongConfiguration) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[clients]\nendpoint_type = private\n", "[clients] endpoint_type"),
        ("[clients_nova]\nendpoint_override = nova:8774\n", "[clients_nova] endpoint_override"),
        ("[clients_nova]\nretries = 3\n", "[clients_nova] retries"),
        ("[clients_noova]\ntimeout = 3\n", "[clients_noova]"),
    ],
)
def test_the_check_of_a_file_finds_what_is_wrong(tmp_path: pathlib.Path, text: str, where: str) -> None:
    file = tmp_path / "stoker.conf"
    file.write_text(text)
    [problem] = in_file(file, known_options(["password"]))
    assert where in problem.where
    assert problem.serious


def test_the_services_have_their_official_types() -> None:
    assert all(official_type(service_type) == service_type for service_type in SERVICES.values())
    assert len(set(SERVICES.values())) == len(SERVICES)
