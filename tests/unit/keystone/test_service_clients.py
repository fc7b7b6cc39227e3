"""Adapters apply the options to each call: tried on an HTTP server that says what it was asked."""

import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import typing
from collections.abc import Iterator

import pytest
from keystoneauth1 import exceptions
from keystoneauth1.session import Session
from stoker.keystone.caller import CallerAccess
from stoker.keystone.client_options import ClientOptions, ServiceOptions
from stoker.keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from stoker.resources.contract.errors import RetryableError
from stoker.resources.openstack.service import Service

Json = typing.Any


class Compute:
    """A compute service with microversions to 2.50, perhaps behind TLS.

    :ivar requests: method, path, and microversion.
    :ivar microversions: the name of the service with the microversion, of each of these.
    :ivar gate: cleared while nothing is answered, but for the versions.
    :ivar shows_versions: answers who asks for its versions; otherwise with `status`, as to everything else.
    :ivar drops: connections that are closed without an answer, but for the versions.
    """

    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.requests: list[tuple[str, str, str | None]] = []
        self.microversions: list[str | None] = []
        self.drops = 0
        self.shows_versions = True
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if service.shows_versions and self.path.rstrip("/") in ("", "/v2.1"):
                    link = [{"rel": "self", "href": f"{service.url}/v2.1/"}]
                    version = {"id": "v2.1", "status": "CURRENT", "links": link}
                    version |= {"version": "2.50", "min_version": "2.1"}
                    body = {"version": version} if "v2.1" in self.path else {"versions": [version]}
                    return self.reply(200, body)
                service.requests.append(
                    (self.command, self.path, self.headers.get("X-OpenStack-Nova-API-Version"))
                )
                service.microversions.append(self.headers.get("OpenStack-API-Version"))
                service.gate.wait(600)
                if service.drops:
                    service.drops -= 1
                    self.close_connection = True
                    return self.connection.close()
                return self.reply(service.status, {})

            def do_POST(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                self.do_GET()

            def reply(self, status: int, body: Json) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Who distrusts the certificate hangs up, as it should."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def session(self, regions: tuple[str, ...] = ("here",), path: str = "/v2.1", **more: Json) -> Session:
        endpoints = [{"region": region, "publicURL": f"{self.url}{path}"} for region in regions]
        catalog = json.dumps([{"type": "compute", "name": "nova", "endpoints": endpoints}])
        return Session(auth=CallerAccess("token", "ann", "p1", catalog).auth(), **more)

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def compute() -> Iterator[Compute]:
    service = Compute()
    yield service
    service.close()


@pytest.fixture
def secure(tmp_path: pathlib.Path) -> Iterator[tuple[Compute, pathlib.Path]]:
    """A service behind TLS, and its certificate, which only itself has signed."""
    file = tmp_path / "service.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{file}", "-out", f"{file}.crt"]
    subprocess.run(command, check=True, capture_output=True)
    certificate = pathlib.Path(f"{file}.crt")
    file.write_text(file.read_text() + certificate.read_text())
    service = Compute(file)
    yield service, certificate
    service.close()


def clients(**options: Json) -> ServiceClients:
    return ServiceClients(ClientOptions(services={"compute": ServiceOptions(**options)}))


@pytest.mark.parametrize(
    ("requested", "limit", "used"),
    [("2.30", None, "2.30"), ("2.96", None, "2.50"), ("2.30", "2.10", "2.10"), ("2.96", "2.9", "2.9")],
)
def test_the_oldest_of_three_microversions_is_used(
    compute: Compute, requested: str, limit: str | None, used: str
) -> None:
    adapter = clients(max_microversion=limit).adapter(compute.session(), "compute", "2.1", requested)
    adapter.get("/servers")
    assert compute.requests == [("GET", "/v2.1/servers", used)]


@pytest.mark.parametrize(
    ("service", "name"), [("application-container", "container"), ("compute", "compute")]
)
def test_a_service_is_named_with_its_microversion_as_it_names_itself(
    compute: Compute, service: str, name: str
) -> None:
    options = ClientOptions(services={service: ServiceOptions(endpoint_override=compute.url)})
    adapter = ServiceClients(options).adapter(compute.session(), service, "2.1", "2.30")
    adapter.get("/servers")
    assert compute.microversions == [f"{name} 2.30"]


def test_a_read_is_repeated_when_the_connection_ends_and_a_create_never(compute: Compute) -> None:
    adapter = clients(connect_retries=2, status_code_retries=2).adapter(
        compute.session(), "compute", "2.1", None
    )
    compute.drops = 1
    adapter.get("/servers", connect_retry_delay=0.01)
    assert len(compute.requests) == 2
    compute.requests.clear()
    compute.drops = 1
    with pytest.raises(exceptions.ConnectFailure):
        adapter.post("/servers", json={})
    assert len(compute.requests) == 1
    compute.status = 503
    with pytest.raises(exceptions.ServiceUnavailable):
        adapter.post("/servers", json={})
    assert len(compute.requests) == 2


def test_a_service_that_is_silent_is_not_called_again_at_once(compute: Compute) -> None:
    adapter = clients(connect_retries=2, timeout=0.3).adapter(compute.session(), "compute", "2.1", None)
    compute.gate.clear()
    with pytest.raises(exceptions.ConnectTimeout):
        adapter.get("/servers", connect_retry_delay=0.01)
    compute.gate.set()
    assert len(compute.requests) == 1


