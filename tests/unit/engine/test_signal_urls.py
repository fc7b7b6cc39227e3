"""Addresses of signals: who does not know the key makes no signature, and one is good for one row only."""

import pytest
from stoker.engine.signal_urls import METADATA, SignalAddresses, row_of_key
from stoker.resources.contract.views import StackFacts

STACK = StackFacts(id="1d", name="my stack", project_id="t")
NAMED = {"tenant_id": "t", "stack_name": "my stack", "stack_id": "1d", "resource_name": "a/b", "row": "17"}
ADDRESSES = SignalAddresses("http://api.test/root", b"key")
SIGNATURE = ADDRESSES.presigned(STACK, "a/b", 17).signature


def test_an_address_names_project_stack_resource_and_row() -> None:
    native = "http://api.test/root/v1/t/stacks/my%20stack/1d/resources/a%2Fb/signal"
    assert ADDRESSES.native(STACK, "a/b") == native
    address = ADDRESSES.presigned(STACK, "a/b", 17)
    assert address.endpoint == f"{native}/17"
    assert address.url == f"{native}/17?Signature={SIGNATURE}"
    assert SIGNATURE not in repr(address)
    assert ADDRESSES.is_right(NAMED, SIGNATURE)


@pytest.mark.parametrize("part", ["tenant_id", "stack_id", "resource_name", "row"])
def test_a_signature_is_good_for_nothing_else(part: str) -> None:
    assert not ADDRESSES.is_right({**NAMED, part: "2"}, SIGNATURE)


def test_parts_cannot_be_moved_from_one_to_the_next() -> None:
    shifted = {**NAMED, "tenant_id": "t1", "stack_id": "d"}
    assert not ADDRESSES.is_right(shifted, SIGNATURE)


@pytest.mark.parametrize("wrong", ["", "0" * 64, SIGNATURE[:-1], SIGNATURE.upper(), f"{SIGNATURE} ", "ü\0"])
def test_another_signature_is_wrong(wrong: str) -> None:
    assert not ADDRESSES.is_right(NAMED, wrong)


def test_another_key_makes_another_signature() -> None:
    assert not SignalAddresses("http://api.test/root", b"other").is_right(NAMED, SIGNATURE)


def test_signals_and_metadata_may_have_other_roots_than_the_api() -> None:
    addresses = SignalAddresses("http://u", b"key", signal_root="http://s", metadata_root="http://m/x")
    assert addresses.native(STACK, "a").startswith("http://u/v1/")
    assert addresses.presigned(STACK, "a", 1).url.startswith("http://s/v1/")
    access = addresses.guest_access(STACK, "a", 1)
    assert access.metadata_url == "http://m/x/v1/"
    assert access.presigned.url.startswith("http://m/x/v1/t/stacks/my%20stack/1d/resources/a/guest/1?")


def test_a_guest_has_keys_of_its_own_row_and_shows_no_secret() -> None:
    access = ADDRESSES.guest_access(STACK, "a/b", 17)
    assert row_of_key(access.access_key) == ("1d", 17)
    assert ADDRESSES.guest_secret(access.access_key) == access.secret_key
    assert ADDRESSES.guest_secret("1d.18") != access.secret_key
    assert access.secret_key not in repr(access)
    assert access.presigned.signature not in repr(access)


def test_the_signature_of_one_purpose_is_good_for_no_other() -> None:
    access = ADDRESSES.guest_access(STACK, "a/b", 17)
    assert ADDRESSES.is_right(NAMED, access.presigned.signature, METADATA)
    assert not ADDRESSES.is_right(NAMED, access.presigned.signature)
    assert not ADDRESSES.is_right(NAMED, SIGNATURE, METADATA)


@pytest.mark.parametrize(
    "key", ["", "1d", "1d.", "1d.0", "1d.x", "1d.1.1", "1d.1 ", "1d.٣", f"1d.{'9' * 20}"]
)
def test_other_keys_are_no_guests(key: str) -> None:
    assert row_of_key(key) is None
