"""HTTP to addresses that users name: to allowed hosts, with limits, and with given certificates."""

import contextlib
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import requests
from keystoneauth1 import exceptions, session
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ..shapes import Json
from .network_addresses import Address, is_metadata, is_public, parse_address

CheckAddress = Callable[[str, int, str], None]
"""Raises NotAllowed for a host, a port and an address that may not be reached."""
ANY_HOST = "*"
MOST_BYTES = 16 * 1024 * 1024
"""Size of an answer above which it is not read: a stack's outputs are far smaller."""
LONGEST = 120.0
"""Seconds for one call with all of its redirects, however slowly the answers arrive."""
REDIRECTS = 3
"""Most redirects of one call."""
_PIECE = 65536
_PORTS = {"http": 80, "https": 443}


class NotAllowed(exceptions.ClientException):
    """The operator does not allow requests to this host or address; the text names it."""


class TooMuch(exceptions.ClientException):
    """The answer is too large, or arrives too slowly."""


@dataclass(frozen=True)
class AllowedHosts:
    """The hosts that may be asked.

    :ivar names: ``NAME`` for all ports or ``NAME:PORT``; `ANY_HOST` for all others with public addresses.
    """

    names: Sequence[str] = ()

    def check_host(self, host: str, port: int) -> None:
        """Check the host of an address before anything is sent, also to the DNS.

        :raises NotAllowed: the host may not be asked.
        """
        if not self._is_named(host, port) and ANY_HOST not in self.names:
            allowed = ", ".join(self.names) or "none"
            raise NotAllowed(
                f"the host {host:.255}:{port} is not allowed; allowed are: {allowed} "
                "([stacks] remote_cloud_hosts)"
            )
        with contextlib.suppress(ValueError):
            self._check(host, port, parse_address(host))

    def check_address(self, host: str, port: int, address: str) -> None:
        """Check an address of a host.

        :raises NotAllowed: the address belongs to a metadata service, or is private and the list does not
            name the host.
        """
        self._check(host, port, parse_address(address))

    def _check(self, host: str, port: int, address: Address) -> None:
        if is_metadata(address) or not (self._is_named(host, port) or is_public(address)):
            raise NotAllowed(f"the host {host:.255} has the address {address}, which is not allowed")

    def _is_named(self, host: str, port: int) -> bool:
        names = {name.lower() for name in self.names}
        return host.lower() in names or f"{host.lower()}:{port}" in names


def tls_context(ca_cert: str) -> ssl.SSLContext:
    """Return a TLS context that verifies certificates by these authorities only.

    :raises ValueError: the text is no certificate in PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=ca_cert)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError("it is not a certificate in PEM format") from error
    return context


class GuardedRequests(requests.Session):
    """Sends requests to addresses that users name.

    Nothing of the environment counts: its proxy would choose the addresses.

    :param hosts: the hosts that may be asked; None: all, for an operator has chosen the address.
    :param ca_cert: certificates of authorities, in PEM; None: the authorities that `requests` trusts.
    :param proxy: address of a proxy that the operator has chosen for these requests; None: no proxy.
    :param most_bytes: bytes that an answer may have.
    :param seconds: seconds that one call may take.
    :raises ValueError: ca_cert is no certificate.
    """

    def __init__(
        self,
        hosts: AllowedHosts | None,
        ca_cert: str | None,
        *,
        proxy: str | None = None,
        most_bytes: int = MOST_BYTES,
        seconds: float = LONGEST,
    ) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = REDIRECTS
        if proxy is not None:
            self.proxies = {"http": proxy, "https": proxy}
        tls = None if ca_cert is None else tls_context(ca_cert)
        self._transport = _Transport(hosts, tls, most_bytes, seconds)
        self.mount("http://", self._transport)
        self.mount("https://", self._transport)

    def one_call(self) -> contextlib.AbstractContextManager[None]:
        """Return a context whose requests, redirects among them, share the time of one."""
        return self._transport.one_call()

    def request(self, *args: Json, **settings: Json) -> requests.Response:
        """Send a request, and follow its redirects, as one call."""
        with self.one_call():
            return super().request(*args, **settings)


def bounded_session(operators: session.Session, *, seconds: float, most_bytes: int) -> session.Session:
    """Return a session with the credentials of an operator's, whose calls are bounded in time and size.

    The hosts, the proxies and the certificates are those that the operator has chosen.

    :param operators: the operator's session.
    :param seconds: seconds that one call may take, with the requests to Keystone that it needs.
    :param most_bytes: bytes that an answer may have.
    """
    http = GuardedRequests(None, None, most_bytes=most_bytes, seconds=seconds)
    http.trust_env = True
    return GuardedSession(http, auth=operators.auth, verify=operators.verify, cert=operators.cert)


class GuardedSession(session.Session):
    """A session of keystoneauth whose calls have one deadline each, and few redirects.

    :param http: session of `requests` that sends the requests.
    :param settings: further arguments of keystoneauth's Session.
    """

    def __init__(self, http: GuardedRequests, **settings: Json) -> None:
        super().__init__(session=http, redirect=REDIRECTS, **settings)
        self._http = http

    def request(self, *args: Json, **settings: Json) -> requests.Response:
        """Send a request, and those to Keystone that it needs, as one call; see keystoneauth's Session."""
        with self._http.one_call():
            answer: requests.Response = super().request(*args, **settings)
        if answer.is_redirect and settings.get("redirect") is not False:
            raise TooMuch(f"the answer has more than {REDIRECTS} redirects")
        return answer


