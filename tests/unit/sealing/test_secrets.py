"""A value that was unsealed for a step is found again in all that the step wants to store or report."""

import typing

import pytest
from services.db.rows import a_resource
from stoker.conductor.steps.child_secrets import open_outputs
from stoker.db.ids import StackId
from stoker.sealing.redaction import MASK
from stoker.sealing.sealer import Sealer
from stoker.sealing.secrets import Secrets
from stoker.sealing.stored import StoredLookup, as_residual, masked
from stoker.template.residual import evaluate, node, partial, quote, token_of

WORD = "correct-horse"


@pytest.fixture
def secrets() -> Secrets:
    sealer = Sealer([Sealer.generate_key()]).of_stack("project", "root")
    stack_secrets = Secrets(sealer)
    values = {"user": "root", "word": WORD, "pin": 98765}
    assert stack_secrets.open(sealer.seal(values)) == values
    return stack_secrets


@pytest.mark.parametrize(
    "value", [WORD, f"is {WORD}!", [1, {"deep": f"x{WORD}"}], {WORD: 1}, 98765, "98765", {"user": "root"}]
)
def test_a_value_that_holds_a_secret_is_sealed(secrets: Secrets, value: typing.Any) -> None:
    sealed = secrets.protect(value)
    assert WORD not in str(sealed)
    assert "98765" not in str(sealed)
    assert secrets.open_value(sealed) == value


@pytest.mark.parametrize("value", ["horse", None, True, "", 9876, ["correct"], {"a": {}}, {"user": 1}])
def test_other_values_stay_as_they_are(secrets: Secrets, value: typing.Any) -> None:
    assert secrets.protect(value) == value


@pytest.mark.parametrize("opened", [True, False, {"on": [False]}])
def test_a_boolean_among_secrets_hides_all_booleans(secrets: Secrets, opened: typing.Any) -> None:
    assert not secrets.hides(True)
    secrets.add(opened)
    assert [secrets.hides(value) for value in (True, False, 1, "true", [True])] == [True, True, *[False] * 3]


@pytest.mark.parametrize("opened", ["", [], {}])
def test_an_empty_value_among_secrets_hides_all_of_its_sort(secrets: Secrets, opened: typing.Any) -> None:
    empty = ("", [], {})
    assert not any(map(secrets.hides, empty))
    secrets.add({"inside": [opened]})
    assert [secrets.hides(value) for value in empty] == [value == opened for value in empty]
    assert not any(map(secrets.hides, (None, 0, False, "text")))


def test_texts_are_shown_without_secrets(secrets: Secrets) -> None:
    assert secrets.redact(f"bad password {WORD} (98765)") == "bad password ****** (******)"


def test_what_a_type_calls_sensitive_counts_too(secrets: Secrets) -> None:
    secrets.add(["token-abc"])
    assert "token-abc" not in str(secrets.protect("id-token-abc"))


def test_a_secret_of_one_letter_is_sealed_but_leaves_texts_alone(secrets: Secrets) -> None:
    secrets.add("z")
    assert secrets.redact("a zoo") == "a zoo"
    assert secrets.protect("zoo") != "zoo"


def test_what_is_beside_a_secret_stays_readable(secrets: Secrets) -> None:
    value = {"plain": ["v", 7], "secret": WORD, "list": ["a", f"x{WORD}"], "$fn": {"deep": WORD}}
    stored = secrets.protect(value)
    assert WORD not in str(stored)
    assert secrets.open_value(stored) == value
    residual = as_residual(stored)
    lookup = StoredLookup(secrets.open)
    assert partial(node("select", residual, "plain"), lookup) == ["v", 7]
    assert partial(node("select", residual, "plain", "1"), lookup) == 7
    assert partial(node("select", residual, "list", 0), lookup) == "a"
    for path in (["secret"], ["list", 1], ["$fn", "deep"]):
        part = partial(node("select", residual, *path), lookup)
        assert token_of(part) is not None
        assert masked(part) == MASK
        assert evaluate(part, lookup) == evaluate(node("select", quote(value), *path), lookup)
    # Inside of a secret, or where there is nothing, the selection is evaluated when the secret is opened.
    for path in (["secret", 0], ["none"], ["list", 5]):
        part = partial(node("select", residual, *path), lookup)
        assert evaluate(part, lookup) == evaluate(node("select", quote(value), *path), lookup)


