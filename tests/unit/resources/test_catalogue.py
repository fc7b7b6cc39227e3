"""Which resource types are installed, how they are found, and what a broken plugin does."""

import logging
import sys
import types

import pytest
from harness.resource_types import types_of
from stoker.resources import heat_types
from stoker.resources.contract.errors import AbsentType, UnknownType
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import SupportStatus
from stoker.resources.registry import ResourceRegistry

RESOURCE_TYPES = types_of("heat")


class Old(ResourceType):
    description = "An old type."
    support_status = SupportStatus("DEPRECATED", version="2014.1")


class Secret(ResourceType):
    support_status = SupportStatus("HIDDEN", version="2014.1")


class New(ResourceType):
    description = "A new type."
    support_status = SupportStatus(version="7.0.0")


ASK = "Ask the operator for a plugin that has it (entry point group stoker.resource_types)"


@pytest.fixture
def catalogue():
    return ResourceRegistry({"Acme::New": New, "Acme::Old": Old, "Acme::Secret": Secret})


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Installs entry points of a namespace of their own: name -> the object they lead to, or None."""

    def install(objects):
        module = types.ModuleType("acme_types")
        lines = []
        for name, value in objects.items():
            if value is not None:
                setattr(module, name, value)
            lines.append(f"{name} = acme_types:{name}")
        monkeypatch.setitem(sys.modules, "acme_types", module)
        group = f"acme.{tmp_path.name}"  # stevedore remembers what it has found in a group
        info = tmp_path / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        monkeypatch.syspath_prepend(str(tmp_path))
        # Else a file stays in the user's cache directory for each run of the tests.
        monkeypatch.setattr("stevedore._cache._c._disable_caching", True)
        return ResourceRegistry.installed(group)

    return install


def test_our_own_types_are_installed():
    installed = ResourceRegistry.installed()
    visible_names = {name for name, declared in RESOURCE_TYPES.items() if not declared.support_status.hidden}
    assert visible_names <= set(installed.names())
    for name, declared in RESOURCE_TYPES.items():
        assert type(installed.get(name)) is declared


def test_one_instance_serves_all(catalogue):
    assert catalogue.get("Acme::New") is catalogue.get("Acme::New")


def test_an_unknown_type_is_answered_with_a_close_one(catalogue):
    with pytest.raises(UnknownType) as caught:
        catalogue.get("Acme::Nwe")
    assert str(caught.value) == (
        'The Resource Type (Acme::Nwe) could not be found. Did you mean "Acme::New"?'
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "OS::Neutron::LBaaS::Pol",
            '. Did you mean "OS::Neutron::LBaaS::Pool"? It is a type of Heat for Neutron (networks) that '
            "does not come with Stoker. Use OS::Octavia::Pool, or ask the operator to map it, as the sample "
            "etc/older_types does",
        ),
        ("OS::Nova::Sever", '. Did you mean "OS::Nova::Server"?'),
        ("Umbrella::Rain", ". No installed plugin has types that begin with Umbrella::"),
    ],
)
def test_an_unknown_type_is_answered_with_who_can_bring_it(name, advice):
    with pytest.raises(UnknownType) as caught:
        ResourceRegistry.installed().get(name)
    assert str(caught.value) == f"The Resource Type ({name}) could not be found{advice}"


@pytest.mark.parametrize(
    ("name", "service", "advice"),
    [
        ("AWS::RDS::DBInstance", "heat", ASK),
        ("OS::Sahara::Cluster", "sahara", f"The project Sahara is retired. {ASK}"),
        (
            "OS::Heat::HARestarter",
            "heat",
            "Mark a resource as unhealthy in its place: the stack's next update replaces it",
        ),
        (
            "OS::Nova::FloatingIP",
            "nova",
            "Use OS::Neutron::FloatingIP, or ask the operator to map it, as the sample etc/older_types does",
        ),
        (
            "OS::Neutron::RouterGateway",
            "neutron",
            "Use OS::Neutron::Router: the service of this type is gone",
        ),
    ],
)
def test_a_type_of_heat_that_is_lacking_is_answered_as_one_without_a_service(name, service, advice):
    with pytest.raises(AbsentType) as caught:
        ResourceRegistry.installed().get(name)
    assert str(caught.value) == (
        f"HEAT-E99001 Service {service} is not available for resource type {name}, reason: the type does not "
        f"come with Stoker. {advice}"
    )


@pytest.mark.parametrize(("service", "client"), [("network", "neutron"), ("load-balancer", "octavia")])
def test_a_type_whose_service_a_cloud_lacks_is_refused_in_heats_words(service, client):
    assert heat_types.unavailable("OS::Octavia::Pool", service) == (
        f"HEAT-E99001 Service {client} is not available for resource type OS::Octavia::Pool, reason: "
        f"{client} {service} endpoint is not in service catalog."
    )


def test_the_types_of_heat_that_are_lacking_are_those_that_are_not_installed():
    installed = ResourceRegistry.installed()
    assert not [name for name in heat_types.HEAT_TYPES if name in installed]
    instead = set(heat_types._INSTEAD.values())
    assert instead <= set(installed.names())
    assert heat_types._INSTEAD.keys() <= heat_types.HEAT_TYPES


def test_an_unknown_type_like_no_other_gets_no_advice(catalogue):
    with pytest.raises(UnknownType, match=r"^The Resource Type \(xyz\) could not be found\.$"):
        catalogue.get("xyz")


def test_hidden_types_work_but_are_not_listed(catalogue):
    assert "Acme::Secret" in catalogue
    assert isinstance(catalogue.get("Acme::Secret"), Secret)
    assert catalogue.names() == ["Acme::New", "Acme::Old"]
    assert catalogue.matching("Acme::Secret") == []
    with pytest.raises(UnknownType) as caught:
        catalogue.get("Acme::Secrets")
    assert '"Acme::Secret"' not in str(caught.value)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["Acme::New", "Acme::Old"]),
        ({"pattern": "Acme::N"}, ["Acme::New"]),
        ({"pattern": ".*Old$"}, ["Acme::Old"]),
        ({"pattern": "New"}, []),
        ({"pattern": "("}, []),
        ({"version": "7.0.0"}, ["Acme::New"]),
        ({"version": "7"}, []),
        ({"support_status": "DEPRECATED"}, ["Acme::Old"]),
        ({"support_status": "HIDDEN"}, []),
        ({"pattern": "Acme", "version": "2014.1", "support_status": "SUPPORTED"}, []),
    ],
)
def test_types_are_filtered(catalogue, filters, names):
    assert catalogue.matching(**filters) == names


def test_an_unknown_support_status_is_refused(catalogue):
    with pytest.raises(ValueError, match="should be one of UNKNOWN, SUPPORTED"):
        catalogue.matching(support_status="GOOD")


def test_types_of_third_parties_are_found(plugins):
    assert plugins({"one": {"Acme::New": New}, "two": {"Acme::Old": Old}}).names() == [
        "Acme::New",
        "Acme::Old",
    ]


@pytest.mark.parametrize(
    "broken", [None, ["Acme::Bad"], {"Acme::Bad": object}, {"Acme::Bad": New()}, {5: New}]
)
def test_a_broken_plugin_is_logged_and_left_out(plugins, caplog, broken):
    with caplog.at_level(logging.ERROR):
        registry = plugins({"bad": broken, "good": {"Acme::New": New}})
    assert registry.names() == ["Acme::New"]
    assert "bad" in caplog.text
    assert "left out" in caplog.text


def test_a_type_registered_twice_is_logged_and_the_first_entry_point_wins(plugins, caplog):
    with caplog.at_level(logging.ERROR):
        registry = plugins({"b": {"Acme::New": Old}, "a": {"Acme::New": New}})
    assert type(registry.get("Acme::New")) is New
    assert "Acme::New of plugin b is registered already" in caplog.text
