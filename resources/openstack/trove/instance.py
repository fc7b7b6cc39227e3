"""OS::Trove::Instance: a database server with its databases and users."""

from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedPattern, Length, Range
from ...contract import (
    Attribute,
    CloudCalls,
    Poll,
    Property,
    PropertyError,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)
from ..bodies import without_nulls
from ..declared import REMOTE
from ..names import quoted, resolve
from ..polling import FIRST_PAUSE
from ..service import Service, objects_of
from .base import (
    FLAVOR,
    NETWORKS_SCHEMA,
    REASONS,
    DatabaseType,
    check_datastore,
    check_interfaces,
    datastore_of,
    interfaces_of,
)

CHANGED = "changed"
"""Key of the progress of an update: names of the properties that change."""
_USER_PATTERN = AllowedPattern(pattern=r"[a-zA-Z0-9_]+[a-zA-Z0-9_@?#\s]*[a-zA-Z0-9_]+")
DATABASE = Property(
    "map",
    "Database.",
    schema={
        "character_set": Property("string", "Character set.", default="utf8"),
        "collate": Property("string", "Collation.", default="utf8_general_ci"),
        "name": Property(
            "string",
            "Name of the database.",
            required=True,
            constraints=(
                Length(maximum=64),
                AllowedPattern(pattern=r"[a-zA-Z0-9_\-]+[a-zA-Z0-9_@?#\s\-]*[a-zA-Z0-9_\-]+"),
            ),
        ),
    },
)
USER = Property(
    "map",
    "User.",
    schema={
        "name": Property(
            "string",
            "User name.",
            required=True,
            update_allowed=True,
            constraints=(Length(maximum=16), _USER_PATTERN),
        ),
        "password": Property(
            "string",
            "Password.",
            required=True,
            update_allowed=True,
            constraints=(_USER_PATTERN,),
            sensitive=True,
        ),
        "host": Property(
            "string",
            "Host that the user may connect from; % is a wildcard.",
            default="%",
            update_allowed=True,
        ),
        "databases": Property(
            "list",
            "Names of the databases that the user has access to.",
            required=True,
            update_allowed=True,
            constraints=(Length(minimum=1),),
            schema=Property("string", "Name of a database."),
        ),
    },
)


