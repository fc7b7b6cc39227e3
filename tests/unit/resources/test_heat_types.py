"""The schemas of the types are those of Heat 27; doc/cloud_types.md has a table of what differs, and why."""

import pathlib

import pytest
from harness.heat_schemas import HEAT, REGISTRY, compared
from harness.tested_types import (
    WITHOUT_SERVICE,
    Evidence,
    evidence,
    types_in_source,
    types_in_template,
    types_on_services,
)

ROOT = pathlib.Path(__file__).parents[3]
MODULE = '''
"""OS::Nova::Flavor is not created here."""
PLAIN = "OS::Nova::Server"
TEMPLATE = "resources: {net: {type: OS::Neutron::Net}, host: {type: Acme::Host}}"
def make(kind): return new(f"OS::Keystone::{kind}")
make("User"), make("Volume"), resource("Octavia::Pool"), other(kind="Domain")
'''


def _documented() -> dict[str, list[str]]:
    """The differences that the table of doc/cloud_types.md names, by type."""
    by_type: dict[str, list[str]] = {}
    for line in (ROOT / "doc/cloud_types.md").read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 3:
            by_type.setdefault(cells[0], []).extend(part.strip(" `") for part in cells[1].split(","))
    return by_type


def test_each_type_has_heats_schema(subtests: pytest.Subtests) -> None:
    documented = _documented()
    for name in sorted(HEAT.keys() & set(REGISTRY.names())):
        with subtests.test(name):
            assert sorted(compared(name).differences()) == sorted(documented.get(name, []))


def test_all_types_of_services_are_compared() -> None:
    clouds = {name for name in REGISTRY.names() if REGISTRY.get(name).service}
    assert clouds - HEAT.keys() == set()
    assert len(clouds) >= 115


def test_each_type_of_a_service_is_created_there_or_the_reason_is_listed() -> None:
    """Else the reference of types would say of a new type that no service is needed to test it."""
    clouds = {name for name in REGISTRY.names() if REGISTRY.get(name).service}
    assert clouds - types_on_services(clouds) == set(WITHOUT_SERVICE)


def test_types_that_a_module_creates() -> None:
    created = set(types_in_source(MODULE))
    assert {
        "OS::Nova::Server",
        "OS::Neutron::Net",
        "OS::Keystone::User",
        "OS::Cinder::Volume",
        "OS::Octavia::Pool",
    } <= created
    assert {"OS::Nova::Flavor", "OS::Keystone::Domain", "OS::Zaqar::Queue"}.isdisjoint(created)
    assert list(types_in_template("{'Type': \"AWS::EC2::VPC\"}")) == ["AWS::EC2::VPC"]


def test_how_types_are_tested() -> None:
    names = ("OS::Nova::Server", "OS::Magnum::Cluster", "OS::Neutron::PortChain")
    assert list(evidence(names).values()) == [Evidence.SERVICE, Evidence.CALLS, Evidence.SCHEMA]
