"""Refuses browsers' requests for foreign pages, where no token protects the API.

Without Keystone a request needs nothing that a foreign page does not have.  A browser sends such a page's
requests to any address, and lets it read the answers once the page's own name leads to that address (DNS
rebinding).  So the host of a request must be one of the API's own, and its page, too.
"""

import ipaddress
import urllib.parse
from collections.abc import Collection, Sequence

import falcon

from .errors import Fault
from .pages import PATH as CONSOLE

_LOCAL = "localhost"
_PORTS = {"http": "80", "https": "443"}
_OPEN = ("/healthcheck",)
"""Paths whose answers are for everybody, and say no more than that the API lives."""


class OriginGuard:
    """A middleware of Falcon's that refuses requests for unknown hosts, and those of foreign pages.

    An address in place of a name is always known: only names can be made to lead elsewhere.

    :param hosts: the names of the API, without ports.
    :param addresses: root URLs under which users reach the API; pages from there are its own.
    """

    def __init__(self, hosts: Collection[str], addresses: Sequence[str] = ()) -> None:
        urls = [urllib.parse.urlsplit(address) for address in addresses]
        self._hosts = {_LOCAL, *map(str.lower, hosts), *(url.hostname for url in urls if url.hostname)}
        self._origins = {_origin(address) for address in addresses}

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Check the host of a request and the page that has sent it.

        :raises Fault: 403, with the right address or option.
        """
        if req.path in _OPEN:
            return
        host = req.get_header("Host")
        if host is not None and not self._is_known(host):
            raise Fault(
                403,
                "Forbidden",
                f"The API is not known as {host:.255}: use its address, or add the name to "
                "[api] allowed_hosts",
            )
        if self._is_foreign(req, host):
            raise Fault(
                403,
                "Forbidden",
                "Pages of other sites may not use this API: it does not authenticate its users",
            )

    def _is_known(self, host: str) -> bool:
        try:
            name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or _is_address(name)

    def _is_foreign(self, req: falcon.Request, host: str | None) -> bool:
        origin = req.get_header("Origin")
        if origin is not None:
            # A proxy may have taken TLS away: the scheme of the request is not the page's.
            origins = {_origin(f"{scheme}://{host}") for scheme in _PORTS} if host else set()
            return _origin(origin) not in self._origins | origins
        if req.get_header("Sec-Fetch-Site") not in ("cross-site", "same-site"):
            return False
        is_link = req.method == "GET" and req.get_header("Sec-Fetch-Mode") == "navigate"
        return not (is_link and req.path.startswith(CONSOLE))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _origin(url: str) -> tuple[str, str, str]:
    """Return scheme, host and port of an address; for a malformed address a value that no other has."""
    try:
        parts = urllib.parse.urlsplit(url.lower())
        port = str(parts.port) if parts.port else _PORTS.get(parts.scheme, "")
    except ValueError:
        return url, "", ""
    return parts.scheme, parts.hostname or "", port
