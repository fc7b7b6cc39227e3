"""OS::Cinder::EncryptedVolumeType: how the volumes of a type are encrypted; for administrators."""

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom
from ...contract import Done, Property, ResourceView, Step, StepContext, SupportStatus
from ..attached import AttachedType, Link
from ..bodies import live_fields, without_nulls
from ..declared import REMOTE
from ..names import resolve
from ..service import RemoteNotFound

FIELDS = ("provider", "cipher", "key_size", "control_location")


class EncryptedVolumeType(AttachedType):
    """The encryption of the volumes of a type, whose id is the physical id, as in Heat."""

    type_name = "OS::Cinder::EncryptedVolumeType"
    support_status = SupportStatus(version="5.0.0")
    description = "The encryption of the volumes of a type; for administrators."
    service = "block-storage"
    path = "/types"
    item = "encryption"
    identity = "the volume type; Stoker first stores that it has no encryption"
    missing = "block-storage: volume type {0} has no encryption"
    properties_schema = {
        "volume_type": Property(
            "string",
            "Name or id of the volume type.",
            required=True,
            constraints=(Custom(check_name="cinder.vtype"),),
        ),
        "provider": Property(
            "string", "Encryption provider, such as luks.", required=True, update_allowed=True
        ),
        "cipher": Property(
            "string",
            "Encryption algorithm and mode.",
            update_allowed=True,
            constraints=(AllowedValues(values=("aes-xts-plain64", "aes-cbc-essiv")),),
        ),
        "key_size": Property("integer", "Key size, in bits.", update_allowed=True),
        "control_location": Property(
            "string",
            "Location of the encryption: at the compute host (front-end) or in the storage back end "
            "(back-end).",
            default="front-end",
            update_allowed=True,
            constraints=(AllowedValues(values=("front-end", "back-end")),),
        ),
    }

    def link(self, properties: JsonMap, context: StepContext) -> Link:
        """Return the volume type."""
        return (resolve(context, "cinder.vtype", properties["volume_type"]),)

    def attach(self, link: Link, target: ResourceView, context: StepContext) -> Json:
        """Give the volume type the encryption."""
        fields = without_nulls({name: target.properties[name] for name in FIELDS})
        path = f"{self.path}/{link[0]}/encryption"
        return self.service_for(context).post(path, {self.item: fields})[self.item]

    def find(self, link: Link, context: StepContext) -> Json:
        """Return the encryption of the volume type, if it has one."""
        try:
            encryption = self.service_for(context).get(f"{self.path}/{link[0]}/encryption")
        except RemoteNotFound:
            return None
        return encryption if encryption and encryption.get("encryption_id") else None

    def detach(self, link: Link, context: StepContext) -> bool:
        """Take the encryption away, if there is one."""
        encryption = self.find(link, context)
        if encryption is not None:
            path = f"{self.path}/{link[0]}/encryption/{encryption['encryption_id']}"
            self.service_for(context).delete(path)
        return False

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Change the fields.

        :raises RemoteNotFound: the volume type has no encryption.
        """
        link = (self.id_of(target),)
        encryption = self.find(link, context)
        if encryption is None:
            raise RemoteNotFound(self.missing.format(*link))
        fields = {name: target.properties[name] for name in sorted(changed)}
        path = f"{self.path}/{link[0]}/encryption/{encryption['encryption_id']}"
        self.service_for(context).put(path, {self.item: fields})
        return Done(data={**target.data, REMOTE: {**encryption, **fields}})

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the fields as they are now.

        :raises RemoteNotFound: the volume type has no encryption.
        """
        encryption = self.find((self.id_of(target),), context)
        if encryption is None:
            raise RemoteNotFound(self.missing.format(self.id_of(target)))
        return live_fields(self, target.properties, encryption)
