"""AWS::IAM::User and AWS::IAM::AccessKey: keys with which guests read the metadata of a stack's resources.

No user of Keystone's is made.  The secret of a key belongs to the row of its resource, as that of a server's
guest does, and the API verifies it itself.  The policies of the user say which resources may be read.
"""

from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import (
    Attribute,
    Done,
    PermanentError,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)

USER = "AWS::IAM::User"
ACCESS_KEY = "AWS::IAM::AccessKey"
POLICY = "OS::Heat::AccessPolicy"
SECRET = "secret"
OLD = SupportStatus(version="2014.1")


class IamUser(ResourceType):
    """An owner of access keys, who exists in Stoker only."""

    type_name = USER
    description = (
        "A user of the CloudFormation API, to whom access keys belong.\n\n"
        "The user can read the metadata of resources of the stack, and can do nothing else."
    )
    stored_here = True
    has_rules_in_stack = True
    support_status = OLD
    properties_schema = {
        "Path": Property("string", "Path of the user; without effect, as in Heat."),
        "Groups": Property("list", "Groups of the user; without effect, as in Heat."),
        "LoginProfile": Property(
            "map",
            "Login profile; without effect, because the user cannot log in.",
            schema={"Password": Property("string", "Password.", sensitive=True)},
        ),
        "Policies": Property(
            "list",
            "Names of access policies of the stack: the user can read resources that all of them name; if "
            "omitted, all resources.",
        ),
    }

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that each policy is one of the stack's.

        :raises PropertyError: the stack has no such policy.
        """
        if is_node(definition.properties):
            return
        policies = definition.properties.get("Policies")
        for index, name in enumerate(policies if isinstance(policies, list) else ()):
            if isinstance(name, str) and (name not in others or others[name].type != POLICY):
                text = f"The Referenced Attribute ({definition.name} Policies) is incorrect."
                raise PropertyError(text, ("Policies", index))

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Choose the name by which access keys refer to the user."""
        return Done(physical_id=target.physical_id or target.physical_name)

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Return Done: an adopted user keeps the id of its stack in Heat."""
        check_named(target)
        return self.handle_create(target, context)


class AccessKey(ResourceType):
    """A key that signs requests to the CloudFormation API, as long as the row of its resource exists."""

    type_name = ACCESS_KEY
    stored_here = True
    support_status = OLD
    description = (
        "An access key of a user: agents in servers sign requests to the CloudFormation API with it."
    )
    properties_schema = {
        "UserName": Property("string", "Reference of the user.", required=True),
    }
    attributes_schema = {
        "UserName": Attribute("Reference of the user.", "string", from_property="UserName"),
        "SecretAccessKey": Attribute("Secret access key.", "string", sensitive=True),
    }

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the key and its secret.

        :raises PermanentError: the stack has no such user.
        """
        name = target.properties["UserName"]
        user = context.referenced(name)
        if user is None or user.type != USER:
            raise PermanentError(f"could not find user {name}", kind="NotFound")
        access = context.guest_access()
        return Done(physical_id=access.access_key, data={SECRET: access.secret_key})

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Make a key of its own: one of another installation is invalid here."""
        check_named(target)
        return self.handle_create(target, context)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the user and the secret."""
        secret = target.data.get(SECRET)
        return {"UserName": target.properties["UserName"], "SecretAccessKey": secret}


def may_read(name: str, user: ResourceView, policies: Mapping[str, ResourceView]) -> bool:
    """Return whether a user may read the metadata of a resource of the same stack.

    :param name: name of that resource.
    :param policies: access policies of the stack, by name.
    """
    named: Sequence[Json] = user.properties.get("Policies") or ()
    return all(
        policy in policies and name in policies[policy].properties["AllowedResources"]
        for policy in named
        if isinstance(policy, str)
    )
