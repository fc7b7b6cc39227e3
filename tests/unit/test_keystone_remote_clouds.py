"""Other clouds: which hosts are asked, by which certificates, how long, and by which credentials."""

import http.server
import pathlib
import ssl
import threading
import time
import typing
from collections.abc import Iterator

import pytest
import requests
from harness.certificates import write_certificate
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from stoker.keystone.guarded_http import AllowedHosts, NotAllowed, TooMuch, http_session
from stoker.keystone.remote_clouds import (
    RemoteClouds,
    RemotePlace,
    RemoteUnavailable,
    WrongCertificate,
    WrongCredential,
    parse_credential,
    secrets_of,
)

Json = typing.Any
AUTH = {
    "auth_url": "https://keystone.test/v3",
    "application_credential_id": "an-id",
    "application_credential_secret": "hush-hush",
}
CREDENTIAL = {"auth_type": "v3applicationcredential", "auth": AUTH}
HERE = "127.0.0.1"


class Site:
    """A web server: large answers at /large, slow ones at /drip, a redirect at /moved."""

    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.asked: list[str] = []
        self.over = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                site.asked.append(self.path)
                try:
                    while self.path == "/drip" and not site.over.wait(0.05):
                        self.wfile.write(b"H")
                    self.send_response(302 if self.path == "/moved" else 200)
                    if self.path == "/moved":
                        self.send_header("Location", "http://elsewhere.test/")
                    body = b"x" * (5000 if self.path == "/large" else 5)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Be silent."""

        self._server = http.server.ThreadingHTTPServer((HERE, 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"{'http' if certificate is None else 'https'}://{HERE}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def test_only_allowed_hosts_are_asked(site: Site) -> None:
    for names in ((HERE,), (f"{HERE}:{site.port}",), ("*", HERE)):
        assert http_session(AllowedHosts(names), None).get(f"{site.url}/").text == "xxxxx"
    before = len(site.asked)
    for names in ((), ("keystone.test",), (f"{HERE}:1",), ("*",)):
        with pytest.raises(NotAllowed, match=HERE):
            http_session(AllowedHosts(names), None).get(f"{site.url}/")
    with pytest.raises(NotAllowed, match="elsewhere.test"):
        http_session(AllowedHosts((HERE,)), None).get(f"{site.url}/moved")
    assert len(site.asked) == before + 1  # The redirect itself.


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1"],
)
def test_addresses_that_no_cloud_has_are_for_named_hosts_only(address: str) -> None:
    with pytest.raises(NotAllowed, match="has the address"):
        AllowedHosts(("*",)).check_address("cloud.test", 443, address)
    AllowedHosts(("cloud.test",)).check_address("Cloud.test", 443, address)
    for public in ("10.0.0.1", "192.0.2.1", "2001:db8::1"):
        AllowedHosts(("*",)).check_address("cloud.test", 443, public)


def test_answers_have_a_size_and_a_time(site: Site) -> None:
    hosts = AllowedHosts((HERE,))
    with pytest.raises(TooMuch, match="larger than 1000 bytes"):
        http_session(hosts, None, most_bytes=1000).get(f"{site.url}/large")
    began = time.monotonic()
    with pytest.raises(TooMuch, match=r"within 1 s"):
        http_session(hosts, None, seconds=1.0).get(f"{site.url}/drip")
    assert time.monotonic() - began < 60  # The server would drip for ever.


class SlowToOpen(AllowedHosts):
    """Hosts whose connections open when the time for an answer is over."""

    def check_address(self, host: str, port: int, address: str) -> None:
        time.sleep(0.5)
        super().check_address(host, port, address)


def test_a_connection_that_opens_too_late_is_shut(site: Site) -> None:
    with pytest.raises(TooMuch, match="within"):
        http_session(SlowToOpen((HERE,)), None, seconds=0.1).get(f"{site.url}/drip")


def test_given_certificates_are_the_only_ones_and_in_no_file(tmp_path: pathlib.Path) -> None:
    certificate, other = tmp_path / "one.pem", tmp_path / "other.pem"
    write_certificate(certificate, HERE)
    write_certificate(other, HERE)
    site = Site(certificate)
    site_hosts = AllowedHosts((HERE,))
    try:
        assert http_session(site_hosts, certificate.read_text()).get(site.url).text == "xxxxx"
        with pytest.raises(requests.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            http_session(site_hosts, other.read_text()).get(site.url)
    finally:
        site.close()
    own = Session(auth=Token("http://cloud.test", "token"))
    with pytest.raises(WrongCertificate, match="no certificate in PEM"):
        RemoteClouds().adapter(own, RemotePlace("south", "no certificate"), "orchestration", "1")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("text", "must be JSON like"),
        ({"auth_type": "v3password"}, "must be JSON like"),
        ({**CREDENTIAL, "auth_type": "v3oidcclientcredentials"}, "auth_type must be one of"),
        ({**CREDENTIAL, "auth": {**AUTH, "cacert": "/etc/passwd"}}, "has no option cacert"),
        ({**CREDENTIAL, "auth": {**AUTH, "application_credential_id": 5}}, "must be a text"),
        ({**CREDENTIAL, "auth": {**AUTH, "auth_url": "file:///etc/passwd"}}, "auth_url must be an address"),
    ],
)
def test_a_malformed_credential_is_refused_without_its_secrets(document: Json, reason: str) -> None:
    with pytest.raises(WrongCredential, match=reason) as wrong:
        parse_credential(document)
    assert "hush" not in str(wrong.value)


def test_only_the_secrets_of_a_credential_are_secrets() -> None:
    assert secrets_of(CREDENTIAL) == ["hush-hush"]
    assert "hush" not in repr(RemotePlace(credential=CREDENTIAL))


def test_a_keystone_elsewhere_is_asked_within_the_list(site: Site) -> None:
    own = Session(auth=Token("http://cloud.test", "token"))

    def ask(url: str, *hosts: str) -> None:
        credential = {**CREDENTIAL, "auth": {**AUTH, "auth_url": url}}
        RemoteClouds(hosts=hosts).adapter(own, RemotePlace(credential=credential), "orchestration", "1")

    with pytest.raises(WrongCredential, match="not allowed; allowed are: cloud.test"):
        ask(f"{site.url}/v3", "cloud.test")
    assert site.asked == []
    with pytest.raises((WrongCredential, RemoteUnavailable)):
        ask(f"{site.url}/v3", HERE)
    assert site.asked != []
    closed = site.port
    site.close()
    with pytest.raises(RemoteUnavailable):
        ask(f"http://{HERE}:{closed}/v3", HERE)
