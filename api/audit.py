"""Audit events of requests in the form of CADF (DMTF's DSP0262), as other services of OpenStack send them.

keystonemiddleware's filter is not used: its events have the query of the path, with the signatures of
addresses, and it sends them while the client waits.
"""

from collections.abc import Callable, Collection, Mapping

import falcon
from pycadf import cadftaxonomy, cadftype
from pycadf.event import Event
from pycadf.host import Host
from pycadf.reason import Reason
from pycadf.resource import Resource

from ..shapes import Json
from .context import RequestContext
from .request import CHANGING_METHODS

SERVICE = "service/orchestration"
_ACTIONS = {
    "POST": cadftaxonomy.ACTION_CREATE,
    "PUT": cadftaxonomy.ACTION_UPDATE,
    "PATCH": cadftaxonomy.ACTION_UPDATE,
    "DELETE": cadftaxonomy.ACTION_DELETE,
}
_BELOW: Mapping[str, str] = {
    "actions": cadftaxonomy.ACTION_UPDATE,
    "preview": cadftaxonomy.ACTION_READ,
    "restore": cadftaxonomy.ACTION_UPDATE,
    "signal": cadftaxonomy.ACTION_UPDATE,
    "validate": cadftaxonomy.ACTION_READ,
}
"""Actions of a POST, by the end of its path."""


class AuditLog:
    """A middleware of Falcon's that makes an event of each answered request.  Thread-safe.

    :param send: takes an event; called in the thread of the request, and must not block.
    :param reads: whether requests that change nothing make events, too.
    :param quiet: routes that make none.
    :param identifier: the header of an answer with the request's id.
    """

    def __init__(
        self, send: Callable[[Json], None], *, reads: bool, quiet: Collection[str], identifier: str
    ) -> None:
        self._send = send
        self._reads = reads
        self._quiet = quiet
        self._identifier = identifier

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Send the event of a request that is answered."""
        route = req.uri_template or ""
        if route not in self._quiet and (self._reads or req.method in CHANGING_METHODS):
            body = _event(req, route, resp.status_code)
            body["initiator"]["request_id"] = resp.get_header(self._identifier) or cadftaxonomy.UNKNOWN
            self._send(body)


def _event(req: falcon.Request, route: str, status: int) -> dict[str, Json]:
    caller: RequestContext | None = getattr(req.context, "caller", None)
    event = Event(
        eventType=cadftype.EVENTTYPE_ACTIVITY,
        action=action_of(req.method, route),
        outcome=cadftaxonomy.OUTCOME_SUCCESS if status < 400 else cadftaxonomy.OUTCOME_FAILURE,
        initiator=_initiator(req, caller),
        target=Resource(typeURI=type_uri(route), name="orchestration"),
        observer=Resource(id="target"),
        reason=Reason(reasonType="HTTP", reasonCode=str(status)),
    )
    # Without the query, which may have a signature.
    event.requestPath = req.path
    body: dict[str, Json] = event.as_dict()
    # Not by the constructor, which warns of ids that are no UUIDs, such as those of users in LDAP.
    project_id = (None if caller is None else caller.project_id) or cadftaxonomy.UNKNOWN
    body["target"]["id"] = project_id
    body["initiator"] |= {"id": _user_id(caller), "project_id": project_id}
    return body


def _initiator(req: falcon.Request, caller: RequestContext | None) -> Resource:
    return Resource(
        typeURI=cadftaxonomy.ACCOUNT_USER,
        name=(None if caller is None else caller.user) or cadftaxonomy.UNKNOWN,
        host=Host(address=req.remote_addr, agent=req.user_agent or cadftaxonomy.UNKNOWN),
    )


def _user_id(caller: RequestContext | None) -> str:
    """Return Keystone's id of the caller, or the name where Keystone has not named the caller."""
    if caller is None:
        return str(cadftaxonomy.UNKNOWN)
    return str(caller.credentials.get("user_id") or caller.user or cadftaxonomy.UNKNOWN)


def action_of(method: str, route: str) -> str:
    """Return CADF's action of a request.

    >>> action_of("POST", "/v1/{tenant_id}/stacks"), action_of("GET", "/v1/{tenant_id}/stacks")
    ('create', 'read/list')
    """
    end = route.rpartition("/")[2]
    if method in CHANGING_METHODS:
        return _BELOW.get(end, _ACTIONS[method]) if method == "POST" else _ACTIONS[method]
    is_list = end.endswith("s") and "{" not in end
    return str(cadftaxonomy.ACTION_LIST if is_list else cadftaxonomy.ACTION_READ)


def type_uri(route: str) -> str:
    """Return CADF's type of what a route leads to.

    >>> type_uri("/v1/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}")
    'service/orchestration/stacks/snapshots'
    """
    words = [part for part in route.split("/") if part and "{" not in part and part != "v1"]
    return "/".join([SERVICE, *words])
