"""OS::Octavia::Pool, OS::Octavia::PoolMember and OS::Octavia::HealthMonitor."""

from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Range
from ...contract.context import StepContext
from ...contract.views import ResourceView
from ...errors import PropertyError
from ...schema import Attribute, Property
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
        "By what clients are recognized.",
        required=True,
        constraints=(AllowedValues(values=("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE")),),
    ),
    "cookie_name": Property("string", "Name of the cookie, for APP_COOKIE."),
}


class Pool(BalancerPart):
    """Members that share the connections of a listener, or of several."""

    support_status = SINCE
    description = "Members that share the connections of a listener."
    path = "/lbaas/pools"
    item = "pool"
    references = {
        "listener": NamedRemote("octavia.listener"),
        "loadbalancer": NamedRemote("octavia.loadbalancer"),
    }
    properties_schema = {
        "admin_state_up": ENABLED,
        "description": DESCRIPTION,
        "session_persistence": Property(
            "map",
            "How a client gets the same member again; none: it need not.",
            update_allowed=True,
            schema=PERSISTENCE,
        ),
        "name": NAME,
        "lb_algorithm": Property(
            "string",
            "How members are chosen.",
            required=True,
            update_allowed=True,
            constraints=(ALGORITHMS,),
        ),
        "loadbalancer": Property(
            "string",
            "Name or id of the load balancer; either this or listener.",
            constraints=(BALANCER,),
        ),
        "listener": Property(
            "string",
            "Name or id of the listener whose default pool it is; either this or loadbalancer.",
            constraints=(LISTENER,),
        ),
        "protocol": Property("string", "Protocol of the members.", required=True, constraints=(PROTOCOLS,)),
        "tls_enabled": Property(
            "boolean", "The connections to members are encrypted.", default=False, update_allowed=True
        ),
    }
    attributes_schema = {
        "healthmonitor_id": Attribute("Id of its health monitor.", "string", volatile=True),
        "listeners": Attribute("Ids of the listeners whose default pool it is.", "string", volatile=True),
        "members": Attribute("Ids of its members.", "list", volatile=True),
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
            raise PropertyError("cookie_name is not for the type SOURCE_IP", ("session_persistence",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        """Return the fields of a new pool."""
        return _with_persistence(super().create_body(target, context))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change."""
        return _with_persistence(super().update_body(target, changed, context))

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: StepContext) -> JsonMap:
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

    support_status = SINCE
    description = "A member of a pool: an address and a port that get connections."
    path = "/lbaas/pools/{}/members"
    item = "member"
    whole = "pool"
    whole_kind = "octavia.pool"
    references = {"subnet": NamedRemote("neutron.subnet")}
    apart = ("pool",)
    properties_schema = {
        "pool": Property("string", "Name or id of the pool.", required=True, constraints=(POOL,)),
        "address": Property("string", "The address.", required=True, constraints=(ADDRESS,)),
        "protocol_port": Property("integer", "The port.", required=True, constraints=(PORT,)),
        "monitor_address": Property(
            "string", "Address that the health monitor asks; none: the member's.", constraints=(ADDRESS,)
        ),
        "monitor_port": Property(
            "integer", "Port that the health monitor asks; none: the member's.", constraints=(PORT,)
        ),
        "weight": Property(
            "integer",
            "Its share of the connections in relation to the other members; 0: none.",
            default=1,
            update_allowed=True,
            constraints=(Range(minimum=0, maximum=256),),
        ),
        "admin_state_up": ENABLED,
        "subnet": Property(
            "string",
            "Name or id of the subnet in which it is reached; none: that of the load balancer.",
            constraints=(SUBNET,),
        ),
        "tags": Property("list", "Its tags.", update_allowed=True),
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

    def reported_properties(self, target: ResourceView, remote: JsonMap, context: StepContext) -> JsonMap:
        """Return the fields; the mark is none of the tags."""
        values = super().reported_properties(target, remote, context)
        if "tags" not in values:
            return values
        return {**values, "tags": [tag for tag in values["tags"] if not tag.startswith(PREFIX)]}


class HealthMonitor(BalancerPart):
    """Questions that find out which members of a pool answer."""

    support_status = SINCE
    description = "What finds out which members of a pool answer."
    path = "/lbaas/healthmonitors"
    item = "healthmonitor"
    references = {"pool": NamedRemote("octavia.pool")}
    renamed = {"tenant_id": "project_id"}
    properties_schema = {
        "admin_state_up": ENABLED,
        "delay": Property(
            "integer",
            "Seconds between two questions to a member.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "expected_codes": Property(
            "string", "Good status codes: one, several with commas, or a range.", update_allowed=True
        ),
        "http_method": Property(
            "string",
            "Method of the requests to members.",
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
            "Answers in a row after which a member's state changes.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=1, maximum=10),),
        ),
        "pool": Property("string", "Name or id of the pool.", required=True, constraints=(POOL,)),
        "timeout": Property(
            "integer",
            "Seconds for which an answer is waited for.",
            required=True,
            update_allowed=True,
            constraints=(Range(minimum=0),),
        ),
        "type": Property(
            "string",
            "How it asks.",
            required=True,
            constraints=(AllowedValues(values=("PING", "TCP", "HTTP", "HTTPS", "UDP-CONNECT")),),
        ),
        "url_path": Property("string", "Path of the requests to members.", update_allowed=True),
        "tenant_id": OWNER,
    }
    attributes_schema = {"pools": Attribute("Id of the pool, in a list.", "list"), "show": SHOW}
