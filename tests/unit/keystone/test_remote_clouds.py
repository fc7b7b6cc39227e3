"""Other clouds: which hosts are asked, by which certificates, how long, and by which credentials."""

import http.server
import pathlib
import socket
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
from stoker.keystone.guarded_http import (
    AllowedHosts,
    GuardedRequests,
    GuardedSession,
    NotAllowed,
    TooMuch,
    bounded_session,
    own_http_session,
)
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
    """A web server: large answers at /large, slow ones at /drip, a redirect at /moved, without end at /round.

    At /late each redirect takes most of a second, and /stream is a body without end and length.
    """

    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.requests: list[str] = []
        self.redirects = {"/moved": "http://elsewhere.test/"}
        self.sizes = {"/large": 5000}
        self.over = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                site.requests.append(self.path)
                try:
                    while self.path == "/drip" and not site.over.wait(0.05):
                        self.wfile.write(b"H")
                    place = site.redirects.get(self.path)
                    if self.path == "/late":
                        site.over.wait(0.6)
                    self.send_response(302 if place else 200)
                    if place:
                        self.send_header("Location", place)
                    if self.path == "/stream":
                        self.end_headers()
                    while self.path == "/stream" and not site.over.wait(0.05):
                        self.wfile.write(b"x")
                    body = b"x" * site.sizes.get(self.path, 5)
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
        self.redirects |= {path: f"{self.url}{path}" for path in ("/round", "/late")}
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    remote_site = Site()
    yield remote_site
    remote_site.close()


def test_only_allowed_hosts_are_called(site: Site) -> None:
    for names in ((HERE,), (f"{HERE}:{site.port}",), ("*", HERE)):
        assert GuardedRequests(AllowedHosts(names), None).get(f"{site.url}/").text == "xxxxx"
    before = len(site.requests)
    for names in ((), ("keystone.test",), (f"{HERE}:1",), ("*",)):
        with pytest.raises(NotAllowed, match=HERE):
            GuardedRequests(AllowedHosts(names), None).get(f"{site.url}/")
    with pytest.raises(NotAllowed, match="elsewhere.test"):
        GuardedRequests(AllowedHosts((HERE,)), None).get(f"{site.url}/moved")
    assert len(site.requests) == before + 1  # The redirect itself.


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("http://cloud.test/", "cloud.test:80"),
        ("https://cloud.test/", "cloud.test:443"),
        ("https://cloud.test:80/", "cloud.test:80"),
    ],
)
def test_a_host_is_checked_with_the_port_of_its_address(address: str, host: str) -> None:
    for names, allowed in ((("cloud.test:1", "here"), "cloud.test:1, here"), ((), "none")):
        text = f"the host {host} is not allowed; allowed are: {allowed} "
        with pytest.raises(NotAllowed, match=text):
            GuardedRequests(AllowedHosts(names), None).get(address)


class AnsweringTwice(AllowedHosts):
    """Hosts whose second address is another one than the first."""

    checked = 0

    def check_address(self, host: str, port: int, address: str) -> None:
        vars(self)["checked"] = self.checked + 1
        super().check_address(host, port, "8.8.8.8" if self.checked == 1 else "10.0.0.1")


def test_the_address_that_a_connection_has_reached_is_checked_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A host may have several addresses, each of which is checked before the connection.
    only = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", site.port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **keywords: [only])
    hosts = AnsweringTwice(("*",))
    with pytest.raises(NotAllowed, match=r"localhost:\d+ has|localhost has the address 10\.0\.0\.1"):
        GuardedRequests(hosts, None).get(f"http://localhost:{site.port}/")
    assert (site.requests, hosts.checked) == ([], 2)


