"""OS::Nova::KeyPair: a key pair for logins on servers."""

import contextlib
import dataclasses
import typing

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Length
from ...contract import (
    Attribute,
    Done,
    Poll,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..declared import REMOTE, WAS_FREE
from ..names import quoted, resolve
from ..service import Conflict, RemoteNotFound, Service, service_of
from .fits import key_pairs_that_exist

MICROVERSION: typing.Final = "2.10"
"""The newest that is needed, for key pairs of other users; from 2.92 on the service generates no keys."""
SECRET = "private_key"
"""Keys of the data: the generated private key; no pair had the name before the creation."""


class KeyPair(ResourceType):
    """A key pair; the user and its name are its identity."""

    type_name = "OS::Nova::KeyPair"
    support_status = SupportStatus(version="2014.1")
    description = "A key pair for SSH access to servers, imported or generated."
    uses_credentials = True
    service = "compute"
    quota = {"key_pairs": 1}
    owner_property = "user"
    cloud_rules = (key_pairs_that_exist,)
    identity = "the name, which no pair had before; for an imported key its public key, too"
    properties_schema = {
        "name": Property(
            "string", "Name of the key pair.", required=True, constraints=(Length(minimum=1, maximum=255),)
        ),
        "save_private_key": Property(
            "boolean", "Storage of the generated private key, for the attribute private_key.", default=False
        ),
        "public_key": Property(
            "string", "Public key to import; if omitted, the service generates a key pair."
        ),
        "type": Property(
            "string",
            "Type of the key pair; if omitted, ssh.",
            constraints=(AllowedValues(values=("ssh", "x509")),),
        ),
        "user": Property(
            "string",
            "Name or id of the owning user; for administrators only.",
            constraints=(Custom(check_name="keystone.user"),),
        ),
    }
    attributes_schema = {
        "public_key": Attribute("Public key.", "string"),
        "private_key": Attribute("Private key, if save_private_key is true.", "string", sensitive=True),
        "show": Attribute("All fields, as the service's API returns them.", "map"),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store first that no pair has the name: one that appears afterwards is ours.

        :raises Conflict: another pair has the name.
        """
        if target.physical_id is not None:
            return self._create(target, context)
        if self._find(target, _service(context), context) is not None:
            raise _name_taken(target)
        return Poll(progress={"since": context.now()}, after=0.0, data={**target.data, WAS_FREE: True})

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Import the key, or let the service generate one, unless an earlier step has."""
        return self._create(target, context)

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the pair, unless another one has its name: that of a replacement."""
        if target.physical_id is None:
            return Done()
        service = _service(context)
        public_key = (target.data.get(REMOTE) or {}).get("public_key")
        keypair = self._find(target, service, context)
        if keypair is not None and (public_key is None or _is_same(keypair["public_key"], public_key)):
            self._delete(target, service, context)
        return Done()

    def handle_check(self, target: ResourceView, context: StepContext) -> Step:
        """Check that the pair is there.

        :raises RemoteNotFound: the pair does not exist.
        """
        if (keypair := self._find(target, _service(context), context)) is None:
            raise RemoteNotFound(f"compute: the key pair {target.physical_id} does not exist")
        return Done(data={**target.data, REMOTE: keypair})

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the name, if a pair has it now, and none had it before the creation.

        :raises Conflict: the pair has another public key than the one that is to be imported.
        """
        keypair = self._find(target, _service(context), context) if target.data.get(WAS_FREE) else None
        if keypair is None:
            return None
        public_key = target.properties["public_key"]
        if public_key and not _is_same(keypair["public_key"], public_key):
            raise _name_taken(target)
        return str(keypair["name"])

    def prepare_for_replace(self, target: ResourceView, context: StepContext) -> None:
        """Release the name: the replacement may have the same."""
        self.handle_delete(target, context)

    def restore_after_replace(self, target: ResourceView, context: StepContext) -> None:
        """Import the public key again, in place of the replacement's."""
        public_key = (target.data.get(REMOTE) or {}).get("public_key")
        service = _service(context)
        keypair = self._find(target, service, context)
        if (
            target.physical_id is None
            or public_key is None
            or (keypair and _is_same(keypair["public_key"], public_key))
        ):
            return
        if keypair is not None:
            self._delete(target, service, context)
        service.post("/os-keypairs", {"keypair": {**self._body(target, context), "public_key": public_key}})

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the pair is gone."""
        return target.physical_id is None or self._find(target, _service(context), context) is None

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the keys; the private one is empty where it is not kept."""
        keypair = target.data.get(REMOTE) or {}
        return {
            "public_key": keypair.get("public_key"),
            "private_key": target.data.get(SECRET, ""),
            "show": keypair,
        }

    def _create(self, target: ResourceView, context: StepContext) -> Step:
        """Create the pair; one whose private key was lost with its answer is created again."""
        properties = target.properties
        service = _service(context)
        name = target.physical_id
        if name is None and target.attempt > 1:
            name = self.find_created(target.key, target, context)
        if name is not None:
            target = dataclasses.replace(target, physical_id=name)
            if not properties["save_private_key"] or properties["public_key"] or SECRET in target.data:
                return Done(
                    physical_id=name, data={**target.data, REMOTE: self._find(target, service, context)}
                )
            self._delete(target, service, context)
        answer = dict(service.post("/os-keypairs", {"keypair": self._body(target, context)})["keypair"])
        secret = answer.pop("private_key", None)
        data = {SECRET: secret} if properties["save_private_key"] and secret else {}
        return Done(physical_id=properties["name"], data={**target.data, REMOTE: answer, **data})

    def _body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        body = {name: properties[name] for name in ("name", "public_key", "type") if properties[name]}
        if properties["user"]:
            body["user_id"] = resolve(context, "keystone.user", properties["user"])
        return body

    def _delete(self, target: ResourceView, service: Service, context: StepContext) -> None:
        path, query = self._path(target, context)
        with contextlib.suppress(RemoteNotFound):
            service.delete(path, **query)

    def _find(self, target: ResourceView, service: Service, context: StepContext) -> JsonMap | None:
        path, query = self._path(target, context)
        try:
            keypair: JsonMap = service.get(path, **query)["keypair"]
        except RemoteNotFound:
            return None
        return keypair

    def _path(self, target: ResourceView, context: StepContext) -> tuple[str, dict[str, str]]:
        user = target.properties["user"]
        name = target.physical_id or target.properties["name"]
        query = {"user_id": resolve(context, "keystone.user", user)} if user else {}
        return f"/os-keypairs/{quoted(name)}", query


def _service(context: StepContext) -> Service:
    return service_of(context, "compute", MICROVERSION)


def _is_same(one: str, other: str) -> bool:
    """Return whether two public keys are the same, whatever their comments."""
    return one.split()[:2] == other.split()[:2]


def _name_taken(target: ResourceView) -> Conflict:
    return Conflict(f"compute: another key pair has the name {target.properties['name']}")
