"""The API under somebody else's WSGI server."""

import pathlib
import sys
import urllib.request

import pytest
from harness.deployment import call
from harness.installation import set_up, write_config
from harness.ports import free_port
from harness.processes import Process, ProcessEnded

SERVE = """
import sys
from wsgiref.simple_server import make_server
from stoker.cli.wsgi import application
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"a": {"type": "OS::Heat::None"}}}


def serve(
    folder: pathlib.Path, config: pathlib.Path, port: int, env: dict[str, str] | None = None
) -> Process:
    environment = {"STOKER_CONFIG_FILE": str(config), "PYTHONWARNINGS": "ignore", **(env or {})}
    return Process([sys.executable, "-c", SERVE, str(port)], log=folder / "log", env=environment)


@pytest.mark.commit
def test_the_application_serves(tmp_path: pathlib.Path) -> None:
    config = set_up(tmp_path)
    port = free_port()
    server = serve(tmp_path, config, port)
    try:
        server.wait_for_port(port)
        url = f"http://127.0.0.1:{port}"
        status, answer = call(url, "POST", "/v1/t/stacks", {"stack_name": "s", "template": TEMPLATE})
        assert status == 201, answer
        (link,) = answer["stack"]["links"]
        status, answer = call(url, "GET", link["href"].removeprefix(url))
        assert (status, answer["stack"]["stack_status"]) == (200, "CREATE_IN_PROGRESS")
    finally:
        server.kill()


def test_a_configuration_that_is_wrong_ends_the_server(tmp_path: pathlib.Path) -> None:
    port = free_port()
    server = serve(tmp_path, write_config(tmp_path), port)
    with pytest.raises(ProcessEnded, match="stoker-manage db sync"):
        server.wait_for_port(port)


def test_two_workers_serve_the_metrics_of_both(tmp_path: pathlib.Path) -> None:
    config = set_up(tmp_path, "[metrics]\napi = true\n")
    shared = tmp_path / "figures"
    shared.mkdir()
    ports = [free_port(), free_port()]
    workers = [serve(tmp_path, config, port, {"PROMETHEUS_MULTIPROC_DIR": str(shared)}) for port in ports]
    try:
        for port, worker in zip(ports, workers, strict=True):
            worker.wait_for_port(port)
        for port in (ports[0], ports[1], ports[1]):
            assert call(f"http://127.0.0.1:{port}", "GET", "/v1/t/stacks")[0] == 200
        for port in ports:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                figures = answer.read().decode()
            route = 'method="GET",route="/v1/{tenant_id}/stacks",status="200"'
            assert f"stoker_api_requests_total{{{route}}} 3.0" in figures
    finally:
        for worker in workers:
            worker.kill()
