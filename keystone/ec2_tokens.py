"""Keystone's EC2 credentials: a request that a user has signed with them becomes a token."""

import json
import threading
import time
import typing
from collections.abc import Callable, Mapping

from keystoneauth1 import exceptions
from keystoneauth1.session import Session

from ..shapes import Json, JsonMap
from .delegated_auth import KeystoneUnavailable, unanswered
from .trusts import IDENTITY

RENEWED = 60.0
"""Seconds after which a refusal makes the service ask for a new token of its own, which may be revoked.  More
often a refusal means a wrong signature; who sends many of those must not make Keystone check passwords."""
CONFIRMED = "Confirmed"


class SignatureRefused(Exception):
    """Keystone does not know the access key, or the signature is wrong."""


class Ec2Tokens:
    """Exchanges signed requests for tokens of their users.  Thread-safe.

    :param make_session: function that makes a session of the service's own account, which Keystone requires
        for this exchange since 2025.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self, make_session: Callable[[], Session], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make_session
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._renewed = 0.0

    def headers(self, credentials: JsonMap) -> Mapping[str, str]:
        """Return the headers that keystonemiddleware would set for the user's token.

        :param credentials: credentials in the form of the body of ``POST /v3/ec2tokens``.
        :raises SignatureRefused: Keystone does not accept the signature.
        :raises KeystoneUnavailable: Keystone does not answer, or refuses the service's own account.
        """
        try:
            session = self._own_session()
            answer = self._ask(session, credentials)
            if answer.status_code == 401 and self._may_renew():
                session.invalidate()
                answer = self._ask(session, credentials)
        except exceptions.ClientException as error:
            raise unanswered(error) from error
        if answer.status_code in (400, 401, 404):
            raise SignatureRefused
        if answer.status_code != 200:
            raise KeystoneUnavailable(f"it answers {answer.status_code} to a signed request")
        return token_headers(answer.headers.get("X-Subject-Token", ""), answer.json()["token"])

    def _own_session(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = self._make()
                self._renewed = self._monotonic()
            return self._session

    def _ask(self, session: Session, credentials: JsonMap) -> typing.Any:
        return session.post(
            "/ec2tokens",
            json={"ec2Credentials": dict(credentials)},
            endpoint_filter=IDENTITY,
            raise_exc=False,
            allow_reauth=False,
        )

    def _may_renew(self) -> bool:
        with self._lock:
            now = self._monotonic()
            if now - self._renewed < RENEWED:
                return False
            self._renewed = now
            return True


def token_headers(token: str, body: JsonMap) -> dict[str, str]:
    """Return the headers that keystonemiddleware adds to a request with this token.

    :param body: ``token`` of Keystone's answer, version 3.
    """
    user = body["user"]
    project = body.get("project") or {}
    headers = {
        "X-IDENTITY-STATUS": CONFIRMED,
        "X-AUTH-TOKEN": token,
        "X-USER-ID": user["id"],
        "X-USER-NAME": user["name"],
        "X-USER-DOMAIN-ID": (user.get("domain") or {}).get("id"),
        "X-PROJECT-ID": project.get("id"),
        "X-PROJECT-NAME": project.get("name"),
        "X-PROJECT-DOMAIN-ID": (project.get("domain") or {}).get("id"),
        "X-ROLES": ",".join(role["name"] for role in body.get("roles") or ()),
        "X-SERVICE-CATALOG": json.dumps(_catalog(body["catalog"])) if body.get("catalog") else None,
        "X-IS-ADMIN-PROJECT": "false" if body.get("is_admin_project") is False else None,
    }
    return {name: value for name, value in headers.items() if value}


def _catalog(services: list[Json]) -> list[Json]:
    """Return the service catalog in the form of Keystone's version 2, as the middleware writes it."""
    entries = []
    for service in services:
        regions: dict[str, dict[str, str]] = {}
        for endpoint in service.get("endpoints") or ():
            region = endpoint.get("region") or endpoint.get("region_id") or ""
            entry = regions.setdefault(region, {"region": region})
            entry[f"{endpoint['interface']}URL"] = endpoint["url"]
        entries.append(
            {
                "type": service["type"],
                "name": service.get("name", ""),
                "endpoints": list(regions.values()),
                "endpoints_links": [],
            }
        )
    return entries