def test_an_operators_session_keeps_its_settings_within_bounds(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", HERE)
    operators = Session(auth=Token(site.url, "token"), verify="ca.pem", cert="cert.pem")
    bounded = bounded_session(operators, seconds=60, most_bytes=1000)
    assert (bounded.auth, bounded.verify, bounded.cert) == (operators.auth, "ca.pem", "cert.pem")
    plain = bounded_session(Session(auth=Token(site.url, "token")), seconds=60, most_bytes=1000)
    assert plain.get(f"{site.url}/").text == "xxxxx"
    assert plain.get("http://cloud.test/by-proxy").text == "xxxxx"
    assert "http://cloud.test/by-proxy" in site.requests
    with pytest.raises(TooMuch, match="larger than 1000 bytes"):
        plain.get(f"{site.url}/large")


PRIVATE = ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "fd00::1", "0.0.0.0", "224.0.0.1", "100.64.0.1"]
TRANSLATED = ["::ffff:127.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::a00:1", "2002:a00:1::1"]
METADATA = [
    "169.254.169.254",
    "fd00:ec2::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "fe80::a9fe:a9fe",
]
METADATA_TRANSLATED = [
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "64:ff9b::c000:c0",
    "2001:0:808:808:0:1:5601:5601",
]


@pytest.mark.parametrize("address", PRIVATE + TRANSLATED)
def test_private_addresses_are_for_named_hosts_only(address: str) -> None:
    with pytest.raises(NotAllowed, match="has the address"):
        AllowedHosts(("*",)).check_address("cloud.test", 443, address)
    AllowedHosts(("cloud.test",)).check_address("Cloud.test", 443, address)


@pytest.mark.parametrize("address", METADATA + METADATA_TRANSLATED)
def test_metadata_services_are_for_nobody(address: str) -> None:
    for names in (("*",), ("cloud.test",)):
        with pytest.raises(NotAllowed, match="has the address"):
            AllowedHosts(names).check_address("cloud.test", 443, address)
    with pytest.raises(NotAllowed, match="has the address"):
        AllowedHosts((address,)).check_host(address, 80)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860::8888", "64:ff9b::808:808", "2002:808:808::1"])
