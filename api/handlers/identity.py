"""Answers agents in servers as Keystone does, for the accounts that Stoker makes itself.

Agents of the transports POLL_SERVER_HEAT and HEAT_SIGNAL first ask Keystone for a token, and for the endpoint
of Heat's API.  An account is for one resource, and so is its token, which is its password: a signature that
the endpoint verifies.  No user of the real Keystone has to be made for them.
"""

from datetime import UTC, datetime, timedelta

from ...engine.signal_urls import IDENTITY
from ...shapes import Json
from ..bodies import parse
from ..errors import Fault
from ..operations import Request
from ..reply import Reply
from ..schemas import validated

_EXPIRES = timedelta(days=1)
"""After which agents ask for a new token; the old one stays valid as long as its resource."""
_DOMAIN = {"id": "stoker", "name": "stoker"}
_TEXT = {"type": "string", "maxLength": 255}
_PASSWORD_OF = {
    "type": "object",
    "required": ["user"],
    "properties": {
        "user": {
            "type": "object",
            "required": ["id", "password"],
            "properties": {"id": _TEXT, "password": _TEXT},
        }
    },
}
_REQUEST: Json = {
    "type": "object",
    "required": ["auth"],
    "properties": {
        "auth": {
            "type": "object",
            "required": ["identity"],
            "properties": {
                "identity": {
                    "type": "object",
                    "required": ["password"],
                    "properties": {"password": _PASSWORD_OF},
                }
            },
        }
    },
}
"""The part of Keystone's request for a token that is read: an id and a password."""


def version(request: Request) -> Reply:
    """Answer GET /v1/identity/v3: the version of Keystone's API."""
    links = [{"rel": "self", "href": f"{request.base_url}{IDENTITY}/"}]
    kind = {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
    return Reply({"version": {"id": "v3.14", "status": "stable", "links": links, "media-types": [kind]}})


def token(request: Request) -> Reply:
    """Answer POST /v1/identity/v3/auth/tokens.

    :raises Fault: 401, there is no such account, or its password is another one; 429, see strangers.py.
    """
    assert request.signed is not None
    body = validated(parse(request.signed.body), _REQUEST)
    user = body["auth"]["identity"]["password"]["user"]
    request.attempt.check(user["id"])
    account = request.services.guests.account(user["id"], user["password"])
    if account is None:
        raise Fault(401, "Unauthorized", "The request you have made requires authentication.")
    request.attempt.identified()
    resource, endpoint = account
    now = datetime.fromtimestamp(request.services.clock(), UTC)
    view = {
        "methods": ["password"],
        "user": {"id": user["id"], "name": resource.name, "domain": _DOMAIN},
        "project": {"id": resource.project_id, "name": resource.project_id, "domain": _DOMAIN},
        "roles": [{"id": "heat_stack_user", "name": "heat_stack_user"}],
        "issued_at": _instant(now),
        "expires_at": _instant(now + _EXPIRES),
        "catalog": [
            {"id": "heat", "type": "orchestration", "name": "heat", "endpoints": [_endpoint(endpoint)]}
        ],
    }
    return Reply({"token": view}, 201, {"X-Subject-Token": user["password"], "Vary": "X-Auth-Token"})


def _endpoint(url: str) -> Json:
    region = {"region": "RegionOne", "region_id": "RegionOne"}
    return {"id": "heat-public", "interface": "public", "url": url, **region}


def _instant(at: datetime) -> str:
    """Return an instant as Keystone writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