def own_http_session(ca_cert: str) -> requests.Session:
    """Return a session for the addresses of the operator's own service catalog, which nothing limits.

    :param ca_cert: certificates of authorities, in PEM, which are the only ones.
    :raises ValueError: ca_cert is no certificate.
    """
    http = requests.Session()
    http.mount("https://", _Trusting(tls_context(ca_cert)))
    return http


class _Trusting(HTTPAdapter):
    """Sends requests, and trusts the given authorities only; they are never written to a file."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **settings: Json) -> None:
        super().init_poolmanager(connections, maxsize, block, **self._secured(settings))

    def proxy_manager_for(self, proxy: str, **settings: Json) -> Json:
        return super().proxy_manager_for(proxy, **self._secured(settings))

    def cert_verify(self, conn: Json, url: str, verify: Json, cert: Json) -> None:
        super().cert_verify(conn, url, verify, cert)
        if self._tls is not None:
            conn.ca_certs = conn.ca_cert_dir = None

    def _secured(self, settings: dict[str, Json]) -> dict[str, Json]:
        return settings if self._tls is None else {**settings, "ssl_context": self._tls}


class _Transport(_Trusting):
    """Sends requests to allowed hosts, and reads answers that have a size."""

    def __init__(
        self, hosts: AllowedHosts | None, tls: ssl.SSLContext | None, most_bytes: int, seconds: float
    ) -> None:
        self._hosts = hosts
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._calls = _Calls()
        super().__init__(tls)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **settings: Json) -> None:
        super().init_poolmanager(connections, maxsize, block, **settings)
        check = None if self._hosts is None else self._hosts.check_address
        self.poolmanager.pool_classes_by_scheme = _pools(check, self._calls)

    def proxy_manager_for(self, proxy: str, **settings: Json) -> Json:
        manager = super().proxy_manager_for(proxy, **settings)
        # The connection is to the operator's proxy, which decides about addresses.
        manager.pool_classes_by_scheme = _pools(None, self._calls)
        return manager

    @contextlib.contextmanager
    def one_call(self) -> Iterator[None]:
        """Share the time of one call between the thread's requests."""
        if self._calls.deadline is not None:
            yield
            return
        try:
            with _Deadline(self._seconds) as self._calls.deadline:
                yield
        finally:
            self._calls.deadline = None

    def send(self, request: Json, *args: Json, **settings: Json) -> requests.Response:
        parts = urllib.parse.urlsplit(request.url)
        if self._hosts is not None:
            self._hosts.check_host(parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))
        request.headers["Connection"] = "close"  # So that each request opens one, in its own thread.
        with self.one_call():
            deadline = self._calls.deadline
            assert deadline is not None
            try:
                answer = super().send(request, *args, **settings)
                answer._content = self._body(answer)
            except (requests.RequestException, OSError) as error:
                if not deadline.is_over:
                    raise
                raise self._too_slow() from error
            if deadline.is_over:  # Without a length, an answer ends where its connection is shut.
                raise self._too_slow()
        return answer

    def _too_slow(self) -> TooMuch:
        return TooMuch(f"the answer did not arrive within {self._seconds:g} s")

    def _body(self, answer: requests.Response) -> bytes:
        pieces = []
        size = 0
        for piece in answer.iter_content(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self._most_bytes:
                answer.close()
                raise TooMuch(f"the answer is larger than {self._most_bytes} bytes")
        return b"".join(pieces)


class _Calls(threading.local):
    """The call of a thread.

    :ivar deadline: the deadline of the call; None: no call runs.
    """

    deadline: "_Deadline | None" = None


class _Deadline:
    """Shuts the connection of a call after some seconds: a timeout counts from byte to byte only.

    :ivar is_over: whether the seconds have passed.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._forget()

    def watch(self, opened: socket.socket) -> None:
        """Take a copy of the open connection's socket; one that comes late is shut at once."""
        self._forget()
        self._socket = opened
        if self.is_over:
            self._shut()

    def _end(self) -> None:
        self.is_over = True
        self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()


def _pools(check: CheckAddress | None, calls: _Calls) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's pools, whose connections are checked before anything is sent.

    :param check: says whether a host's address may be reached; None: each may.
    """

    def resolved(host: str, port: int) -> None:
        """Check the addresses before one of them sees that somebody connects."""
        if check is not None:
            with contextlib.suppress(OSError):  # Which the connection meets, too.
                for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                    check(host, port, str(item[4][0]))

    def checked(opened: socket.socket, host: str, port: int) -> socket.socket:
        """Check the address once more: the DNS may answer twice."""
        try:
            if check is not None:
                check(host, port, opened.getpeername()[0])
        except NotAllowed:
            opened.close()
            raise
        if calls.deadline is not None:
            calls.deadline.watch(opened.dup())  # TLS takes the socket itself away, before its first byte.
        return opened

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            resolved(self.host, self.port)
            return checked(super()._new_conn(), self.host, self.port)

    class Secured(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            resolved(self.host, self.port)
            return checked(super()._new_conn(), self.host, self.port)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecuredPool(HTTPSConnectionPool):
        ConnectionCls = Secured

    return {"http": PlainPool, "https": SecuredPool}
