"""OS::Barbican::Secret: a secret of the key manager."""

import base64
import binascii

from ....shapes import JsonMap
from ....template.constraints import AllowedValues, Range
from ...contract import Attribute, Property, PropertyError, ResourceView, SupportStatus
from .base import EXPIRATION, OLD, KeyManagerType

BINARY = "application/octet-stream"


class Secret(KeyManagerType):
    """A secret."""

    type_name = "OS::Barbican::Secret"
    quota = {"secrets": 1}
    support_status = OLD
    description = "A secret, stored by the key manager."
    path = "/secrets"
    items = "secrets"
    id_field = "secret_ref"
    filters = ("name",)
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "payload": Property("string", "Payload: the secret itself.", sensitive=True),
        "payload_content_type": Property(
            "string",
            "Content type of the payload.",
            constraints=(AllowedValues(values=("text/plain", BINARY)),),
        ),
        "payload_content_encoding": Property(
            "string",
            f"Content encoding of the payload; required for {BINARY}.",
            constraints=(AllowedValues(values=("base64",)),),
        ),
        "mode": Property("string", "Mode of the algorithm that the secret is used with, such as cbc."),
        "expiration": EXPIRATION,
        "algorithm": Property("string", "Algorithm that the secret is used with, such as aes."),
        "bit_length": Property("integer", "Length of the secret, in bits.", constraints=(Range(minimum=0),)),
        "secret_type": Property(
            "string",
            "Secret type.",
            default="opaque",
            constraints=(
                AllowedValues(
                    values=("symmetric", "public", "private", "certificate", "passphrase", "opaque")
                ),
            ),
            support_status=SupportStatus(version="5.0.0"),
        ),
    }
    attributes_schema = {
        "status": Attribute("Status.", "string"),
        "decrypted_payload": Attribute("Payload, as in the template.", "string", sensitive=True),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that payload, type and encoding fit each other."""
        if not {"payload", "payload_content_type", "payload_content_encoding"} <= properties.keys():
            return
        payload = properties["payload"]
        kind = properties["payload_content_type"]
        encoding = properties["payload_content_encoding"]
        if kind and not payload:
            raise PropertyError("payload_content_type cannot be specified without payload.")
        if kind == BINARY and not encoding:
            raise PropertyError(
                f"Property unspecified. For '{kind}' value of 'payload_content_type' property, "
                "'payload_content_encoding' property must be specified."
            )
        if kind == BINARY and not _is_base64(payload):
            text = f"Invalid payload for specified '{encoding}' value of 'payload_content_encoding' property."
            raise PropertyError(text, ("payload",))
        if encoding and kind != BINARY:
            text = "payload_content_encoding property should only be specified for payload_content_type "
            raise PropertyError(f"{text}with value {BINARY}.")

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the status, and the payload that the template has given."""
        return {**super().attribute_values(target), "decrypted_payload": target.properties["payload"]}


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text)
    except (ValueError, binascii.Error):
        return False
    return True
