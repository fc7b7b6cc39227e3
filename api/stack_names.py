"""Finds stacks by a name, an id or an ARN."""

import re

from sqlalchemy.engine import Connection

from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.queries import stack_list
from ..db.rows import ListedStack
from .errors import not_found
from .request import HttpRequest

ARN = re.compile(r"arn:openstack:heat::([^:/]+):stacks/([^/]+)/([^/]+)(/.+)?", re.DOTALL)
"""The name of a stack in the form of Amazon's: project, name, id, and the path below it."""


def named(conn: Connection, request: HttpRequest, name: str) -> ListedStack:
    """Return the stack of the caller's project that has a name, or else an id that the caller may see.

    :raises Fault: 404.
    """
    try:
        return stack_list.find_by_name(conn, request.caller.project_id, name)
    except NotFound:
        return _by_id(conn, request, name)


def _by_id(conn: Connection, request: HttpRequest, stack_id: str) -> ListedStack:
    try:
        stack = stack_list.get_listed(conn, StackId(stack_id))
    except NotFound as error:
        raise not_found("Stack", stack_id) from error
    if not request.caller.may_see(stack.project_id):
        raise not_found("Stack", stack_id)
    return stack
