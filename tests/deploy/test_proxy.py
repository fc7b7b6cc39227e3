"""The API behind the examples of doc/install.md: TLS by HAProxy, and the processes of uWSGI."""

import json
import pathlib
import sys
import typing
from collections.abc import Iterator

import pytest
import requests
from client.serving import Service
from deploy.test_install import blocks
from harness.certificates import write_certificate
from harness.deployment import call
from harness.haproxy import HAProxy
from harness.installation import set_up
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.programs import BIN, run
from harness.templates import template
from harness.waiting import wait_for

ROOT = pathlib.Path(__file__).parents[2]
TEMPLATE = template({"one": {"type": "OS::Heat::None"}})


class Front:
    """A Stoker behind HAProxy.

    :ivar url: the address with TLS.
    :ivar certificate: the file by which clients verify it.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        port = free_port()
        self.url = f"https://{HOST}:{port}"
        self.certificate = folder / "orchestration.pem"
        write_certificate(self.certificate, HOST)
        config = folder / "tls.conf"
        config.write_text(
            f"[api]\npublic_url = {self.url}\nmax_connections_per_address = 0\n[metrics]\napi = true\n"
        )
        self.service = Service(folder, conductors=1, config=config)
        self.proxy = HAProxy(
            ROOT / "etc" / "haproxy" / "tls.cfg",
            {
                "127.0.0.1:80\n": "FRONTEND\n",
                "127.0.0.1:443": f"{HOST}:{port}",
                "/etc/haproxy/orchestration.pem": str(self.certificate),
                "10.0.0.1:8004": self.service.url.removeprefix("http://"),
                "10.0.0.2:8004": self.service.url.removeprefix("http://"),
            },
        )

    def ask(self, method: str, path: str, **options: typing.Any) -> requests.Response:
        """Send a request over TLS; redirects are not followed."""
        verify = str(self.certificate)
        return requests.request(
            method, self.url + path, verify=verify, timeout=60, allow_redirects=False, **options
        )

    def answers(self) -> bool:
        """Return whether the proxy has found the API healthy."""
        return self.ask("GET", "/healthcheck").status_code == 200


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    started = Front(tmp_path_factory.mktemp("tls"))
    try:
        with started.proxy:
            wait_for(started.answers, 60)
            yield started
    finally:
        started.service.stop()


def test_links_and_redirects_lead_to_the_address_with_tls(front: Front) -> None:
    answer = front.ask("POST", "/v1/t/stacks", json={"stack_name": "s", "template": TEMPLATE})
    assert answer.status_code == 201, answer.text
    [link] = answer.json()["stack"]["links"]
    assert link["href"].startswith(f"{front.url}/v1/t/stacks/s/")
    # A client may say what it likes.
    headers = {"Forwarded": "proto=ftp;host=evil.example.org", "X-Forwarded-Proto": "http"}
    answer = front.ask("GET", "/v1/t/stacks/s", headers=headers)
    assert (answer.status_code, answer.headers["Location"]) == (302, link["href"])
    assert answer.headers["Strict-Transport-Security"]


def test_the_client_creates_a_stack_over_tls(front: Front, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(json.dumps(TEMPLATE))
    access = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": f"{front.url}/v1/t", "OS_CACERT": str(front.certificate)}
    command = [BIN / "openstack", "stack", "create", "--wait", "-t", path, "client", "-f", "json"]
    outcome = run(command, env={**access, "PYTHONWARNINGS": "ignore"})
    assert outcome.returncode == 0, outcome.stderr
    assert "CREATE_COMPLETE" in outcome.stdout


def test_a_request_without_tls_is_repeated_with_it(front: Front) -> None:
    answer = requests.post(f"{front.proxy.url}/v1/t/stacks?a=b", timeout=60, allow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["Location"].startswith("https://")
    assert answer.headers["Location"].endswith("/v1/t/stacks?a=b")


def test_the_metrics_are_not_public(front: Front) -> None:
    assert call(front.service.url, "GET", "/healthcheck")[0] == 200
    assert requests.get(f"{front.service.url}/metrics", timeout=60).status_code == 200
    assert front.ask("GET", "/metrics").status_code == 404


@pytest.fixture
def uwsgi(tmp_path: pathlib.Path) -> Iterator[tuple[str, Process]]:
    """The API's address under uWSGI with the configuration of the page, and the master process."""
    [text] = [block for block in blocks("The API under another WSGI server") if "[uwsgi]" in block]
    port = free_port()
    replacements = {":8004": f"{HOST}:{port}", "/opt/stoker": sys.prefix, "processes = 4": "processes = 2"}
    for original, replacement in replacements.items():
        assert original in text
        text = text.replace(original, replacement)
    path = tmp_path / "uwsgi.ini"
    path.write_text(text)
    config = set_up(tmp_path)
    environment = {"STOKER_CONFIG_FILE": str(config), "PYTHONWARNINGS": "ignore"}
    process = Process([BIN / "uwsgi", "--ini", path], log=tmp_path / "uwsgi.log", env=environment)
    try:
        process.wait_for_text("spawned uWSGI worker 2", 120)
        yield f"http://{HOST}:{port}", process
    finally:
        process.kill()


def test_the_processes_of_uwsgi_serve_and_log_no_query(uwsgi: tuple[str, Process]) -> None:
    url, process = uwsgi
    document = {"stack_name": "s", "template": TEMPLATE}
    assert call(url, "POST", "/v1/t/stacks?Signature=s3cret", document)[0] == 201
    status, answer = call(url, "GET", "/v1/t/stacks")
    assert (status, [stack["stack_name"] for stack in answer["stacks"]]) == (200, ["s"])
    process.wait_for_text("GET /v1/t/stacks HTTP/1.1 200")
    assert "POST /v1/t/stacks HTTP/1.1 201" in process.text()
    assert "s3cret" not in process.text()
    assert process.stop() == 0
