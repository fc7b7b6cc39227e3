"""The interfaces that an update of a server keeps, detaches and attaches."""

import itertools
import typing
from collections.abc import Sequence

import pytest
from stoker.resources.openstack.nova.interfaces import Nic, ServerInterface, fits, interface_changes, pair

T = typing.TypeVar("T")
A = ServerInterface("port-a", "net-a", "mac-a", [["sub-a", "10.0.0.5"]], False)
B = ServerInterface("port-b", "net-b", "mac-b", [["sub-b", "10.1.0.5"], ["sub-b6", "fd00::5"]], False)
OWN = ServerInterface("port-own", "net-a", "mac-own", [["sub-a", "10.0.0.9"]], True)


def _summary(
    old: Sequence[Nic], new: Sequence[Nic], interfaces: Sequence[ServerInterface]
) -> tuple[list[str], list[Nic], list[str]]:
    """Ports that are detached, entries that are attached, ports that stay."""
    changes = interface_changes(old, new, interfaces)
    return (
        [item.port for item, _ in changes.detach],
        list(changes.attach),
        [item.port for item, _, _ in changes.retained],
    )


@pytest.mark.parametrize(
    ("nic", "expected"),
    [
        (Nic(network="net-b"), True),
        (Nic(network="net-a"), False),
        (Nic(port="port-b"), True),
        (Nic(port="port-b", network="net-a"), False),
        (Nic(subnet="sub-b6"), True),
        (Nic(fixed_ip="fd00::5"), True),
        (Nic(network="net-b", fixed_ip="10.1.0.6"), False),
        (Nic(), False),
    ],
)
def test_an_interface_fits_to_an_entry_as_far_as_the_entry_says(nic: Nic, expected: bool) -> None:
    assert fits(nic, B) is expected


def test_the_entry_that_asks_for_most_chooses_first() -> None:
    nics = [Nic(network="net-a"), Nic(network="net-a", fixed_ip="10.0.0.5")]
    for interfaces in itertools.permutations([A, OWN]):
        assert pair(nics, interfaces) == {0: OWN, 1: A}


@pytest.mark.parametrize("nic", [Nic(network="net-a"), Nic(port="port-a"), Nic(fixed_ip="10.0.0.5")])
def test_the_same_entries_change_nothing(nic: Nic) -> None:
    assert _summary([nic], [nic], [A]) == ([], [], ["port-a"])


@pytest.mark.parametrize(
    "new", [Nic(port="port-a"), Nic(network="net-a", fixed_ip="10.0.0.5"), Nic(subnet="sub-a")]
)
def test_an_entry_that_names_the_interface_otherwise_keeps_it(new: Nic) -> None:
    assert _summary([Nic(network="net-a")], [new], [A]) == ([], [], ["port-a"])


def test_a_port_that_is_not_named_any_more_is_detached() -> None:
    new = Nic(network="net-a")
    assert _summary([Nic(port="port-a")], [new], [A]) == (["port-a"], [new], [])


def test_one_network_takes_the_place_of_another() -> None:
    new = Nic(network="net-c")
    assert _summary([Nic(network="net-a")], [new], [A]) == (["port-a"], [new], [])


def test_a_network_is_added_and_another_removed_beside_one_that_stays() -> None:
    old = [Nic(network="net-a"), Nic(network="net-b")]
    more = Nic(network="net-c")
    assert _summary(old, [old[1], more], [A, B]) == (["port-a"], [more], ["port-b"])


def test_an_interface_that_somebody_else_attached_stays() -> None:
    assert _summary([Nic(network="net-a")], [Nic(network="net-a")], [A, B]) == ([], [], ["port-a"])


def test_an_interface_that_a_failed_update_has_attached_is_used_or_removed() -> None:
    old = [Nic(port="port-b")]
    new = Nic(network="net-a", fixed_ip="10.0.0.9")
    assert _summary(old, [new], [B, OWN]) == (["port-b"], [], ["port-own"])
    assert _summary(old, old, [B, OWN]) == (["port-own"], [], ["port-b"])


def test_where_the_service_chose_the_network_its_interface_fits_to_a_new_entry() -> None:
    assert _summary([], [Nic(network="net-a")], [A]) == ([], [], ["port-a"])
    assert _summary([], [Nic(network="net-b")], [A]) == (["port-a"], [Nic(network="net-b")], [])


def test_an_entry_whose_interface_is_gone_is_attached_again_only_if_it_is_still_requested() -> None:
    assert _summary([Nic(port="port-a")], [], []) == ([], [], [])
    assert _summary([Nic(port="port-a")], [Nic(port="port-a")], []) == ([], [Nic(port="port-a")], [])


def test_another_tag_needs_another_interface() -> None:
    new = Nic(network="net-a", tag="b")
    assert _summary([Nic(network="net-a", tag="a")], [new], [A]) == (["port-a"], [new], [])


def test_extra_properties_change_in_place_where_the_port_is_the_servers_own() -> None:
    old = Nic(network="net-a", extras={"x": 1})
    new = Nic(network="net-a", extras={"x": 2})
    assert interface_changes([old], [new], [OWN]).retained == [(OWN, old, new)]
    assert _summary([old], [new], [A]) == (["port-a"], [new], [])


@pytest.mark.parametrize("extras", [{"mac_address": "m"}, {"no_fixed_ips": True}])
def test_extra_properties_that_a_port_cannot_change_need_another_port(extras: dict[str, object]) -> None:
    new = Nic(network="net-a", extras=extras)
    assert _summary([Nic(network="net-a", extras={})], [new], [OWN]) == (["port-own"], [new], [])


def test_another_floating_ip_keeps_the_interface() -> None:
    old = Nic(subnet="sub-a", floating_ip="f")
    new = Nic(subnet="sub-a", floating_ip="g")
    assert interface_changes([old], [new], [OWN]).retained == [(OWN, old, new)]


def test_of_two_equal_networks_the_entry_with_the_same_rest_keeps_its_interface() -> None:
    old = [Nic(network="net-a", tag="a"), Nic(network="net-a", tag="b")]
    assert _summary(old, [old[1]], [A, OWN])[0] == ["port-a"]
    assert _summary(old, [old[0]], [A, OWN])[0] == ["port-own"]


def test_whatever_changes_the_server_ends_with_one_interface_for_each_entry() -> None:
    nics = [
        Nic(network="net-a"),
        Nic(port="port-b"),
        Nic(subnet="sub-a", fixed_ip="10.0.0.9"),
        Nic(network="n"),
    ]
    for old, new in itertools.product(_subsets(nics), repeat=2):
        for interfaces in _subsets([A, B, OWN]):
            changes = interface_changes(old, new, interfaces)
            staying = [item for item, _, _ in changes.retained]
            assert len(changes.attach) + len(staying) == len(new)
            assert len({item.port for item in staying}) == len(staying)
            assert not {item.port for item, _ in changes.detach} & {item.port for item in staying}
            assert all(fits(nic, item) for item, _, nic in changes.retained)


def _subsets(items: Sequence[T]) -> list[list[T]]:
    sizes = range(len(items) + 1)
    return [list(subset) for size in sizes for subset in itertools.combinations(items, size)]
