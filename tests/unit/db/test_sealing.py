"""Secrets at rest: sealed by the first key, opened by any, and by nobody else."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stoker.sealing.sealer import BoundSealer, Sealer, SealError, sealed_by

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = [Sealer.generate_key() for _ in range(3)]


def place_of(*keys: str) -> BoundSealer:
    return Sealer(keys).of_stack("project", "root")


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_what_was_sealed_opens_to_an_equal_value(value: object) -> None:
    sealer = place_of(*KEYS[:1])
    assert sealer.open(sealer.seal(value)) == value


def test_equal_values_give_equal_tokens_and_the_order_of_keys_is_no_difference() -> None:
    sealer = place_of(*KEYS[:1])
    assert sealer.seal({"a": 1, "b": 2}) == sealer.seal({"b": 2, "a": 1})
    assert sealer.seal("x") != sealer.seal("y")


def test_the_first_key_seals_and_every_key_opens() -> None:
    old = place_of(KEYS[0])
    both = place_of(KEYS[1], KEYS[0])
    new = place_of(KEYS[1])
    assert both.open(old.seal("secret")) == "secret"
    assert new.open(both.seal("secret")) == "secret"
    with pytest.raises(SealError, match="is not among the configured ones"):
        new.open(old.seal("secret"))


def test_a_token_says_nothing_of_its_value() -> None:
    token = place_of(*KEYS).seal({"password": "hunter2"})
    raw = base64.urlsafe_b64decode(token.rpartition(".")[2])
    for part in (b"hunter2", b"password", base64.b64encode(b"hunter2")[:8]):
        assert part not in raw
        assert part not in token.encode()


@pytest.mark.parametrize("position", [0, 5, 20, -1])
def test_a_token_that_was_changed_is_refused(position: int) -> None:
    sealer = place_of(*KEYS)
    key_id, _, body = sealer.seal("secret value").rpartition(".")
    raw = bytearray(base64.urlsafe_b64decode(body))
    raw[position] ^= 1
    with pytest.raises(SealError, match="cannot be opened"):
        sealer.open(f"{key_id}.{base64.urlsafe_b64encode(bytes(raw)).decode()}")


@pytest.mark.parametrize("body", ["", "AAAA", "%%%", "ü", "A"])
def test_a_body_that_is_none_is_refused(body: str) -> None:
    sealer = place_of(*KEYS)
    key_id = sealer.seal("x").partition(".")[0]
    with pytest.raises(SealError):
        sealer.open(f"{key_id}.{body}")


@pytest.mark.parametrize("token", ["", ".", "plain text", "0123abcd.AAAA"])
def test_a_text_that_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(SealError):
        place_of(*KEYS).open(token)


FIXED = base64.b64encode(bytes(range(64))).decode()


@pytest.mark.parametrize(
    "key",
    ["", "short", "not base64!", base64.b64encode(b"x" * 31).decode(), f"{FIXED[:20]}!{FIXED[20:]}"],
)
def test_a_key_that_is_none_is_refused_when_the_sealer_is_made(key: str) -> None:
    with pytest.raises(ValueError, match="a sealing key must be base64 of 32, 48 or 64 bytes"):
        Sealer([key])


def test_what_an_earlier_release_has_sealed_opens() -> None:
    value = {"a": None, "b": [1, "ü"]}
    token = "25134bdc.UvN6B-1Muyu2NXM2uFaP-zabzByJjCOuqNwoo8_abm_Zd_7dGVl_iaRa8g=="
    place = Sealer([FIXED]).of_stack("p", "r")
    assert place.open(token) == value
    assert place.seal(value) == token
    assert sealed_by(token) == Sealer([FIXED]).fingerprints[0]


def test_without_a_key_nothing_is_sealed() -> None:
    with pytest.raises(ValueError, match="at least one key is needed"):
        Sealer([])


PLACES = [
    lambda sealer: sealer.of_stack("project", "root"),
    lambda sealer: sealer.of_stack("other", "root"),
    lambda sealer: sealer.of_stack("project", "another"),
    lambda sealer: sealer.of_stack("pro", "jectroot"),
    lambda sealer: sealer.of_credential("root"),
    lambda sealer: sealer.of_installation("signal_key"),
]


@pytest.mark.parametrize("index", range(len(PLACES)))
def test_a_token_opens_in_its_place_only(index: int) -> None:
    sealer = Sealer(KEYS)
    token = PLACES[index](sealer).seal("secret")
    for position, place in enumerate(PLACES):
        if position == index:
            assert place(sealer).open(token) == "secret"
            continue
        with pytest.raises(SealError, match="cannot be opened"):
            place(sealer).open(token)
