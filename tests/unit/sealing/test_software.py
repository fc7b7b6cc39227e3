"""Software configs and the values of deployments: sealed as a whole, and shown without their secrets."""

import typing

import pytest
from stoker.sealing.redaction import MASK
from stoker.sealing.sealer import Sealer, SealError
from stoker.sealing.software import NOTHING, SoftwareValue, config_body, opened, stored
from stoker.template.residual import token_of

SEALER = Sealer([Sealer.generate_key()])
HERE = SEALER.of_software("project")
Json = typing.Any


def test_a_value_is_sealed_with_the_list_of_its_secrets() -> None:
    value = {"user": "root", "word": "swordfish"}
    sealed = stored(HERE, value, {"swordfish", "root"})
    assert token_of(sealed) is not None
    assert opened(HERE, sealed) == SoftwareValue(value, frozenset({"swordfish", "root"}))
    assert opened(HERE, stored(HERE, 7)) == SoftwareValue(7)
    with pytest.raises(SealError):
        opened(SEALER.of_software("other"), sealed)


@pytest.mark.parametrize("column", [None, {}, {"value": 1}, "text"])
def test_a_column_without_a_token_holds_nothing(column: Json) -> None:
    assert opened(HERE, column) is NOTHING


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("swordfish", MASK),
        ("the swordfish!", f"the {MASK}!"),
        ({"swordfish": ["swordfish", {"a": "b"}]}, {MASK: [MASK, {"a": "b"}]}),
        ([8080, 80801, 1.5, 2.5], [MASK, 80801, MASK, 2.5]),
        ([True, False, None], [True, False, None]),
    ],
)
def test_a_value_is_shown_without_its_secrets(value: Json, shown: Json) -> None:
    secrets = frozenset({"swordfish", "8080", "1.5", "True", "None"})
    assert SoftwareValue(value, secrets).masked() == shown
    assert SoftwareValue(value).masked() is value


def test_the_body_of_a_config_has_all_of_its_parts() -> None:
    inputs = [{"name": "i"}]
    outputs = [{"name": "o"}]
    assert config_body("text", inputs, outputs, {"a": 1}) == {
        "config": "text",
        "inputs": inputs,
        "outputs": outputs,
        "options": {"a": 1},
    }
