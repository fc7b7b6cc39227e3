"""HTTP to addresses that users name: to allowed hosts, with limits, and with given certificates."""

import contextlib
import ipaddress
import socket
import ssl
import threading
import typing
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import requests
from keystoneauth1 import exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

Json = typing.Any
ANY_HOST = "*"
MOST_BYTES = 16 * 1024 * 1024
"""Size of an answer above which it is not read: a stack's outputs are far smaller."""
LONGEST = 120.0
"""Seconds for one answer, however slowly it arrives."""
_PIECE = 65536
_PORTS = {"http": 80, "https": 443}


class NotAllowed(exceptions.ClientException):
    """The operator does not allow requests to this host or address; the text names it."""


class TooMuch(exceptions.ClientException):
    """The answer is too large, or arrives too slowly."""


@dataclass(frozen=True)
class AllowedHosts:
    """The hosts that may be asked.

    :ivar names: ``NAME`` for all ports or ``NAME:PORT``; `ANY_HOST` for all others whose addresses are not
        those of machines themselves.
    """

    names: Sequence[str] = (ANY_HOST,)

    def check_host(self, host: str, port: int) -> None:
        """Check the host of an address.

        :raises NotAllowed: it may not be asked.
        """
        if not self._is_named(host, port) and ANY_HOST not in self.names:
            allowed = ", ".join(self.names) or "none"
            raise NotAllowed(f"the host {host:.255}:{port} is not allowed; allowed are: {allowed}")

    def check_address(self, host: str, port: int, address: str) -> None:
        """Check the address to which a connection was made: whatever the DNS said, it is this one.

        :raises NotAllowed: it is one that no cloud has, such as that of a metadata service.
        """
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        inside = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
        if inside and not self._is_named(host, port):
            raise NotAllowed(f"the host {host:.255} has the address {address}, which is not allowed")

    def _is_named(self, host: str, port: int) -> bool:
        named = {name.lower() for name in self.names}
        return host.lower() in named or f"{host.lower()}:{port}" in named


def tls_context(ca_cert: str) -> ssl.SSLContext:
    """Return what verifies certificates by these authorities only.

    :raises ValueError: it is no certificate in PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=ca_cert)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError("it is no certificate in PEM") from error
    return context


def http_session(
    hosts: AllowedHosts | None,
    ca_cert: str | None,
    *,
    most_bytes: int = MOST_BYTES,
    seconds: float = LONGEST,
) -> requests.Session:
    """Return a session of requests.

    :param hosts: None: the addresses come from the operator's own service catalog, and nothing is limited.
    :param ca_cert: certificates of authorities, in PEM; None: as `requests` finds them.
    :raises ValueError: it is no certificate.
    """
    session = requests.Session()
    tls = None if ca_cert is None else tls_context(ca_cert)
    transport = _Transport(hosts, tls, most_bytes, seconds)
    session.mount("http://", transport)
    session.mount("https://", transport)
    return session


class _Transport(HTTPAdapter):
    """Sends requests to allowed hosts, and reads answers that have a size."""

    def __init__(
        self, hosts: AllowedHosts | None, tls: ssl.SSLContext | None, most_bytes: int, seconds: float
    ) -> None:
        self._hosts, self._tls = hosts, tls
        self._most_bytes, self._seconds = most_bytes, seconds
        self._opened = _Opened()
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **settings: Json) -> None:
        """Make the pools; the certificates are never written to a file."""
        if self._tls is not None:
            settings["ssl_context"] = self._tls
        super().init_poolmanager(connections, maxsize, block, **settings)
        if self._hosts is not None:
            self.poolmanager.pool_classes_by_scheme = _pools(self._hosts.check_address, self._opened)

    def cert_verify(self, conn: Json, url: str, verify: Json, cert: Json) -> None:
        """Let the given authorities be the only ones."""
        super().cert_verify(conn, url, verify, cert)
        if self._tls is not None and verify:
            conn.ca_certs = conn.ca_cert_dir = None

    def send(self, request: Json, *args: Json, **settings: Json) -> requests.Response:
        """Send a request, and read its answer within the limits."""
        if self._hosts is None:
            return super().send(request, *args, **settings)
        parts = urllib.parse.urlsplit(request.url)
        self._hosts.check_host(parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))
        request.headers["Connection"] = "close"  # So that each request opens one, in its own thread.
        with _Deadline(self._seconds) as self._opened.deadline:
            try:
                answer = super().send(request, *args, **{**settings, "stream": True})
                answer._content = self._body(answer)
            except (requests.RequestException, OSError) as error:
                if not self._opened.deadline.is_over:
                    raise
                raise TooMuch(f"the answer did not arrive within {self._seconds:g} s") from error
        return answer

    def _body(self, answer: requests.Response) -> bytes:
        pieces, size = [], 0
        for piece in answer.iter_content(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self._most_bytes:
                answer.close()
                raise TooMuch(f"the answer is larger than {self._most_bytes} bytes")
        return b"".join(pieces)


class _Opened(threading.local):
    """The connection of the request that a thread sends."""

    deadline: "_Deadline"


class _Deadline:
    """Shuts a connection after some seconds: a timeout counts from byte to byte only.

    :ivar is_over: it has.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    def watch(self, opened: socket.socket) -> None:
        """Take a copy of the connection's socket; one that comes late is shut at once."""
        self._socket = opened
        if self.is_over:
            self._shut()

    def _shut(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _pools(check: Callable[[str, int, str], None], opened: _Opened) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's pools with connections that are checked before anything is sent."""

    def checked(made: socket.socket, host: str, port: int) -> socket.socket:
        try:
            check(host, port, made.getpeername()[0])
        except NotAllowed:
            made.close()
            raise
        opened.deadline.watch(made.dup())  # TLS takes the socket itself away, before its first byte.
        return made

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return checked(super()._new_conn(), self.host, self.port)

    class Secured(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return checked(super()._new_conn(), self.host, self.port)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecuredPool(HTTPSConnectionPool):
        ConnectionCls = Secured

    return {"http": PlainPool, "https": SecuredPool}
