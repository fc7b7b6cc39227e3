"""Templates at addresses: which are fetched, how long and how large; over real TLS."""

import contextlib
import http.server
import pathlib
import socket
import ssl
import threading
import typing
from collections.abc import Iterator, Sequence

import pytest
from harness.certificates import write_certificate
from stoker.engine.errors import TemplateNotFetched
from stoker.engine.template_urls import FetchLimits, TemplateFetcher
from stoker.keystone.network_addresses import is_public, parse_address

NAME = "templates.example.org"
TEMPLATE = "heat_template_version: 2021-04-16\n"


class Site:
    """A web server; it answers what is in `pages`: a status, a body, headers."""

    def __init__(self, certificate: pathlib.Path) -> None:
        self.pages: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.hosts: list[str] = []
        self.stalled = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                site.hosts.append(self.headers["Host"])
                if self.path == "/drip":
                    with contextlib.suppress(OSError):
                        while not site.stalled.wait(0.05):
                            self.wfile.write(b"H")
                    return
                status, body, headers = site.pages.get(self.path, (404, b"", {}))
                self.send_response(status)
                for header in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(*header)
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Be silent."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.server.server_port
        self.certificate = certificate
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}"

    def fetcher(self, **changed: typing.Any) -> TemplateFetcher:
        limits = {"hosts": [f"{NAME}:{self.port}"], "max_bytes": 1000, "seconds": 30.0}
        more = {name: changed.pop(name) for name in ("tls", "resolve", "is_allowed") if name in changed}
        trusted = lambda: ssl.create_default_context(cafile=str(self.certificate))  # noqa: E731
        settings = {"tls": trusted, "resolve": local, "is_allowed": lambda address: True, **more}
        return TemplateFetcher(FetchLimits(**{**limits, **changed}), **settings)

    def close(self) -> None:
        self.stalled.set()
        self.server.shutdown()
        self.server.server_close()


def local(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    write_certificate(path, NAME)
    site = Site(path)
    try:
        yield site
    finally:
        site.close()


@pytest.fixture
def site(served: Site) -> Site:
    served.pages = {"/a.yaml": (200, TEMPLATE.encode(), {})}
    served.hosts = []
    return served


def refused(fetcher: TemplateFetcher, url: str) -> str:
    with pytest.raises(TemplateNotFetched) as error:
        fetcher.fetch(url)
    return str(error.value)


def test_a_template_of_an_allowed_host_is_fetched(site: Site) -> None:
    assert site.fetcher().fetch(f"{site.url}/a.yaml") == TEMPLATE
    assert site.hosts == [f"{NAME}:{site.port}"]
    assert site.fetcher().fetch(f"{site.url.upper().replace('HTTPS', 'https')}/a.yaml") == TEMPLATE


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://templates.example.org/a.yaml", 'Invalid URL scheme "http", it must be https'),
        ("file:///etc/passwd", 'Invalid URL scheme "file"'),
        ("ftp://templates.example.org/a", 'Invalid URL scheme "ftp"'),
        ("a.yaml", 'Invalid URL scheme ""'),
        (
            "https://templates.example.org/a.yaml",
            "the host templates.example.org is not allowed; allowed",
        ),
        ("https://other.example.org/a.yaml", "the host other.example.org is not allowed"),
        ("https://templates.example.org.evil.org/", "is not allowed"),
        ("https://u:p@templates.example.org/", "must not have a user or a password"),
        ("https://[::1/", "malformed"),
        ("https://h:99999/", "malformed"),
        ("https://127.0.0.1/", "the host 127.0.0.1 is not allowed"),
    ],
)
def test_other_addresses_are_refused_before_any_request(site: Site, url: str, reason: str) -> None:
    assert reason in refused(site.fetcher(), url)
    assert site.hosts == []


def test_without_hosts_nothing_is_fetched(site: Site) -> None:
    assert "template_url is not supported here" in refused(site.fetcher(hosts=[]), f"{site.url}/a.yaml")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "0.0.0.0"])
def test_a_host_whose_address_is_not_public_gets_no_request(site: Site, address: str) -> None:
    allowed = lambda address: is_public(parse_address(address))  # noqa: E731
    for addresses in ([address], ["192.0.32.8", address]):
        resolve = lambda host, port, resolved=addresses: resolved  # noqa: E731
        text = refused(site.fetcher(resolve=resolve, is_allowed=allowed), f"{site.url}/a.yaml")
        assert text == f"the host {NAME} has no public address"
    limits = FetchLimits(hosts=[f"{NAME}:{site.port}"])
    default = TemplateFetcher(limits, resolve=lambda host, port: [address])
    assert "no public address" in refused(default, f"{site.url}/a.yaml")
    assert site.hosts == []


def test_redirects_are_followed_within_the_list(site: Site) -> None:
    site.pages["/moved"] = (302, b"", {"Location": "/a.yaml"})
    assert site.fetcher().fetch(f"{site.url}/moved") == TEMPLATE
    for place in (
        "https://evil.example.org/a.yaml",
        f"http://{NAME}:{site.port}/a.yaml",
        "file:///etc/passwd",
    ):
        site.pages["/out"] = (302, b"", {"Location": place})
        assert "not allowed" in (text := refused(site.fetcher(), f"{site.url}/out")) or "scheme" in text
    site.pages["/loop"] = (302, b"", {"Location": "/loop"})
    assert refused(site.fetcher(), f"{site.url}/loop") == "more than 3 redirects"


def test_a_large_template_is_refused(site: Site) -> None:
    site.pages["/large"] = (200, b"x" * 1001, {})
    text = refused(site.fetcher(), f"{site.url}/large")
    assert text == "Template exceeds maximum allowed size (1000 bytes)"
    site.pages["/exact"] = (200, b"x" * 1000, {})
    assert len(site.fetcher().fetch(f"{site.url}/exact")) == 1000


def test_a_server_that_drips_is_left_in_time(site: Site) -> None:
    text = refused(site.fetcher(seconds=0.5), f"{site.url}/drip")
    assert text == f"{NAME} did not answer within 0.5 s"


def test_what_is_no_template_is_refused(site: Site) -> None:
    assert refused(site.fetcher(), f"{site.url}/none") == f"{NAME} answers 404"
    site.pages["/bytes"] = (200, b"\xff\xfe", {})
    assert "is not a text in UTF-8" in refused(site.fetcher(), f"{site.url}/bytes")


def test_a_certificate_that_is_not_trusted_or_of_another_name_is_refused(site: Site) -> None:
    text = refused(site.fetcher(tls=ssl.create_default_context), f"{site.url}/a.yaml")
    assert "certificate" in text.lower()
    other_address = f"other.example.org:{site.port}"
    assert (
        "certificate"
        in refused(site.fetcher(hosts=[other_address]), f"https://{other_address}/a.yaml").lower()
    )
    assert site.hosts == []


def test_a_host_that_does_not_exist_or_answer_is_named(site: Site) -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror("no such name")

    assert refused(site.fetcher(resolve=unknown), f"{site.url}/a") == f"{NAME}: no such name"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    hosts = [f"{NAME}:{port}"]
    assert NAME in refused(site.fetcher(hosts=hosts), f"https://{NAME}:{port}/a")
