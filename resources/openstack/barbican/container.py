"""OS::Barbican::GenericContainer, CertificateContainer and RSAContainer: secrets under names."""

import typing
from collections.abc import Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext, SupportStatus
from ..declared import REMOTE
from ..service import objects_of
from .base import KeyManagerType

SECRET = (Custom(check_name="barbican.secret"),)
NAME = Property("string", "Name; if omitted, generated from the names of the stack and the resource.")
REF = "_ref"


class SecretContainer(KeyManagerType):
    """Base of the types.

    :cvar kind: the service's type of the containers.
    """

    support_status = SupportStatus(version="6.0.0")
    path = "/containers"
    items = "containers"
    id_field = "container_ref"
    kind: typing.ClassVar[str]
    quota = {"containers": 1}
    attributes_schema = {
        "status": Attribute("Status.", "string"),
        "container_ref": Attribute("Reference of the container.", "string"),
        "secret_refs": Attribute("References of the secrets, by name.", "map"),
        "consumers": Attribute("Consumers registered for the container.", "list"),
    }

    def refs(self, properties: JsonMap) -> Sequence[tuple[str, str]]:
        """Return names and addresses of the secrets."""
        named = ((name.removesuffix(REF), value) for name, value in properties.items() if name.endswith(REF))
        return [(name, value) for name, value in named if value]

    def validate(self, properties: JsonMap) -> None:
        """Check that no secret is there twice."""
        addresses = [address for _, address in self.refs(properties)]
        if len(addresses) != len(set(addresses)):
            raise PropertyError("Duplicate refs are not allowed.")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        name = target.properties["name"] or target.physical_name
        refs = [{"name": key, "secret_ref": address} for key, address in self.refs(target.properties)]
        return {"name": name, "type": self.kind, "secret_refs": refs}

    def _unwrapped(self, answer: Json) -> JsonMap:
        """Return the container, whose secrets become an attribute."""
        container = super()._unwrapped(answer)
        if "secret_refs" in container:
            objects_of(container, "secret_refs")
        return container

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the fields of the stored answer; the secrets as a map."""
        refs = (target.data.get(REMOTE) or {}).get("secret_refs") or ()
        by_name = {item.get("name"): item.get("secret_ref") for item in refs}
        return {**super().attribute_values(target), "secret_refs": by_name}


class GenericContainer(SecretContainer):
    """Secrets under names that the template chooses."""

    type_name = "OS::Barbican::GenericContainer"
    description = "A generic container: named secrets."
    kind = "generic"
    properties_schema = {
        "name": NAME,
        "secrets": Property(
            "list",
            "Secrets.",
            schema=Property(
                "map",
                "Secret with its name.",
                schema={
                    "name": Property("string", "Name of the secret in the container.", required=True),
                    "ref": Property("string", "Reference of the secret.", required=True, constraints=SECRET),
                },
            ),
        ),
    }

    def refs(self, properties: JsonMap) -> Sequence[tuple[str, str]]:
        return [(item["name"], item["ref"]) for item in properties.get("secrets") or () if "ref" in item]


class CertificateContainer(SecretContainer):
    """A certificate with its key."""

    type_name = "OS::Barbican::CertificateContainer"
    description = "A certificate container: a certificate with its key, passphrase and intermediates."
    kind = "certificate"
    properties_schema = {
        "name": NAME,
        "certificate_ref": Property("string", "Reference of the certificate.", constraints=SECRET),
        "private_key_ref": Property("string", "Reference of the private key.", constraints=SECRET),
        "private_key_passphrase_ref": Property(
            "string", "Reference of the passphrase of the private key.", constraints=SECRET
        ),
        "intermediates_ref": Property(
            "string", "Reference of the intermediate certificates.", constraints=SECRET
        ),
    }


class RSAContainer(SecretContainer):
    """A pair of keys."""

    type_name = "OS::Barbican::RSAContainer"
    description = "An RSA container: a public key, its private key and passphrase."
    kind = "rsa"
    properties_schema = {
        "name": NAME,
        "private_key_ref": Property("string", "Reference of the private key.", constraints=SECRET),
        "private_key_passphrase_ref": Property(
            "string", "Reference of the passphrase of the private key.", constraints=SECRET
        ),
        "public_key_ref": Property("string", "Reference of the public key.", constraints=SECRET),
    }
