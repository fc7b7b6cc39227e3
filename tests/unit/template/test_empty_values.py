"""Empty texts, lists and maps: one rule says for each property what they mean."""

import json
import typing

import pytest
from fuzz.services import ID, FakeAdapter, _answer, _properties
from harness.fake_context import FakeContext, target_of
from requests import Response
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.contract.errors import PropertyError, StepError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import changed
from stoker.resources.contract.schema import Property
from stoker.resources.openstack.declared import DeclaredType
from stoker.resources.openstack.neutron.port import Port
from stoker.resources.openstack.neutron.subnet import Subnet
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.shapes import Json, JsonMap
from stoker.template.compile import Identity, Limits
from stoker.template.errors import InvalidProperty

REGISTRY = ResourceRegistry.installed()


class Recorder(FakeContext):
    """A step's context that records the bodies of requests, and answers each with the same."""

    def __init__(self, answer: Json) -> None:
        super().__init__()
        self.bodies: list[Json] = []
        self._answer = answer

    def adapter(self, service: str, version: str, microversion: str | None = None) -> typing.Any:
        return _RecordingAdapter(service, self._answer, self.bodies)

    def shared(self, key: Json, make: Json, max_age: float, *, checked_by_use: bool = False) -> Json:
        return make()


class _RecordingAdapter(FakeAdapter):
    def __init__(self, service: str, answer: Json, bodies: list[Json]) -> None:
        super().__init__(service, [])
        self._answer = answer
        self._bodies = bodies

    def request(self, url: str, method: str, **arguments: Json) -> Response:
        if arguments.get("json") is not None:
            self._bodies.append(arguments["json"])
        response = Response()
        response.status_code = 200
        response._content = json.dumps(self._answer).encode()
        return response


def creation(plugin: ResourceType, properties: JsonMap) -> list[Json] | None:
    """The bodies that a creation sends; None: the properties are wrong, or it asks for more first."""
    context = Recorder(_answer(plugin) if isinstance(plugin, DeclaredType) else {"id": ID})
    try:
        target = target_of(plugin, properties)
        plugin.validate(target.properties)
        plugin.handle_create(target, context)
    except (PropertyError, StepError):
        return None
    return context.bodies


def test_no_creation_sends_an_empty_text_that_means_nothing_is_given() -> None:
    wrong = []
    count = 0
    for name in REGISTRY.names():
        plugin = REGISTRY.get(name)
        if not isinstance(plugin, DeclaredType):
            continue
        base = _properties(plugin)
        plain = creation(plugin, base)
        for key, prop in plugin.properties_schema.items():
            if plain is None or prop.type != "string" or not prop.omits_empty or prop.alias_of:
                continue
            sent = creation(plugin, {**base, key: ""})
            count += sent is not None
            wrong += [f"{name}.{key}"] if sent is not None and sent != plain else []
    assert wrong == []
    assert count > 150


def test_no_update_sees_a_difference_between_an_empty_value_and_none() -> None:
    for name in REGISTRY.names():
        schema = REGISTRY.get(name).properties_schema
        for key, prop in schema.items():
            empty: Json = {"string": "", "list": [], "map": {}}.get(prop.type)
            if empty is not None:
                names = changed(schema, {key: prop.default}, {key: empty})
                assert names == (frozenset() if prop.omits_empty or prop.default == empty else {key}), (
                    f"{name}.{key}"
                )


@pytest.mark.parametrize(
    ("prop", "omitted"),
    [
        (Property("string"), True),
        (Property("string", required=True), False),
        (Property("string", empty="sent"), False),
        (Property("list"), False),
        (Property("list", empty="omitted"), True),
        (Property("map"), False),
        (Property("integer"), False),
    ],
)
def test_the_rule(prop: Property, *, omitted: bool) -> None:
    assert prop.omits_empty is omitted


def test_the_rule_holds_on_all_levels() -> None:
    schema = {"items": Property("list", schema=Property("map", schema={"a": Property("string")}))}
    assert changed(schema, {"items": [{"a": None}]}, {"items": [{"a": ""}]}) == frozenset()
    assert changed(schema, {"items": [{"a": None}]}, {"items": []}) == {"items"}


def test_a_volume_with_an_empty_zone_has_the_default_one() -> None:
    volume = REGISTRY.get("OS::Cinder::Volume")
    assert creation(volume, {"size": 1, "availability_zone": ""}) == creation(volume, {"size": 1})


def test_a_port_without_a_list_of_addresses_keeps_those_that_it_has() -> None:
    port = Port()
    target = target_of(port, {"network": ID, "fixed_ips": []}, physical_id="p")
    assert "fixed_ips" not in port.create_body(target, FakeContext())
    assert "fixed_ips" not in port.update_body(target, {"fixed_ips"}, FakeContext())
    without = target_of(port, {"network": ID, "no_fixed_ips": True}, physical_id="p")
    assert port.update_body(without, {"no_fixed_ips"}, FakeContext())["fixed_ips"] == []


def test_an_empty_gateway_means_none_at_all() -> None:
    target = target_of(Subnet(), {"network": ID, "cidr": "10.0.0.0/24", "gateway_ip": ""})
    assert Subnet().create_body(target, FakeContext())["gateway_ip"] is None


def test_a_server_needs_an_image_that_is_not_an_empty_text() -> None:
    server = {"type": "OS::Nova::Server", "properties": {"image": "", "flavor": "m1.tiny"}}
    goal = Goal({"heat_template_version": "2018-08-31", "resources": {"server": server}})
    compiler = GoalCompiler(REGISTRY, Limits())
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    with pytest.raises(InvalidProperty, match="neither an image nor a disk to boot from is given"):
        compiler.compile(goal, Identity("s", "i", "p"), sealer)
