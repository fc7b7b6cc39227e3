"""The resources of a stack whose metadata the keys of AWS::IAM::AccessKey may read."""

from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.queries import guests
from ..db.queries.guests import GuestServer
from ..db.rows import Resource
from ..resources.contract.views import ResourceView
from ..resources.heat.iam import POLICY, USER, may_read
from .context import EngineContext


def readable(context: EngineContext, conn: Connection, key: GuestServer, name: str) -> GuestServer | None:
    """Return the resource of that name in the stack of an access key; None: its user may not read it.

    :param key: the resource that the access key is.
    """
    stack = stacks.find_undeleted(conn, key.stack_id)
    row = resources.by_ids(conn, [key.id]).get(key.id)
    if stack is None or row is None:
        return None
    user_name = context.stored_resource(stack, row).view().properties["UserName"]
    owner = resources.with_physical_id(conn, stack.id, user_name)
    named = _by_name(conn, stack.id, name)
    if owner is None or owner.plugin != USER or named is None:
        return None
    user = context.stored_resource(stack, owner).view()
    policies: dict[str, ResourceView] = {}
    for policy_name in user.properties.get("Policies") or ():
        policy = _by_name(conn, stack.id, policy_name) if isinstance(policy_name, str) else None
        if policy is not None and policy.plugin == POLICY:
            policies[policy.name] = context.stored_resource(stack, policy).view()
    return guests.find(conn, stack.id, named.id) if may_read(name, user, policies) else None


def _by_name(conn: Connection, stack_id: StackId, name: str) -> Resource | None:
    try:
        return resources.by_name(conn, stack_id, name)
    except NotFound:
        return None
