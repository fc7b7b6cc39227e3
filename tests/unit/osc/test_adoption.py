"""Objects of the cloud as resources of a template; and how the client finds them."""

import typing
from collections.abc import Mapping

import pytest
import requests
from keystoneauth1 import exceptions as ksa_exc
from osc_lib import exceptions as exc
from stoker.osc.adopted_template import DELETE, describe
from stoker.osc.cloud_objects import NETWORK, SERVER, VOLUME, CloudObjects, Inventory, RouterLink
from stoker.osc.pages import MOST_PAGES, PageTrail

Json = typing.Any
NET = {"id": "n1", "name": "a net", "admin_state_up": True, "shared": False, "port_security_enabled": True}
SUBNET = {
    "id": "s1-and-more",
    "name": "",
    "network_id": "n1",
    "cidr": "10.0.0.0/24",
    "ip_version": 4,
    "enable_dhcp": True,
    "gateway_ip": None,
}
PORT = {
    "id": "p1",
    "name": "front",
    "network_id": "n1",
    "mac_address": "fa:16:3e:00:00:01",
    "device_id": "i1",
    "dns_name": "web",
    "fixed_ips": [{"subnet_id": "s1-and-more", "ip_address": "10.0.0.5"}],
    "allowed_address_pairs": [{"ip_address": "10.0.0.9", "mac_address": "fa:16:3e:00:00:01"}],
    "security_groups": ["g1", "elsewhere"],
}
WEB = {"id": "i1", "name": "web", "flavor": {"original_name": "tiny"}, "image": {"id": "image"}}


def group(key: str, remote: str | None) -> Json:
    rule = {"direction": "ingress", "ethertype": "IPv4", "port_range_min": 0, "remote_group_id": remote}
    return {"id": key, "name": key, "description": "", "security_group_rules": [rule]}


def properties(objects: Mapping[str, list[Json]], **facts: Json) -> dict[str, Json]:
    resources = describe(Inventory(objects, **facts)).template["resources"]
    return {name: resource["properties"] for name, resource in resources.items()}


def test_what_is_adopted_together_refers_to_one_another_and_the_rest_is_named_by_id() -> None:
    described = properties(
        {"network": [NET], "subnet": [SUBNET], "port": [PORT], "server": [WEB]},
        ports={"i1": [PORT, {**PORT, "id": "p2", "network_id": "n2"}]},
    )
    network = {"get_resource": "network_a_net"}
    assert described["network_a_net"] == {"name": "a net"}
    assert described["subnet_s1-and-m"] == {"network": network, "cidr": "10.0.0.0/24", "gateway_ip": ""}
    assert described["port_front"] == {
        "network": network,
        "name": "front",
        "fixed_ips": [{"subnet": {"get_resource": "subnet_s1-and-m"}, "ip_address": "10.0.0.5"}],
        "security_groups": ["g1", "elsewhere"],
        "allowed_address_pairs": [{"ip_address": "10.0.0.9"}],
    }
    assert described["server_web"]["networks"] == [
        {"port": {"get_resource": "port_front"}},
        {"network": "n2", "fixed_ip": "10.0.0.5"},
    ]


def test_security_groups_that_name_one_another_make_no_circle() -> None:
    described = properties({"security group": [group("a", "b"), group("b", "a"), group("c", "c")]})
    rule = {
        "direction": "ingress",
        "ethertype": "IPv4",
        "port_range_min": 0,
        "remote_mode": "remote_group_id",
    }
    assert described["security_group_a"]["rules"] == [{**rule, "remote_group_id": "b"}]
    reference = {"get_resource": "security_group_a"}
    assert described["security_group_b"]["rules"] == [{**rule, "remote_group_id": reference}]
    assert described["security_group_c"]["rules"] == [rule]


def test_a_server_without_an_image_boots_from_its_first_volume_and_has_the_others_attached() -> None:
    attachments = [{"volumeId": "v1", "delete_on_termination": True}, {"volumeId": "v2"}]
    described = properties({"server": [{**WEB, "image": ""}]}, attachments={"i1": attachments})
    disk = {"volume_id": "v1", "boot_index": 0, "delete_on_termination": True}
    assert described["server_web"]["block_device_mapping_v2"] == [disk]
    assert described["server_web"]["networks"] == [{"allocate_network": "none"}]
    attachment = {"instance_uuid": {"get_resource": "server_web"}, "volume_id": "v2"}
    assert described["attachment_server_web_v2"] == attachment