def test_a_call_in_a_hurry_waits_for_seconds_and_is_not_repeated(compute: Compute) -> None:
    adapter = clients(connect_retries=2).adapter(compute.session(), "compute", "2.1", None, is_hurried=True)
    compute.drops = 1
    with pytest.raises(exceptions.ConnectFailure):
        adapter.get("/servers")
    assert len(compute.requests) == 1
    limits = {None: 10.0, 60.0: 10.0, 3.0: 3.0}
    assert {timeout: ServiceOptions(timeout=timeout).hurried().timeout for timeout in limits} == limits


@pytest.mark.parametrize("creates", [True, False])
def test_a_put_that_creates_is_not_repeated(compute: Compute, *, creates: bool) -> None:
    service = Service(clients(connect_retries=1).adapter(compute.session(), "compute", "2.1", None))
    compute.drops = 1
    if creates:
        with pytest.raises(RetryableError, match="no connection"):
            service.put("/servers", {}, creates=True)
    else:
        service.put("/servers", {})
    assert len(compute.requests) == (1 if creates else 2)


@pytest.mark.parametrize("path", ["", "/", "/v2.1"])
def test_an_address_wins_over_the_catalog(compute: Compute, path: str) -> None:
    nowhere = Session(auth=CallerAccess("token", "ann", "p1", "[]").auth())
    adapter = clients(endpoint_override=f"{compute.url}{path}").adapter(nowhere, "compute", "2.1", "2.4")
    adapter.get("/servers")
    assert compute.requests == [("GET", "/v2.1/servers", "2.4")]


def test_a_region_without_the_service_has_none(compute: Compute) -> None:
    with pytest.raises(NoSuchService, match="in there region not found"):
        clients(region_name="there").adapter(compute.session(), "compute", "2.1", "2.4")
    adapter = clients(region_name="there").adapter(
        compute.session(("here", "there")), "compute", "2.1", "2.4"
    )
    assert adapter.get("/servers").status_code == 200


def test_a_service_that_is_unavailable_is_no_missing_one(compute: Compute) -> None:
    session = compute.session()
    compute.close()
    with pytest.raises((ServiceUnavailable, exceptions.ConnectFailure)):
        clients(connect_retries=0).adapter(session, "compute", "2.1", "2.4").get("/servers")


@pytest.mark.parametrize("status", [200, 404, 503])
@pytest.mark.parametrize("is_in_catalog", [True, False])
def test_a_service_that_does_not_show_its_versions_is_called_again(
    compute: Compute, status: int, *, is_in_catalog: bool
) -> None:
    options: Json = {} if is_in_catalog else {"endpoint_override": compute.url}
    session = compute.session(path="")
    compute.shows_versions = False
    compute.status = status
    with pytest.raises(ServiceUnavailable, match="compute: .*does not say that it has version 2.1"):
        clients(**options).adapter(session, "compute", "2.1", None)
    compute.shows_versions = True
    compute.status = 200
    adapter = clients(**options).adapter(session, "compute", "2.1", None)
    compute.requests.clear()
    adapter.get("/servers")
    assert [path for _, path, _ in compute.requests] == ["/v2.1/servers"]


def test_swift_gets_no_request_for_versions_that_it_does_not_list(compute: Compute) -> None:
    nowhere = Session(auth=CallerAccess("token", "ann", "p1", "[]").auth())
    options = ServiceOptions(endpoint_override=f"{compute.url}/v1/AUTH_%(project_id)s")
    objects = ServiceClients(ClientOptions(services={"object-store": options}))
    adapter = objects.adapter(nowhere, "object-store", "1", None)
    assert compute.requests == []
    adapter.get("/container")
    assert compute.requests == [("GET", "/v1/AUTH_p1/container", None)]
    for session in (nowhere, compute.session()):
        with pytest.raises(NoSuchService):
            ServiceClients(ClientOptions()).adapter(session, "object-store", "1", None)


def test_a_service_may_have_certificates_of_its_own(secure: tuple[Compute, pathlib.Path]) -> None:
    service, certificate = secure
    session = service.session()
    trusting = clients(verify=str(certificate)).adapter(session, "compute", "2.1", "2.4")
    trusting.get("/servers")
    clients(verify=False).adapter(session, "compute", "2.1", "2.4").get("/servers")
    assert len(service.requests) == 2
    with pytest.raises(exceptions.SSLError):
        clients().adapter(session, "compute", "2.1", "2.4").get("/servers")
    by_session = service.session(verify=str(certificate))
    assert clients().adapter(by_session, "compute", "2.1", "2.4").get("/servers").status_code == 200


def test_certificates_of_a_service_are_not_those_for_keystone(secure: tuple[Compute, pathlib.Path]) -> None:
    service, certificate = secure
    session = service.session()
    adapter = clients(verify=str(certificate)).adapter(session, "compute", "2.1", None)
    assert session.verify is True
    assert adapter.get_token() == "token"
    assert adapter.get_project_id() == "p1"


def test_a_silent_service_is_not_waited_for_longer_than_its_option_says(compute: Compute) -> None:
    compute.gate.clear()
    adapter = clients(timeout=0.2, connect_retries=0).adapter(compute.session(), "compute", "2.1", None)
    with pytest.raises(exceptions.ConnectTimeout):
        adapter.get("/servers")
