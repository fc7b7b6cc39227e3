"""Fetching templates that requests name by their address, from hosts that the operator allows."""

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..keystone.network_addresses import is_public, parse_address
from ..resources.contract.errors import PermanentError
from ..settings import Seconds, setting
from ..template.compile import Limits
from .errors import TemplateNotFetched

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host; raises OSError."""
REDIRECTS = 3
_PIECE = 65536
_PORT = 443
_MOVED = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class FetchLimits:
    """Limits of a template that is fetched.

    :ivar max_bytes: bytes that the template may have.
    """

    hosts: Sequence[str] = setting(
        "template_url_hosts",
        (),
        "Hosts, NAME or NAME:PORT, separated by commas, from which requests and nested stacks "
        "(`template_url`, `AWS::CloudFormation::Stack`) may have a template fetched, by HTTPS only. "
        "Redirects lead to these hosts only, and none of their addresses may be private. Users can make "
        "Stoker send requests there. None: no template is fetched.",
    )
    seconds: Seconds = setting(
        "fetch_timeout",
        10.0,
        "Seconds in which a template of template_url, or all files of a container of Swift "
        "(`files_container`), must have been fetched. The request occupies a thread of the API that long; a "
        "nested stack's step occupies one of the conductor.",
        least=0.1,
        most=300,
    )
    max_bytes: int = Limits.template_bytes


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host; raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in addresses))


class TemplateFetcher:
    """Fetches templates over HTTPS.  Thread-safe.

    A host of the list gets no further than its own addresses: an address that is not public is refused,
    even if the DNS names it, and the connection goes to the very address that was checked.

    :param tls: verifies the servers' certificates.
    :param is_allowed: says whether an address may be asked.
    """

    def __init__(
        self,
        limits: FetchLimits,
        *,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        resolve: Resolve = resolve,
        is_allowed: Callable[[str], bool] = lambda address: is_public(parse_address(address)),
    ) -> None:
        self._limits = limits
        self._tls = tls
        self._resolve = resolve
        self._is_allowed = is_allowed

    def fetch(self, url: str) -> str:
        """Return the text of a template.

        :raises TemplateNotFetched: the address may not be asked, or has not answered with a template.
        """
        if not self._limits.hosts:
            raise TemplateNotFetched(
                "template_url is not supported here: send the template in the request, or ask the operator "
                "to allow its host"
            )
        until = time.monotonic() + self._limits.seconds
        for _ in range(REDIRECTS + 1):
            answer = self._get(url, until)
            if isinstance(answer, bytes):
                return _text(url, answer)
            url = urllib.parse.urljoin(url, answer)
        raise TemplateNotFetched(f"more than {REDIRECTS} redirects")

    def fetch_nested(self, url: str) -> str:
        """Return the text of the template of a nested stack, for a step.

        :raises PermanentError: the template cannot be fetched; the text is Heat's.
        """
        try:
            return self.fetch(url)
        except TemplateNotFetched as error:
            text = f"Could not fetch remote template '{url:.300}': {error}"
            raise PermanentError(text, kind="ValueError") from error

    def _get(self, url: str, until: float) -> bytes | str:
        """Return the body at an address, or the address to which it redirects."""
        host, port, path = self._parts(url)
        with self._connected(host, port, until) as connection:
            try:
                connection.request("GET", path, headers={"Accept-Encoding": "identity", "Accept": "*/*"})
                answer = connection.getresponse()
                if answer.status in _MOVED and (location := answer.getheader("Location")):
                    return location
                if answer.status != 200:
                    raise TemplateNotFetched(f"{host} answers {answer.status}")
                return self._body(answer, until)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise TemplateNotFetched(self._reason(host, error, until)) from error

    def _parts(self, url: str) -> tuple[str, int, str]:
        try:
            parts = urllib.parse.urlsplit(url)
            host = (parts.hostname or "").lower()
            port = parts.port or _PORT
        except ValueError as error:
            raise TemplateNotFetched(f"the address is malformed: {error}") from error
        if parts.scheme != "https":
            raise TemplateNotFetched(f'Invalid URL scheme "{parts.scheme:.20}", it must be https')
        if parts.username is not None or parts.password is not None:
            raise TemplateNotFetched("the address must not have a user or a password")
        allowed = {name if ":" in name else f"{name}:{_PORT}" for name in map(str.lower, self._limits.hosts)}
        if f"{host}:{port}" not in allowed:
            address = host if port == _PORT else f"{host}:{port}"
            raise TemplateNotFetched(
                f"the host {address:.255} is not allowed; allowed are: {', '.join(self._limits.hosts)}"
            )
        path = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        return host, port, f"{path}?{parts.query}" if parts.query else path

    @contextlib.contextmanager
    def _connected(self, host: str, port: int, until: float) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection(host, port)
        try:
            addresses = self._resolve(host, port)
            refused = [address for address in addresses if not self._is_allowed(address)]
            if refused or not addresses:
                raise TemplateNotFetched(f"the host {host} has no public address")
            plain = socket.create_connection((addresses[0], port), timeout=_remaining(until))
            connection.sock = plain
            connection.sock = self._tls().wrap_socket(plain, server_hostname=host)
        except OSError as error:
            connection.close()
            raise TemplateNotFetched(self._reason(host, error, until)) from error
        # A timeout counts from byte to byte; a server may send one of them now and then.
        guard = threading.Timer(_remaining(until), _shut, [connection.sock])
        guard.daemon = True
        guard.start()
        try:
            yield connection
        finally:
            guard.cancel()
            connection.close()

    def _body(self, answer: http.client.HTTPResponse, until: float) -> bytes:
        most = self._limits.max_bytes
        body = b""
        while piece := answer.read(_PIECE):
            body += piece
            if len(body) > most:
                raise TemplateNotFetched(f"Template exceeds maximum allowed size ({most} bytes)")
        if answer.length or time.monotonic() >= until:
            raise TemplateNotFetched(f"the template did not arrive within {self._limits.seconds:g} s")
        return body

    def _reason(self, host: str, error: Exception, until: float) -> str:
        if time.monotonic() >= until or isinstance(error, TimeoutError):
            return f"{host} did not answer within {self._limits.seconds:g} s"
        return f"{host}: {error or type(error).__name__}"


def _remaining(until: float) -> float:
    return max(0.001, until - time.monotonic())


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _text(url: str, body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise TemplateNotFetched(f"{url:.300} is not a text in UTF-8") from error