def test_a_volume_has_the_metadata_of_its_user() -> None:
    metadata = {"readonly": "True", "attached_mode": "rw", "tier": "gold"}
    described = properties({"volume": [{"id": "v1", "name": "data", "size": 2, "metadata": metadata}]})
    assert described["volume_data"] == {
        "name": "data",
        "size": 2,
        "metadata": {"tier": "gold"},
        "read_only": True,
    }


def test_names_of_resources_are_different_and_fit_a_template() -> None:
    names = ["a/b", "a b", "a_b_2", "é" * 300]
    objects = {"network": [{**NET, "id": f"id{place}", "name": name} for place, name in enumerate(names)]}
    described = list(properties(objects))
    assert described == ["network_a_b", "network_a_b_2", "network_a_b_2_2", "network"]


def test_objects_stay_unless_their_deletion_is_requested() -> None:
    inventory = Inventory({"network": [NET]}, interfaces=[RouterLink("r", "s")])
    adoption = describe(inventory)
    policies = {item["deletion_policy"] for item in adoption.template["resources"].values()}
    assert policies == {"retain"}
    assert adoption.document["resources"]["interface_r_s"] == {
        "resource_id": "r:subnet_id=s",
        "type": "OS::Neutron::RouterInterface",
    }
    resources = describe(inventory, DELETE).template["resources"]
    assert [name for name, item in resources.items() if "deletion_policy" in item] == []


class Answers:
    """The services of a cloud, which have these answers by path."""

    current_project_id = "project"

    def __init__(self, answers: Mapping[str, Json]) -> None:
        self._answers = answers
        self.network = self.compute = self.block_storage = self

    def has_service(self, name: str) -> bool:
        return name != "block-storage"

    def get_endpoint(self) -> str:
        return "https://compute/v2.1"

    def get(self, address: str, **_: Json) -> Json:
        if address not in self._answers:
            raise ksa_exc.NotFound(address)
        response = requests.Response()
        response.json = lambda **_: self._answers[address]  # type: ignore[method-assign]
        return response


def test_an_object_is_found_by_its_name_on_all_pages() -> None:
    following = "https://compute:443/v2.1/servers/detail?marker=i1"
    answers = {
        "/servers/detail": {
            "servers": [{"id": "i1", "name": "a"}],
            "servers_links": [{"rel": "next", "href": following}],
        },
        following: {"servers": [{"id": "i2", "name": "b"}]},
        "/servers/i2": {"server": {"id": "i2", "name": "b", "more": 1}},
    }
    cloud = CloudObjects(Answers(answers))
    assert cloud.find(SERVER, "b") == cloud.find(SERVER, "i2") == answers["/servers/i2"]["server"]


@pytest.mark.parametrize(
    ("following", "problem"),
    [
        ("/servers/detail", "a page of it comes twice"),
        ("https://elsewhere/v2.1/servers/detail", "continues at another service"),
        ("http://compute/v2.1/servers/detail", "continues at another service"),
        ("//compute/servers/detail", "continues at another service"),
    ],
)
def test_a_list_that_leads_in_a_circle_or_elsewhere_is_refused(following: str, problem: str) -> None:
    page = {"servers": [], "servers_links": [{"rel": "next", "href": following}]}
    with pytest.raises(exc.CommandError, match=problem):
        CloudObjects(Answers({"/servers/detail": page, following: page})).find(SERVER, "b")


def test_a_list_has_so_many_pages() -> None:
    trail = PageTrail()
    for number in range(MOST_PAGES):
        trail.checked(f"{number}")
    with pytest.raises(exc.CommandError, match=f"more than {MOST_PAGES} pages"):
        trail.checked("another")


def test_a_name_that_none_or_several_have_is_refused() -> None:
    networks = {"networks": [{"id": "n1", "name": "blue"}, {"id": "n2", "name": "blue"}]}
    cloud = CloudObjects(Answers({"/networks?project_id=project": networks}))
    with pytest.raises(exc.CommandError, match="Several networks have the name blue; .*: n1, n2"):
        cloud.find(NETWORK, "blue")
    with pytest.raises(exc.CommandError, match="No network of the project has the name or ID red"):
        cloud.find(NETWORK, "red")


def test_a_service_that_refuses_is_named_and_one_that_is_not_there_has_nothing() -> None:
    cloud = CloudObjects(Answers({}))
    with pytest.raises(exc.CommandError, match="The networks cannot be read: /networks"):
        cloud.all(NETWORK)
    assert cloud.all(VOLUME) == []
