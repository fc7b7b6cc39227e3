"""A value that was unsealed for a step is found again in all that the step wants to store or report."""

import typing

import pytest
from stoker.conductor.steps.secrets import Secrets
from stoker.sealing.sealer import Sealer

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


def test_texts_are_told_without_secrets(secrets: Secrets) -> None:
    assert secrets.redact(f"bad password {WORD} (98765)") == "bad password ****** (******)"


def test_what_a_type_calls_sensitive_counts_too(secrets: Secrets) -> None:
    secrets.add(["token-abc"])
    assert "token-abc" not in str(secrets.protect("id-token-abc"))


def test_a_secret_of_one_letter_is_sealed_but_leaves_texts_alone(secrets: Secrets) -> None:
    secrets.add("z")
    assert secrets.redact("a zoo") == "a zoo"
    assert secrets.protect("zoo") != "zoo"
