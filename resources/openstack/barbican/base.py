"""The base of the types of the key manager."""

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Property, ResourceView, RetryableError, StepContext, SupportStatus
from ..compared import ComparedType
from ..service import Service
from ..statuses import StatusMeaning

OLD = SupportStatus(version="2014.2")
EXPIRATION = Property(
    "string",
    "Expiration time, in ISO 8601 format.",
    constraints=(Custom(check_name="expiration"),),
)


class KeyManagerType(ComparedType):
    """Base of the types of the key manager.

    A thing's id is its address, as in Heat; the last part is its id at the service.  The answer to a
    creation has the address only, so the thing is read at once.
    """

    service = "key-manager"
    item = ""
    identity = "the name; Stoker first stores which things have it"
    status = StatusMeaning(pending=("PENDING",))
    answers_in_full = False

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new thing; it gets a name in any case, by which it is found again."""
        body = super().create_body(target, context)
        return {**body, "name": body.get("name") or target.physical_name}

    def get(self, service: Service, physical_id: str) -> JsonMap:
        """Return a thing by its address.

        :raises RemoteNotFound: the thing does not exist.
        """
        remote = self._unwrapped(service.get(f"{self.path}/{last_part(physical_id)}"))
        return {**remote, self.id_field: remote.get(self.id_field) or physical_id}

    def path_of(self, target: ResourceView) -> str:
        return f"{self.path}/{last_part(self.id_of(target))}"

    def problem(self, remote: JsonMap) -> str:
        """Return why the thing could not be made."""
        code = remote.get("error_status_code")
        return f"{code} - {remote.get('error_reason')}" if code else ""

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the thing is gone or in a bad state; what a lost call has made is deleted."""
        if target.physical_id is not None:
            return super().needs_replace_failed(target, context)
        created = self.find_created(target.creation_key, target, context)
        if created is not None and self._delete_double(last_part(created), context):
            raise RetryableError("what a lost creation has made is being deleted")
        return True

    def _look(self, target: ResourceView, since: float, context: StepContext) -> JsonMap | None:
        """Return the thing; each is read alone, for lists have addresses in the place of ids."""
        return self.get(self.service_for(context), self.id_of(target))


def last_part(address: str) -> str:
    """Return the last part of the address of a thing."""
    return address.rstrip("/").rpartition("/")[2]