def test_the_beginning_of_a_secret_is_hidden_in_a_message_that_was_cut(secrets: Secrets) -> None:
    word = "-".join(map(str, range(100, 130)))
    secrets.add(word)
    assert secrets.redact(f"Value: {word[:50]}") == f"Value: {MASK}"


def test_no_value_a_boolean_and_an_empty_text_are_not_searched_for(secrets: Secrets) -> None:
    secrets.add([None, True, {"a": False}, ""])
    assert not secrets.holds("None of these is True or False")


def test_a_tuple_counts_as_a_list(secrets: Secrets) -> None:
    stored = secrets.protect(("plain", WORD))
    assert stored[0] == "plain"
    assert token_of(stored[1]) is not None
    assert secrets.protect_each({"a": (WORD,), "b": "x"})["b"] == "x"
    assert not secrets.is_collection((True, "t"))
    secrets.add((True, ("t", False)))
    assert secrets.holds("t")
    assert secrets.hides(True)
    assert secrets.is_collection((True, ("t", False)))
    assert token_of(secrets.protect((True, ("t", False)))) is not None


def test_values_by_name_are_sealed_each_by_itself(secrets: Secrets) -> None:
    stored = secrets.protect_each({"a": WORD, "b": {"c": "plain"}})
    assert token_of(stored["a"]) is not None
    assert stored["b"] == quote({"c": "plain"})
    assert secrets.protect_each({"b": {"$fn": 1}}) == {"b": quote({"$fn": 1})}


def test_a_value_may_be_looked_at_before_it_counts_as_a_secret(secrets: Secrets) -> None:
    hidden = secrets.seal({"later": "not yet"})
    assert secrets.peek(hidden) == {"later": "not yet"}
    assert not secrets.holds("not yet")
    assert secrets.open_value(hidden) == {"later": "not yet"}
    assert secrets.holds("not yet")


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("horse", set()),
        (f"is {WORD}!", {WORD}),
        ({WORD: [1, "root"]}, {WORD, "root"}),
        ([98765, {"a": "x"}], {"98765"}),
    ],
)
def test_the_secrets_in_a_value_are_found(secrets: Secrets, value: typing.Any, texts: set[str]) -> None:
    assert secrets.found_in(value) == texts


def test_a_map_with_a_secret_key_is_sealed_as_a_whole(secrets: Secrets) -> None:
    assert token_of(secrets.protect({WORD: 1, "plain": 2})) is not None
    stored = secrets.protect({"plain": 2, "inner": {WORD: 1}})
    assert stored["plain"] == 2
    assert token_of(stored["inner"]) is not None


@pytest.mark.parametrize("value", [{"a key": True}, {"a key": {"deep": False}, "b": "x"}, [True, [None]]])
def test_a_secret_map_or_list_is_sealed_as_a_whole(secrets: Secrets, value: typing.Any) -> None:
    secrets.add(value)
    stored = secrets.protect({"plain": [True], "deep": [value]})
    assert stored["plain"] == [True]
    assert token_of(stored["deep"][0]) is not None
    assert secrets.open_value(stored) == {"plain": [True], "deep": [value]}
    assert secrets.holds([value])
    assert token_of(secrets.protect_whole([value])) is not None


def test_an_output_of_a_nested_stack_makes_no_secret_of_the_plain_ones(secrets: Secrets) -> None:
    sealed = secrets.protect({"plain": "value", "secret": WORD})
    row = a_resource(StackId("s"), 1, "inner", attributes={"outputs": sealed})
    outputs = {
        "all": {"value": node("get_attr", "inner", "outputs")},
        "plain": {"value": node("get_attr", "inner", "outputs", "plain")},
        "made": {"value": node("list_join", ["-", [node("get_attr", "inner", "outputs", "secret"), "b"]])},
    }
    values = open_outputs(outputs, {"inner": row}, secrets)
    assert values == {"all": {"plain": "value", "secret": WORD}, "plain": "value", "made": f"{WORD}-b"}
    assert secrets.holds(f"{WORD}-b")
    assert not secrets.holds("value")
