"""OS::Octavia::Pool, OS::Octavia::PoolMember and OS::Octavia::HealthMonitor."""

from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Range
from ...contract import Attribute, CloudCalls, Property, PropertyError, ResourceView, StepContext
from ..bodies import NamedRemote, without_nulls
from ..marks import PREFIX, mark_of
from ..parts import PartType
from .base import BalancerPart
from .schema import (
    ADDRESS,
    BALANCER,
    DESCRIPTION,
    ENABLED,
    LISTENER,
    NAME,
    OWNER,
    POOL,
    PORT,
    PROTOCOLS,
    SHOW,
    SINCE,
    SUBNET,
)

ALGORITHMS = AllowedValues(values=("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"))
PERSISTENCE = {
    "type": Property(
        "string",
        "Session persistence method.",
        required=True,
        constraints=(AllowedValues(values=("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE")),),
    ),
    "cookie_name": Property("string", "Cookie name, for APP_COOKIE."),
}


class Pool(BalancerPart):
    """Members that share the connections of a listener, or of several."""

    type_name = "OS::Octavia::Pool"
    support_status = SINCE
    description = "A pool: members that share the connections of a listener."
    path = "/lbaas/pools"
    item = "pool"
    quota = {"pool": 1}
    references = {
        "listener": NamedRemote("octavia.listener"),
        "loadbalancer": NamedRemote("octavia.loadbalancer"),
    }
    properties_schema = {
        "admin_state_up": ENABLED,
        "description": DESCRIPTION,
        "session_persistence": Property(
            "map",
            "Session persistence.",
            update_allowed=True,
            schema=PERSISTENCE,
        ),
        "name": NAME,
        "lb_algorithm": Property(
            "string",
            "Load balancing algorithm.",
            required=True,
            update_allowed=True,
            constraints=(ALGORITHMS,),
        ),
        "loadbalancer": Property(
            "string",
            "Name or id of the load balancer; alternative to listener.",
            constraints=(BALANCER,),
        ),
        "listener": Property(
            "string",
            "Name or id of the listener that gets the pool as its default; alternative to loadbalancer.",
            constraints=(LISTENER,),
        ),
        "protocol": Property("string", "Protocol of the members.", required=True, constraints=(PROTOCOLS,)),
        "tls_enabled": Property(
            "boolean", "TLS encryption of the connections to members.", default=False, update_allowed=True
        ),
    }
    attributes_schema = {
        "healthmonitor_id": Attribute("Id of the health monitor.", "string", volatile=True),
        "listeners": Attribute(
            "Ids of the listeners that have the pool as their default.", "string", volatile=True
        ),
        "members": Attribute("Ids of the members.", "list", volatile=True),
        "show": SHOW,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that it is of a balancer or a listener, and that a cookie is named where one is needed."""
        if not any(properties.get(name, "unknown") for name in ("listener", "loadbalancer")):
            raise PropertyError("one of listener and loadbalancer is needed")
        persistence = properties.get("session_persistence") or {}
        cookie = persistence.get("cookie_name", "unknown" if "cookie_name" not in persistence else None)
        if persistence.get("type") == "APP_COOKIE" and not cookie:
            raise PropertyError("cookie_name is needed for the type APP_COOKIE", ("session_persistence",))
        if persistence.get("type") == "SOURCE_IP" and persistence.get("cookie_name"):
            raise PropertyError(
                "cookie_name cannot be given for the type SOURCE_IP", ("session_persistence",)
            )

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return _with_persistence(super().create_body(target, context))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        return _with_persistence(super().update_body(target, changed, context))

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the service has further parts of the persistence."""
        values = super().reported_properties(target, remote, context)
        persistence = values.get("session_persistence")
        if not persistence:
            return values
        return {**values, "session_persistence": {name: persistence.get(name) for name in PERSISTENCE}}


def _with_persistence(body: dict[str, Json]) -> dict[str, Json]:
    """Return the fields with only those parts of the persistence that are given."""
    persistence = body.get("session_persistence")
    return {**body, "session_persistence": without_nulls(persistence)} if persistence else body


class PoolMember(PartType, BalancerPart):
    """An address and a port that get connections of a pool."""

    type_name = "OS::Octavia::PoolMember"
    support_status = SINCE
    description = "A member of a pool: the address and port of a back-end server."
    path = "/lbaas/pools/{}/members"
    item = "member"
    quota = {"member": 1}
    whole = "pool"
    whole_kind = "octavia.pool"
    references = {"subnet": NamedRemote("neutron.subnet")}
    apart = ("pool",)
    properties_schema = {
        "pool": Property("string", "Name or id of the pool.", required=True, constraints=(POOL,)),
        "address": Property("string", "IP address of the member.", required=True, constraints=(ADDRESS,)),
        "protocol_port": Property(
            "integer", "Port number of the member.", required=True, constraints=(PORT,)
        ),
        "monitor_address": Property(
            "string", "IP address for health checks; if omitted, that of the member.", constraints=(ADDRESS,)
        ),
        "monitor_port": Property(
            "integer", "Port number for health checks; if omitted, that of the member.", constraints=(PORT,)
        ),
        "weight": Property(
            "integer",
            "Weight: share of the connections relative to the other members; 0: no new connections.",
            default=1,
            update_allowed=True,
            constraints=(Range(minimum=0, maximum=256),),
        ),
        "admin_state_up": ENABLED,
        "subnet": Property(
            "string",
            "Name or id of the subnet that the member is reachable on; if omitted, the VIP's.",
            constraints=(SUBNET,),
        ),
        "tags": Property("list", "Tags.", update_allowed=True),
    }
    attributes_schema = {"show": SHOW}

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; the mark stays among the tags."""
        body = super().update_body(target, changed, context)
        if "tags" in body:
            mark = [mark_of(target.creation_key)] if target.creation_key else []
            body["tags"] = [*(body["tags"] or ()), *mark]
        return body

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: CloudCalls) -> JsonMap:
        """Return the fields; the mark is none of the tags."""
        values = super().reported_properties(target, remote, context)
        if "tags" not in values:
            return values
        return {**values, "tags": [tag for tag in values["tags"] if not tag.startswith(PREFIX)]}


class HealthMonitor(BalancerPart):
    """Questions that find out which members of a pool answer."""

    type_name = "OS::Octavia::HealthMonitor"
    support_status = SINCE
    description = "A health monitor: the health checks of the members of a pool."
    path = "/lbaas/healthmonitors"
    item = "healthmonitor"
    quota = {"health_monitor": 1}
    references = {"pool": NamedRemote("octavia.pool")}
    renamed = {"tenant_id": "project_id"}
    properties_schema = {
        "admin_state_up": ENABLED,
        "delay": Property(
            "integer",
            "Interval between two health checks of a member, in seconds.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "expected_codes": Property(
            "string",
            "Expected HTTP status codes of healthy members: one, a list with commas, or a range.",
            update_allowed=True,
        ),
        "http_method": Property(
            "string",
            "HTTP method of the health checks.",
            update_allowed=True,
            constraints=(
                AllowedValues(
                    values=(
                        *("GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"),
                    )
                ),
            ),
        ),
        "max_retries": Property(
            "integer",
            "Number of successful checks after which a member is online.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=1, maximum=10),),
        ),
        "pool": Property("string", "Name or id of the pool.", required=True, constraints=(POOL,)),
        "timeout": Property(
            "integer",
            "Timeout of a health check, in seconds.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "type": Property(
            "string",
            "Health check type.",
            required=True,
            constraints=(AllowedValues(values=("PING", "TCP", "HTTP", "HTTPS", "UDP-CONNECT")),),
        ),
        "url_path": Property("string", "URL path of the health checks.", update_allowed=True),
        "tenant_id": OWNER,
    }
    attributes_schema = {"pools": Attribute("Id of the pool, as a list.", "list"), "show": SHOW}
