"""OS::Octavia::L7Policy and OS::Octavia::L7Rule."""

from collections.abc import Collection, Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext
from ..bodies import NamedRemote
from ..parts import PartType
from .base import BalancerPart
from .schema import ENABLED, LISTENER, NAME, POOL, SHOW, SINCE

REDIRECTIONS: Mapping[str, str] = {"REDIRECT_TO_POOL": "redirect_pool", "REDIRECT_TO_URL": "redirect_url"}
"""By the action of a policy the property that says where it sends requests."""


class L7Policy(BalancerPart):
    """The treatment of those requests to a listener that fit all rules of the policy."""

    type_name = "OS::Octavia::L7Policy"
    support_status = SINCE
    description = "An L7 policy: the action of a listener for requests that match all rules of the policy."
    path = "/lbaas/l7policies"
    item = "l7policy"
    quota = {"l7policy": 1}
    items = "l7policies"
    references = {
        "listener": NamedRemote("octavia.listener"),
        "redirect_pool": NamedRemote("octavia.pool"),
    }
    properties_schema = {
        "name": NAME,
        "description": Property("string", "Description of the policy.", update_allowed=True),
        "admin_state_up": ENABLED,
        "action": Property(
            "string",
            "Action for requests that match the policy.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(values=("REJECT", "REDIRECT_TO_POOL", "REDIRECT_TO_URL")),),
        ),
        "redirect_pool": Property(
            "string",
            "Name or id of the pool, for REDIRECT_TO_POOL.",
            update_allowed=True,
            constraints=(POOL,),
        ),
        "redirect_url": Property("string", "URL, for REDIRECT_TO_URL.", update_allowed=True),
        "position": Property(
            "number",
            "Position in the listener's list of policies, from 1; if omitted, the last.",
            update_allowed=True,
            constraints=(Range(minimum=1),),
        ),
        "listener": Property("string", "Name or id of the listener.", required=True, constraints=(LISTENER,)),
    }
    attributes_schema = {"rules": Attribute("Ids of the rules.", "list", volatile=True), "show": SHOW}

    def validate(self, properties: JsonMap) -> None:
        """Check that it says where requests go, as far as the action sends them anywhere."""
        action = properties.get("action")
        if action is None:
            return
        for redirection, name in REDIRECTIONS.items():
            if action != redirection and properties.get(name):
                raise PropertyError(f"{name} is for the action {redirection} only", (name,))
            if action == redirection and properties.get(name, "unknown") is None:
                raise PropertyError(f"{name} is needed for the action {redirection}", (name,))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return _with_position(super().create_body(target, context))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; an action goes with the place that it needs, and with no other."""
        names = set(changed)
        if names & {"action", *REDIRECTIONS.values()}:
            place = REDIRECTIONS.get(target.properties["action"])
            names = {*names - set(REDIRECTIONS.values()), "action", *([place] if place else [])}
        return _with_position(super().update_body(target, names, context))


def _with_position(body: dict[str, Json]) -> dict[str, Json]:
    """Return the fields with an integer as the position, which the property need not be."""
    return {**body, "position": int(body["position"])} if body.get("position") else body


class L7Rule(PartType, BalancerPart):
    """A condition of a policy."""

    type_name = "OS::Octavia::L7Rule"
    support_status = SINCE
    description = "An L7 rule: a condition on the requests of an L7 policy."
    path = "/lbaas/l7policies/{}/rules"
    item = "rule"
    quota = {"l7rule": 1}
    whole = "l7policy"
    whole_kind = "octavia.l7policy"
    apart = ("l7policy",)
    properties_schema = {
        "admin_state_up": ENABLED,
        "l7policy": Property(
            "string",
            "Name or id of the L7 policy.",
            required=True,
            constraints=(Custom(check_name="octavia.l7policy"),),
        ),
        "type": Property(
            "string",
            "Type of the rule: the part of the request that is compared.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(values=("HOST_NAME", "PATH", "FILE_TYPE", "HEADER", "COOKIE")),),
        ),
        "compare_type": Property(
            "string",
            "Comparison type.",
            required=True,
            update_allowed=True,
            constraints=(
                AllowedValues(values=("REGEX", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "EQUAL_TO")),
            ),
        ),
        "invert": Property(
            "boolean",
            "Inversion: true matches requests that do not match the comparison.",
            default=False,
            update_allowed=True,
        ),
        "key": Property("string", "Name of the header or the cookie to compare.", update_allowed=True),
        "value": Property("string", "Value to compare with.", required=True, update_allowed=True),
    }
    attributes_schema = {"show": SHOW}

    def validate(self, properties: JsonMap) -> None:
        """Check that a header or a cookie is named."""
        if properties.get("type") in ("HEADER", "COOKIE") and properties.get("key", "unknown") is None:
            raise PropertyError("key is needed for the types HEADER and COOKIE", ("key",))
