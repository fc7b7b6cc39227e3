"""Names of things: the table has all that templates may ask about, and names and ids are found by it."""

from collections.abc import Iterator

import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from stoker.resources.openstack.names import KINDS, NameNotFound, NameNotUnique, find, is_id
from stoker.resources.openstack.service import INTERFACES, Service
from stoker.template.custom_checks import OF_CLOUD

NO_SERVICE = {"expiration", "zaqar.queue"}
"""Names of constraints that a request checks without a service."""
ONLY_RESOLVED = {"manila.security_service"}
"""Kinds that properties name, although Heat has no constraint for them."""


def test_each_custom_constraint_of_a_service_can_be_checked() -> None:
    assert set(KINDS) - ONLY_RESOLVED == OF_CLOUD - NO_SERVICE
    # No property names a stack of another region, a container or an alarm; queues have any names.
    not_named = {"orchestration", "object-store", "application-container", "alarm", "message"}
    assert {kind.service for kind in KINDS.values()} == set(INTERFACES) - not_named


ID = "0a0b0c0d-0000-4000-8000-000000000001"


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


def _resolved_id(scripted: ScriptedService, kind: str, value: str) -> str:
    return find(Service(scripted.adapter(KINDS[kind].service)), KINDS[kind], value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(ID, True), (ID.upper(), True), (ID.replace("-", ""), True), ("web", False), (ID[:-1], False)],
)
def test_ids_are_uuids(value: str, *, expected: bool) -> None:
    assert is_id(value) is expected


def test_a_name_is_found_by_one_list(scripted: ScriptedService) -> None:
    networks = [{"id": "1", "name": "web"}, {"id": "2", "name": "web2"}]
    scripted.answers["GET /networks?name=web"] = Answer(200, {"networks": networks})
    assert _resolved_id(scripted, "neutron.network", "web") == "1"
    assert scripted.requests == ["GET /networks?name=web"]


def test_an_id_is_found_by_one_call(scripted: ScriptedService) -> None:
    scripted.answers[f"GET /networks/{ID}"] = Answer(200, {"network": {"id": ID, "name": "web"}})
    assert _resolved_id(scripted, "neutron.network", ID) == ID
    assert scripted.requests == [f"GET /networks/{ID}"]


def test_a_name_may_look_like_an_id(scripted: ScriptedService) -> None:
    scripted.answers[f"GET /networks?name={ID}"] = Answer(200, {"networks": [{"id": "1", "name": ID}]})
    assert _resolved_id(scripted, "neutron.network", ID) == "1"


def test_a_service_without_a_filter_gets_a_request_for_an_id_first(scripted: ScriptedService) -> None:
    flavors = [{"id": "42", "name": "small"}, {"id": "43", "name": "a/b"}]
    scripted.answers["GET /flavors"] = Answer(200, {"flavors": flavors})
    scripted.answers["GET /flavors/42"] = Answer(200, {"flavor": flavors[0]})
    assert _resolved_id(scripted, "nova.flavor", "42") == "42"
    assert _resolved_id(scripted, "nova.flavor", "small") == "42"
    assert _resolved_id(scripted, "nova.flavor", "a/b") == "43"
    assert scripted.requests[-2:] == ["GET /flavors/a%2Fb", "GET /flavors"]


def test_an_image_has_no_key_in_its_answer(scripted: ScriptedService) -> None:
    scripted.answers[f"GET /images/{ID}"] = Answer(200, {"id": ID, "name": "cirros", "status": "active"})
    assert _resolved_id(scripted, "glance.image", ID) == ID


def test_a_key_pair_is_its_name(scripted: ScriptedService) -> None:
    scripted.answers["GET /os-keypairs/mine"] = Answer(200, {"keypair": {"name": "mine", "id": 7}})
    assert _resolved_id(scripted, "nova.keypair", "mine") == "mine"


@pytest.mark.parametrize("value", ["nothing", ID, "", ".", ".."])
def test_what_nothing_has_is_not_found(scripted: ScriptedService, value: str) -> None:
    scripted.answers[f"GET /volumes?name={value}"] = Answer(200, {"volumes": [{"id": "1", "name": "x"}]})
    with pytest.raises(NameNotFound) as caught:
        _resolved_id(scripted, "cinder.volume", value)
    assert (str(caught.value), caught.value.kind) == (
        f"The Volume ({value}) could not be found.",
        "EntityNotFound",
    )


def test_a_name_of_several_things_is_refused(scripted: ScriptedService) -> None:
    images = [{"id": "1", "name": "cirros"}, {"id": "2", "name": "cirros"}]
    scripted.answers["GET /images?name=cirros"] = Answer(200, {"images": images})
    with pytest.raises(NameNotUnique, match="Several things of kind Image have the name cirros; use an id"):
        _resolved_id(scripted, "glance.image", "cirros")


def test_a_name_with_its_domain(scripted: ScriptedService) -> None:
    scripted.answers["GET /domains?name=acme"] = Answer(200, {"domains": [{"id": "d", "name": "acme"}]})
    users = {"users": [{"id": "u", "name": "alice"}]}
    scripted.answers["GET /users?domain_id=d&name=alice"] = Answer(200, users)
    assert _resolved_id(scripted, "keystone.user", "alice{acme}") == "u"
