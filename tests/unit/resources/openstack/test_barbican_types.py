"""Types of the key manager: rules over several properties, and orders on scripted answers."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import resolve_properties

RESOURCE_TYPES = types_of("openstack.barbican")

Json = typing.Any
ORDER = RESOURCE_TYPES["OS::Barbican::Order"]()
SECRET = RESOURCE_TYPES["OS::Barbican::Secret"]()
GENERIC = RESOURCE_TYPES["OS::Barbican::GenericContainer"]()
PAIR = RESOURCE_TYPES["OS::Barbican::RSAContainer"]()
ROOT = "http://keys.test/v1"
KEYS = {"type": "asymmetric", "algorithm": "rsa", "bit_length": 2048}


def has_order(scripted: ScriptedService, **fields: Json) -> None:
    """The service has made an order, whose container has a pair of keys."""
    order = {"order_ref": f"{ROOT}/orders/o", "type": "asymmetric", **fields}
    refs = [{"name": name, "secret_ref": f"{ROOT}/secrets/{name}"} for name in ("private_key", "public_key")]
    scripted.answers |= {
        "GET /orders": Answer(200, {"orders": []}),
        "POST /orders": Answer(202, {"order_ref": f"{ROOT}/orders/o"}),
        "GET /orders/o": Answer(200, order),
        "GET /containers/c": Answer(200, {"secret_refs": refs}),
        "GET /secrets/private_key/payload": Answer(200, "the private key"),
        "GET /secrets/public_key/payload": Answer(200, "the public key"),
        "DELETE /orders/o": Answer(204),
    }


def test_an_order_is_waited_for_and_its_keys_are_read(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_order(scripted, status="PENDING")
    target = target_of(ORDER, {**KEYS, "pass_phrase": "hush"})
    step = ORDER.handle_create(target, context)
    step = ORDER.check_create_complete(target, step.progress, context)
    [body] = [each for each in scripted.sent if each]
    name = target.physical_name
    meta = {"name": name, "algorithm": "rsa", "bit_length": 2048, "pass_phrase": "hush"}
    assert body == {"type": "asymmetric", "meta": meta}
    assert step.physical_id == f"{ROOT}/orders/o"
    has_order(scripted, status="ACTIVE", container_ref=f"{ROOT}/containers/c")
    target = target_of(ORDER, KEYS, physical_id=step.physical_id, data=step.data or {})
    target = run(ORDER, "create", target, context)
    values = ORDER.attribute_values(target)
    assert (values["public_key"], values["private_key"]) == ("the public key", "the private key")
    assert (values["certificate"], values["container_ref"]) == (None, f"{ROOT}/containers/c")
    sensitive = {name for name, each in ORDER.attributes_schema.items() if each.sensitive}
    assert sensitive == {"private_key"}, "so the data of the resource is sealed"
    run(ORDER, "delete", target, context)
    assert scripted.requests[-1] == "DELETE /orders/o"


def test_an_order_that_fails_says_why(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_order(scripted, status="ERROR", error_status_code=400, error_reason="no such algorithm")
    with pytest.raises(PermanentError, match="400 - no such algorithm"):
        run(ORDER, "create", target_of(ORDER, KEYS), context)


def test_an_order_of_a_certificate_names_its_container(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_order(scripted, status="ACTIVE")
    properties = {"type": "certificate", "request_type": "stored-key", "source_container_ref": "c"}
    run(ORDER, "create", target_of(ORDER, properties), context)
    [body] = [each for each in scripted.sent if each]
    assert body["meta"]["container_ref"] == "c"


BINARY = "application/octet-stream"


@pytest.mark.parametrize(
    ("plugin", "properties", "why"),
    [
        (ORDER, {"type": "key", "algorithm": "aes"}, "algorithm and bit_length are required for key type"),
        (
            ORDER,
            {"type": "key", "algorithm": "aes", "bit_length": 8, "ca_id": "c"},
            "Unexpected properties: ca_id",
        ),
        (ORDER, {"type": "certificate", "profile": "p"}, "profile cannot be specified without ca_id"),
        (SECRET, {"payload_content_type": "text/plain"}, "cannot be specified without payload"),
        (
            SECRET,
            {"payload": "x", "payload_content_type": BINARY},
            "'payload_content_encoding' property must be",
        ),
        (
            SECRET,
            {"payload": "x", "payload_content_type": BINARY, "payload_content_encoding": "base64"},
            "Invalid payload for specified 'base64'",
        ),
        (SECRET, {"payload": "x", "payload_content_encoding": "base64"}, "should only be specified for"),
        (GENERIC, {"secrets": [{"name": name, "ref": "r"} for name in "ab"]}, "Duplicate refs"),
        (PAIR, {"public_key_ref": "r", "private_key_ref": "r"}, "Duplicate refs"),
    ],
)
def test_properties_that_do_not_fit_each_other(plugin: ResourceType, properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        plugin.validate(resolve_properties(plugin.properties_schema, properties))


def test_payloads_are_secrets() -> None:
    assert SECRET.properties_schema["payload"].sensitive
    assert SECRET.attributes_schema["decrypted_payload"].sensitive
    assert ORDER.properties_schema["pass_phrase"].sensitive