def test_public_addresses_are_for_all(address: str) -> None:
    AllowedHosts(("*",)).check_address("cloud.test", 443, address)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_is_checked_before_anybody_connects_to_it(
    site: Site, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib3.util.connection.create_connection", None)
    url = f"{scheme}://localhost:{site.port}/"
    with pytest.raises(NotAllowed, match="has the address"):
        GuardedRequests(AllowedHosts(("*",)), None).get(url)


def test_the_environment_names_no_proxy_but_the_operator_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://{HERE}:1")
    monkeypatch.setenv("no_proxy", "")
    hosts = AllowedHosts((HERE, "cloud.test"))
    assert GuardedRequests(hosts, None).get(f"{site.url}/").text == "xxxxx"
    assert GuardedRequests(hosts, None, proxy=site.url).get("http://cloud.test/by-proxy").text == "xxxxx"
    assert "http://cloud.test/by-proxy" in site.requests
    with pytest.raises(NotAllowed, match="elsewhere.test"):
        GuardedRequests(hosts, None, proxy=site.url).get("http://elsewhere.test/")
    with pytest.raises(NotAllowed, match="has the address"):
        GuardedRequests(AllowedHosts(("*",)), None, proxy=site.url).get("http://10.0.0.1/")
    elsewhere = {**CREDENTIAL, "auth": {**AUTH, "auth_url": "http://cloud.test/v3"}}
    session = Session(auth=Token("http://own.test", "token"))
    with pytest.raises((WrongCredential, RemoteUnavailable)):
        RemoteClouds(hosts=("cloud.test",), proxy=site.url).adapter(
            session, RemotePlace(credential=elsewhere), "orchestration", "1"
        )
    assert any(path.startswith("http://cloud.test/v3/") for path in site.requests), site.requests


def test_redirects_are_few_and_share_the_time_of_their_call(site: Site) -> None:
    hosts = AllowedHosts((HERE,))
    with pytest.raises(requests.TooManyRedirects):
        GuardedRequests(hosts, None).get(f"{site.url}/round")
    assert site.requests == ["/round"] * 4
    keystone = GuardedSession(GuardedRequests(hosts, None), auth=Token(site.url, "token"))
    with pytest.raises(TooMuch, match="more than 3 redirects"):
        keystone.get(f"{site.url}/round")
    assert keystone.get(f"{site.url}/").text == "xxxxx"
    assert keystone.get(f"{site.url}/round", redirect=False).status_code == 302
    del site.requests[-2:]
    slow = GuardedSession(GuardedRequests(hosts, None, seconds=1.0), auth=Token(site.url, "token"))
    with pytest.raises(TooMuch, match="within 1 s"):
        slow.get(f"{site.url}/late")
    assert len(site.requests) < 12


def test_answers_have_a_size_and_a_time(site: Site) -> None:
    hosts = AllowedHosts((HERE,))
    with pytest.raises(TooMuch, match="larger than 4999 bytes"):
        GuardedRequests(hosts, None, most_bytes=4999).get(f"{site.url}/large")
    assert len(GuardedRequests(hosts, None, most_bytes=5000).get(f"{site.url}/large").content) == 5000
    began = time.monotonic()
    with pytest.raises(TooMuch, match=r"within 1 s"):
        GuardedRequests(hosts, None, seconds=1.0).get(f"{site.url}/drip")
    assert time.monotonic() - began < 60  # The server would drip forever.


def test_without_other_limits_an_answer_has_16_mebibytes_and_two_minutes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.sizes = {"/largest": 16 * 2**20, "/larger": 16 * 2**20 + 1}
    http = GuardedRequests(AllowedHosts((HERE,)), None)
    assert len(http.get(f"{site.url}/largest").content) == 16 * 2**20
    with pytest.raises(TooMuch, match="larger"):
        http.get(f"{site.url}/larger")
    monkeypatch.setattr(threading.Timer, "start", lambda self: self.function())
    with pytest.raises(TooMuch, match="within 120 s"):
        http.get(f"{site.url}/")


def test_an_answer_that_was_cut_at_its_time_is_not_taken_for_whole(site: Site) -> None:
    with pytest.raises(TooMuch, match="within 1 s"):
        GuardedRequests(AllowedHosts((HERE,)), None, seconds=1.0).get(f"{site.url}/stream")


class SlowToOpen(AllowedHosts):
    """Hosts whose connections open when the time for an answer is over."""

    def check_address(self, host: str, port: int, address: str) -> None:
        time.sleep(0.5)
        super().check_address(host, port, address)


def test_a_connection_that_opens_too_late_is_shut(site: Site) -> None:
    with pytest.raises(TooMuch, match="within"):
        GuardedRequests(SlowToOpen((HERE,)), None, seconds=0.1).get(f"{site.url}/drip")


def test_given_certificates_are_the_only_ones_and_in_no_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = tmp_path / "one.pem"
    other_certificate = tmp_path / "other.pem"
    write_certificate(certificate, HERE)
    write_certificate(other_certificate, HERE)
    site = Site(certificate)
    site_hosts = AllowedHosts((HERE,))
    try:
        assert GuardedRequests(site_hosts, certificate.read_text()).get(site.url).text == "xxxxx"
        assert own_http_session(certificate.read_text()).get(site.url).text == "xxxxx"
        with pytest.raises(requests.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            GuardedRequests(site_hosts, other_certificate.read_text()).get(site.url)
        with pytest.raises(requests.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            own_http_session(other_certificate.read_text()).get(site.url)
        assert GuardedRequests(site_hosts, None).get(site.url, verify=str(certificate)).text == "xxxxx"
        with pytest.raises(requests.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            GuardedRequests(site_hosts, None).get(site.url)
        monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(certificate))
        assert GuardedRequests(site_hosts, None).get(site.url).text == "xxxxx", "authorities of `requests`"
    finally:
        site.close()
    session = Session(auth=Token("http://cloud.test", "token"))
    with pytest.raises(WrongCertificate, match="not a certificate in PEM format"):
        RemoteClouds().adapter(session, RemotePlace("south", "no certificate"), "orchestration", "1")


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


def test_a_keystone_elsewhere_is_called_within_the_list(site: Site) -> None:
    session = Session(auth=Token("http://cloud.test", "token"))

    def ask(url: str, *hosts: str) -> None:
        credential = {**CREDENTIAL, "auth": {**AUTH, "auth_url": url}}
        RemoteClouds(hosts=hosts).adapter(session, RemotePlace(credential=credential), "orchestration", "1")

    with pytest.raises(WrongCredential, match="not allowed; allowed are: cloud.test"):
        ask(f"{site.url}/v3", "cloud.test")
    assert site.requests == []
    with pytest.raises((WrongCredential, RemoteUnavailable)):
        ask(f"{site.url}/v3", HERE)
    assert site.requests != []
    closed = site.port
    site.close()
    with pytest.raises(RemoteUnavailable):
        ask(f"http://{HERE}:{closed}/v3", HERE)
