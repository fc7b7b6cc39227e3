"""OS::Neutron::RBACPolicy: a thing of one project that another may use."""

from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues
from ...contract import Property, PropertyError, ResourceView, StepContext, SupportStatus
from ..compared import ComparedType
from ..names import resolve
from .base import NeutronType
from .schema import SHOWN, TENANT

SHARED = "access_as_shared"
EXTERNAL = "access_as_external"
ACTIONS: Mapping[str, Sequence[str]] = {
    "network": (SHARED, EXTERNAL),
    "qos_policy": (SHARED,),
    "security_group": (SHARED,),
    "address_scope": (SHARED,),
    "subnetpool": (SHARED,),
}
"""By the type of the object the actions that can be allowed."""


class RBACPolicy(ComparedType, NeutronType):
    """An RBAC policy: access of another project to a network, QoS policy or the like."""

    type_name = "OS::Neutron::RBACPolicy"
    support_status = SupportStatus(version="6.0.0")
    description = "An RBAC policy: access of another project to a network, QoS policy or the like."
    path = "/rbac-policies"
    item = "rbac_policy"
    quota = {"rbac_policy": 1}
    items = "rbac_policies"
    identity = "the object, the action and the target, for which the service keeps one policy"
    compared = ("object_id", "object_type", "action", "target_tenant")
    filters = ("object_id",)
    properties_schema = {
        "object_type": Property(
            "string",
            "Type of the shared object.",
            required=True,
            constraints=(AllowedValues(values=tuple(ACTIONS)),),
        ),
        "target_tenant": Property(
            "string",
            "Id of the project that gets access; ``*``: all projects.",
            required=True,
            update_allowed=True,
        ),
        "action": Property(
            "string",
            "Permitted action.",
            required=True,
            constraints=(AllowedValues(values=(SHARED, EXTERNAL)),),
        ),
        "object_id": Property("string", "Name or id of the shared object.", required=True),
        "tenant_id": TENANT,
    }
    attributes_schema = {"show": SHOWN["show"]}

    def validate(self, properties: JsonMap) -> None:
        """Check that the action can be allowed for such an object."""
        kind = str(properties.get("object_type"))
        action = properties.get("action")
        if kind in ACTIONS and action is not None and action not in ACTIONS[kind]:
            text = (
                f'Invalid action "{action}" for object type {kind}. Valid actions: {", ".join(ACTIONS[kind])}'
            )
            raise PropertyError(text, ("action",))

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        properties = target.properties
        kind = f"neutron.{properties['object_type']}"
        return {
            **super().create_body(target, context),
            "object_id": resolve(context, kind, properties["object_id"]),
        }
