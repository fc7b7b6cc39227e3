"""OS::Barbican::Order: a key or a certificate that the key manager makes."""

import dataclasses
from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import (
    Attribute,
    Done,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..declared import REMOTE
from .base import EXPIRATION, OLD, KeyManagerType, last_part

KEY = "key"
ASYMMETRIC = "asymmetric"
CERTIFICATE = "certificate"
_OF_KEYS = ("name", "algorithm", "bit_length", "mode", "payload_content_type", "expiration")
ALLOWED: Mapping[str, tuple[str, ...]] = {
    KEY: _OF_KEYS,
    ASYMMETRIC: (*_OF_KEYS, "pass_phrase"),
    CERTIFICATE: (
        *("name", "request_type", "subject_dn", "source_container_ref", "ca_id", "profile", "request_data"),
    ),
}
"""Properties by the type of the order."""
PAYLOADS = ("public_key", "private_key", "certificate", "intermediates")
"""Attributes that are secrets of the container that the order has made."""
SINCE = SupportStatus(version="5.0.0")


def _secret(text: str, *, is_secret: bool = False) -> Attribute:
    return Attribute(text, "string", sensitive=is_secret, support_status=SINCE)


class Order(KeyManagerType):
    """An order; the secret or the container that it makes stays when it is deleted, as in Heat."""

    type_name = "OS::Barbican::Order"
    quota = {"orders": 1, "secrets": 1}
    support_status = OLD
    description = "An order for a symmetric key, an asymmetric key pair or a certificate."
    path = "/orders"
    items = "orders"
    id_field = "order_ref"
    properties_schema = {
        "name": Property(
            "string", "Name; if omitted, generated from the names of the stack and the resource."
        ),
        "payload_content_type": Property("string", "Content type of the secret's payload."),
        "mode": Property("string", "Mode of the algorithm, such as cbc."),
        "expiration": EXPIRATION,
        "algorithm": Property("string", "Algorithm, such as aes or rsa; required for keys."),
        "bit_length": Property("integer", "Key length, in bits; required for keys."),
        "type": Property(
            "string",
            "Order type.",
            required=True,
            constraints=(AllowedValues(values=(KEY, ASYMMETRIC, CERTIFICATE)),),
            support_status=SINCE,
        ),
        "request_type": Property(
            "string",
            "Request type of a certificate order.",
            constraints=(AllowedValues(values=("stored-key", "simple-cmc", "custom")),),
            support_status=SINCE,
        ),
        "subject_dn": Property(
            "string", "Subject distinguished name (DN) of the certificate.", support_status=SINCE
        ),
        "source_container_ref": Property(
            "string",
            "Reference of the container with the keys of the certificate.",
            constraints=(Custom(check_name="barbican.container"),),
            support_status=SINCE,
        ),
        "ca_id": Property("string", "Id of the certificate authority (CA).", support_status=SINCE),
        "profile": Property("string", "Profile of the certificate authority.", support_status=SINCE),
        "request_data": Property("string", "Certificate request data.", support_status=SINCE),
        "pass_phrase": Property(
            "string", "Passphrase of an asymmetric key pair.", sensitive=True, support_status=SINCE
        ),
    }
    attributes_schema = {
        "status": Attribute("Status.", "string"),
        "order_ref": Attribute("Reference of the order.", "string"),
        "secret_ref": Attribute("Reference of the secret that the order created.", "string"),
        "container_ref": _secret("Reference of the container that the order created."),
        "public_key": _secret("Public key of the created key pair."),
        "private_key": _secret("Private key of the created key pair.", is_secret=True),
        "certificate": _secret("Certificate that the order created."),
        "intermediates": _secret("Intermediate certificates up to the certificate authority's."),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that the properties are those of the order's type."""
        kind = str(properties.get("type"))
        if kind not in ALLOWED:
            return
        if kind != CERTIFICATE and not _has(properties, "algorithm", "bit_length"):
            text = f"Properties algorithm and bit_length are required for {kind} type of order."
            raise PropertyError(text)
        if kind == CERTIFICATE and properties.get("profile") and not _has(properties, "ca_id"):
            raise PropertyError("profile cannot be specified without ca_id.")
        named = {name for name, value in properties.items() if value is not None}
        if unexpected := sorted(named - {"type", *ALLOWED[kind]}):
            text = f"Unexpected properties: {', '.join(unexpected)}. Only these properties are allowed for "
            raise PropertyError(f"{text}{kind} type of order: {', '.join(sorted(ALLOWED[kind]))}.")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        fields = super().create_body(target, context)
        kind = fields.pop("type", None)
        if "source_container_ref" in fields:
            fields["container_ref"] = fields.pop("source_container_ref")
        return {"type": kind, "meta": fields}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer, and the secrets that were read."""
        values = super().attribute_values(target)
        return {**values, **{name: target.data.get(name) for name in PAYLOADS}}

    def _alike(self, target: ResourceView, context: StepContext) -> list[str]:
        """Return the addresses of the orders with the same name, which is among their metadata."""
        as_created = dataclasses.replace(target, key=target.creation_key or target.key)
        name = self.create_body(as_created, context)["meta"]["name"]
        orders = self.service_for(context).list_all(self.path, self.items)
        return [
            str(order[self.id_field]) for order in orders if (order.get("meta") or {}).get("name") == name
        ]

    def _wait(self, remote: JsonMap | None, since: float, target: ResourceView, context: StepContext) -> Step:
        """Return the end of the action with the secrets of the container, or the next poll."""
        step = super()._wait(remote, since, target, context)
        if not isinstance(step, Done) or step.data is None:
            return step
        container = (step.data.get(REMOTE) or {}).get("container_ref")
        return dataclasses.replace(step, data={**step.data, **self._payloads(container, context)})

    def _payloads(self, container: str | None, context: StepContext) -> dict[str, Json]:
        if container is None:
            return {}
        service = self.service_for(context)
        refs = service.get(f"/containers/{last_part(container)}")["secret_refs"]
        return {
            item["name"]: service.get_text(f"/secrets/{last_part(item['secret_ref'])}/payload")
            for item in refs
            if item["name"] in PAYLOADS
        }


def _has(properties: JsonMap, *names: str) -> bool:
    """Return whether all properties have a value, or one that is not known yet."""
    return all(properties.get(name, "unknown") is not None for name in names)
