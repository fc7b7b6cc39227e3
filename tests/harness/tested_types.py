"""The resource types that tests create, as the tests' own sources name them.

The reference of types says by it how each one is tested, so it cannot claim more than there is.
"""

import ast
import enum
import pathlib
import re
from collections.abc import Collection, Iterator, Mapping

CLOUD_TESTS = pathlib.Path(__file__).parents[1] / "cloud"
"""The folder of the tests that run on real services."""
CREATING_NOTHING = ("test_bad_input", "test_request_checks", "test_type_list")
"""Modules of that folder that name types without creating anything: they ask for refusals and for lists."""
UNIT_TESTS = CLOUD_TESTS.parent / "unit"
SCRIPTED = "ScriptedService"
"""The name in those modules of unit tests that compare calls."""
SHORT_NAMES = ("OS::Cinder::", "OS::Neutron::", "OS::Nova::")
"""Types that the fixture ``make`` takes by their last part; a module has others where it completes a name."""
WITHOUT_SERVICE: Mapping[str, str] = {
    "OS::Barbican::Order": "Barbican works on orders in a process that the cloud of the tests does not have",
    "OS::Blazar::Host": "the cloud of the tests has no Blazar",
    "OS::Blazar::Lease": "the cloud of the tests has no Blazar",
    "OS::Ironic::Port": "the cloud of the tests has no Ironic",
    "OS::Magnum::Cluster": "the cloud of the tests has no Magnum",
    "OS::Magnum::ClusterTemplate": "the cloud of the tests has no Magnum",
    **dict.fromkeys(
        (
            "OS::Neutron::FlowClassifier",
            "OS::Neutron::IKEPolicy",
            "OS::Neutron::IPsecPolicy",
            "OS::Neutron::IPsecSiteConnection",
            "OS::Neutron::L2Gateway",
            "OS::Neutron::L2GatewayConnection",
            "OS::Neutron::NetworkGateway",
            "OS::Neutron::PortChain",
            "OS::Neutron::PortPair",
            "OS::Neutron::PortPairGroup",
            "OS::Neutron::TaaS::TapFlow",
            "OS::Neutron::TaaS::TapService",
            "OS::Neutron::VPNService",
        ),
        "it needs an extension that the Neutron of the tests does not have",
    ),
    "OS::Trove::Cluster": "the cloud of the tests has no Trove",
    "OS::Trove::Instance": "the cloud of the tests has no Trove",
    "OS::Zun::Container": "the cloud of the tests has no Zun",
}
"""Types of services that no test creates there, with the reason."""
WITHOUT_EXAMPLE: Mapping[str, str] = {
    **WITHOUT_SERVICE,
    "AWS::CloudFormation::Stack": "its template comes from a public address by HTTPS",
    "OS::Zaqar::MistralTrigger": "Keystone refuses the trust that Zaqar makes for a trigger in a stack",
}
"""Types that are in no stack there of a template that is an example, with the reason."""
_IN_TEXT = re.compile(r"""\btype["']?: *["']?((?:OS|AWS)(?:::\w+)+)""", re.IGNORECASE)


class Evidence(enum.StrEnum):
    """How a type of a service is tested, besides the comparison of its schema with that of Heat's type."""

    SERVICE = "on the service"
    CALLS = "schema and calls"
    SCHEMA = "schema"


def evidence(names: Collection[str]) -> Mapping[str, Evidence]:
    """Return how each type is tested.

    :param names: names of types of services.
    """
    on_services = types_on_services(names)
    sources = [file.read_text() for file in UNIT_TESTS.rglob("*.py")]
    in_unit_tests = {name for text in sources if SCRIPTED in text for name in types_in_source(text)}

    def evidence_of(name: str) -> Evidence:
        if name in on_services:
            return Evidence.SERVICE
        return Evidence.CALLS if name in in_unit_tests else Evidence.SCHEMA

    return {name: evidence_of(name) for name in names}


def types_on_services(names: Collection[str]) -> frozenset[str]:
    """Return the types that tests create on real services.

    :param names: names of types of services.
    """
    files = [file for file in CLOUD_TESTS.rglob("*") if file.stem not in CREATING_NOTHING]
    created = {name for file in files if file.suffix == ".py" for name in types_in_source(file.read_text())}
    created |= {
        name for file in files if file.suffix == ".yaml" for name in types_in_template(file.read_text())
    }
    return frozenset(created.intersection(names))


def types_in_template(text: str) -> Iterator[str]:
    """Yield the types of the resources of a template in YAML or JSON."""
    yield from _IN_TEXT.findall(text)


def types_in_source(source: str) -> Iterator[str]:
    """Yield what a module may create: types of templates, and first arguments of calls, completed.

    Some of the names are of no type.
    """
    tree = ast.parse(source)
    texts = [node.value for node in ast.walk(tree) if _is_text(node)]
    prefixes = {*SHORT_NAMES, "OS::", "", *(text for text in texts if text.endswith("::"))}
    for text in texts:
        yield text
        yield from types_in_template(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _is_text(node.args[0]):
            yield from (f"{prefix}{node.args[0].value}" for prefix in prefixes)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
