"""Properties that only older templates have: they are accepted, and not listed."""

import typing

import pytest
from harness.fake_context import FakeContext, target_of
from harness.resource_types import types_of
from harness.scripted_service import Answer, serving
from stoker.resources import rendering
from stoker.resources.contract.errors import PropertyError

NEUTRON = types_of("openstack.neutron")
NOVA = types_of("openstack.nova")

Json = typing.Any
NET = "11111111-2222-4333-8444-555555555555"
TYPES = {**NEUTRON, **NOVA}
PROPERTIES: dict[tuple[str, str], Json] = {
    ("OS::Neutron::Port", "replacement_policy"): "REPLACE_ALWAYS",
    ("OS::Nova::Server", "admin_user"): "ec2-user",
    ("OS::Neutron::Router", "l3_agent_id"): "agent",
}


@pytest.mark.parametrize(("type_name", "name"), PROPERTIES)
def test_a_property_of_older_templates_is_accepted_and_not_listed(type_name: str, name: str) -> None:
    plugin = TYPES[type_name]()
    values = {name: PROPERTIES[type_name, name], "network": NET, "flavor": "f"}
    properties = {key: value for key, value in values.items() if key in plugin.properties_schema}
    assert target_of(plugin, properties).properties[name] == PROPERTIES[type_name, name]
    assert name not in rendering.resource_type_schema(type_name, plugin)["properties"]


def test_a_ports_replacement_policy_is_not_sent() -> None:
    port = TYPES["OS::Neutron::Port"]()
    target = target_of(port, {"network": NET, "replacement_policy": "REPLACE_ALWAYS"})
    body = port.create_body(target, FakeContext())  # type: ignore[attr-defined]
    assert "replacement_policy" not in body
    assert port.update_body(target, {"replacement_policy"}, FakeContext()) == {}  # type: ignore[attr-defined]


def test_a_single_agent_runs_a_router() -> None:
    router = TYPES["OS::Neutron::Router"]()
    with pytest.raises(PropertyError, match="l3_agent_id and l3_agent_ids exclude each other"):
        router.validate({"l3_agent_id": "a", "l3_agent_ids": ["b"]})
    with pytest.raises(PropertyError, match="distributed router"):
        router.validate({"l3_agent_id": "a", "distributed": True})
    with serving() as scripted:
        scripted.answers["GET /routers/r/l3-agents"] = Answer(200, {"agents": [{"id": "old"}]})
        scripted.answers["DELETE /agents/old/l3-routers/r"] = Answer(204)
        scripted.answers["POST /agents/new/l3-routers"] = Answer(201, {})
        context = FakeContext()
        context.adapter = lambda service, *_: scripted.adapter(service)  # type: ignore[attr-defined]
        target = target_of(router, {"l3_agent_id": "new"}, physical_id="r")
        assert router.has_more(target)  # type: ignore[attr-defined]
        router.after_update(target, {"l3_agent_id"}, context)  # type: ignore[attr-defined]
        assert [request for request in scripted.requests if not request.startswith("GET")] == [
            "DELETE /agents/old/l3-routers/r",
            "POST /agents/new/l3-routers",
        ]