class DatabaseInstance(DatabaseType):
    """A database instance; an update waits between its changes, of which the service makes one at a time."""

    type_name = "OS::Trove::Instance"
    support_status = SupportStatus(version="2014.1")
    description = "A database instance, with databases and users."
    path = "/instances"
    item = "instance"
    apart = (
        *("flavor", "size", "datastore_type", "datastore_version", "networks", "databases", "users"),
        *("availability_zone", "restore_point", "replica_of", "replica_count"),
    )
    properties_schema = {
        "name": Property(
            "string",
            "Name; if omitted, generated from the names of the stack and the resource.",
            update_allowed=True,
            constraints=(Length(maximum=255),),
        ),
        "flavor": Property(
            "string", "Name or id of the flavor.", required=True, update_allowed=True, constraints=(FLAVOR,)
        ),
        "datastore_type": Property(
            "string", "Datastore type, such as mysql.", constraints=(Length(maximum=255),)
        ),
        "datastore_version": Property("string", "Datastore version.", constraints=(Length(maximum=255),)),
        "size": Property(
            "integer",
            "Volume size, in GiB.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=1, maximum=150),),
        ),
        "networks": Property("list", "Network interfaces.", default=[], schema=NETWORKS_SCHEMA),
        "databases": Property("list", "Databases.", default=[], update_allowed=True, schema=DATABASE),
        "users": Property("list", "Users.", default=[], update_allowed=True, schema=USER),
        "availability_zone": Property("string", "Availability zone."),
        "restore_point": Property("string", "Id of the backup that the instance is restored from."),
        "replica_of": Property(
            "string",
            "Id of the primary instance to replicate.",
            support_status=SupportStatus(version="5.0.0"),
        ),
        "replica_count": Property(
            "integer", "Number of replicas to create.", support_status=SupportStatus(version="5.0.0")
        ),
    }
    attributes_schema = {
        "hostname": Attribute("Host name.", "string"),
        "href": Attribute("URL of the instance in the service's API.", "string"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the kind of database, the interfaces, and that users have databases which there are."""
        check_datastore(properties)
        check_interfaces(properties.get("networks") or (), ("networks",))
        if not properties.get("users") or "databases" not in properties:
            return
        if not properties["databases"]:
            raise PropertyError(
                "Databases property is required if users property is provided.", ("databases",)
            )
        names = {database.get("name") for database in properties["databases"]}
        for number, user in enumerate(properties["users"]):
            missing = [name for name in user.get("databases") or () if name not in names]
            if missing and None not in names:
                text = f"Database {missing} specified for user does not exist in databases."
                raise PropertyError(text, ("users", number, "databases"))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        restore_point = properties["restore_point"]
        optional = {
            "databases": [*map(without_nulls, properties["databases"] or ())] or None,
            "users": [*map(_user, properties["users"] or ())] or None,
            "restorePoint": {"backupRef": restore_point} if restore_point else None,
            "availability_zone": properties["availability_zone"],
            "replica_of": properties["replica_of"],
            "replica_count": properties["replica_count"],
        }
        return {
            "name": self.name_of(target),
            "flavorRef": resolve(context, "trove.flavor", properties["flavor"]),
            "volume": {"size": properties["size"]},
            **datastore_of(properties),
            **interfaces_of(properties["networks"] or (), context),
            **without_nulls(optional),
        }

    def handle_update(self, target: ResourceView, changed: frozenset[str], context: StepContext) -> Step:
        """Begin with the changes; each poll makes the next one once the instance is active."""
        return Poll(progress={"since": context.now(), CHANGED: sorted(changed)}, after=0.0)

    def check_update_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Make the next change, if the instance is active and lacks one."""
        service = self.service_for(context)
        remote = self.get(service, self.id_of(target))
        step = self._wait(remote, progress["since"], target, context)
        if isinstance(step, Poll):
            return Poll(progress=progress, after=step.after)
        if self._change(service, remote, progress[CHANGED], target, context):
            return Poll(progress=progress, after=FIRST_PAUSE)
        if "databases" in progress[CHANGED]:
            self._change_databases(service, target)
        if "users" in progress[CHANGED]:
            self._change_users(service, target)
        return step

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the name, where the template has one, and the size."""
        volume = remote.get("volume") or {}
        size = {"size": volume["size"]} if "size" in volume else {}
        return {**super().reported_properties(target, remote, context), **size}

    def live_properties(self, target: ResourceView, context: StepContext) -> JsonMap:
        """Return the databases, too: as in the template, and others by their names."""
        live = dict(super().live_properties(target, context))
        names = self._names(self.service_for(context), target, "databases")
        expected = target.properties["databases"] or ()
        present = [database for database in expected if database["name"] in names]
        others = set(names) - {database["name"] for database in present}
        return {**live, "databases": [*present, *({"name": name} for name in sorted(others))]}

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the host name, and the address at the service."""
        remote = target.data.get(REMOTE) or {}
        return {**super().attribute_values(target), "href": _own_address(remote.get("links"))}

    def problem(self, remote: JsonMap) -> str:
        """Return the service's words for the fault, or Heat's for the state."""
        fault = remote.get("fault") or {}
        return str(fault.get("message") or REASONS.get(self.status.of(remote), ""))

    # -- inside ------------------------------------------------------------------------------------

    def _change(
        self,
        service: Service,
        remote: JsonMap,
        changed: Sequence[str],
        target: ResourceView,
        context: StepContext,
    ) -> bool:
        """Begin the next change of the instance itself; return False where there is none."""
        properties = target.properties
        path = self.path_of(target)
        if "name" in changed and remote.get("name") != self.name_of(target) and properties["name"]:
            service.patch(path, {"instance": {"name": properties["name"]}})
            return True
        if "flavor" in changed:
            flavor = resolve(context, "trove.flavor", properties["flavor"])
            if str((remote.get("flavor") or {}).get("id")) != flavor:
                service.post(f"{path}/action", {"resize": {"flavorRef": flavor}})
                return True
        if "size" in changed and (remote.get("volume") or {}).get("size") != properties["size"]:
            service.post(f"{path}/action", {"resize": {"volume": {"size": properties["size"]}}})
            return True
        return False

    def _names(self, service: Service, target: ResourceView, items: str) -> list[str]:
        """Return the names of the databases, or of the users."""
        return [str(each["name"]) for each in service.list_all(f"{self.path_of(target)}/{items}", items)]

    def _change_databases(self, service: Service, target: ResourceView) -> None:
        path = f"{self.path_of(target)}/databases"
        present = self._names(service, target, "databases")
        databases = target.properties["databases"] or ()
        if new := [without_nulls(database) for database in databases if database["name"] not in present]:
            service.post(path, {"databases": new})
        for name in set(present) - {database["name"] for database in databases}:
            service.delete(f"{path}/{quoted(name)}")

    def _change_users(self, service: Service, target: ResourceView) -> None:
        path = f"{self.path_of(target)}/users"
        present = {str(user["name"]): user for user in service.list_all(path, "users")}
        users = target.properties["users"] or ()
        if new := [_user(user) for user in users if user["name"] not in present]:
            service.post(path, {"users": new})
        for name in present.keys() - {user["name"] for user in users}:
            service.delete(f"{path}/{quoted(name)}")
        for user in users:
            if user["name"] in present:
                _change_user(service, f"{path}/{quoted(user['name'])}", user, present[user["name"]])


def _change_user(service: Service, path: str, user: JsonMap, present: JsonMap) -> None:
    """Change a user's password, host and databases; the service shows no password."""
    fields = {name: user[name] for name in ("host", "password") if user[name]}
    service.put(path, {"user": fields})
    before = [str(database["name"]) for database in objects_of(present, "databases")]
    after = user["databases"] or ()
    if granted := [{"name": name} for name in after if name not in before]:
        service.put(f"{path}/databases", {"databases": granted})
    for name in before:
        if name not in after:
            service.delete(f"{path}/databases/{quoted(name)}")


def _user(user: JsonMap) -> dict[str, Json]:
    databases = [{"name": name} for name in user["databases"] or ()]
    return {**without_nulls(user), "databases": databases}


def _own_address(links: Json) -> Json:
    """Return the address of a stored answer's links that leads to the thing itself; None: there is none."""
    addresses = (
        link.get("href")
        for link in (links if isinstance(links, list) else ())
        if isinstance(link, Mapping) and link.get("rel") == "self"
    )
    return next(addresses, None)
