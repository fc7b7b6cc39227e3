"""The API under somebody else's WSGI server."""

import pathlib
import subprocess
import sys

import pytest
from harness.deployment import call
from harness.ports import free_port
from harness.processes import Process, ProcessEnded
from stoker.db.sealing import Sealer

SERVE = """
import sys
from wsgiref.simple_server import make_server
from stoker.cli.wsgi import application
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""
CONFIG = """\
[DEFAULT]
transport_url = kombu+memory://
[database]
connection = sqlite:///{folder}/stoker.sqlite
[api]
auth_strategy = none
[secrets]
key = {key}
"""
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"a": {"type": "OS::Heat::None"}}}


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "stoker.conf"
    path.write_text(CONFIG.format(folder=tmp_path, key=Sealer.generate_key()))
    return path


def serve(folder: pathlib.Path, config: pathlib.Path, port: int) -> Process:
    environment = {"STOKER_CONFIG_FILE": str(config), "PYTHONWARNINGS": "ignore"}
    return Process([sys.executable, "-c", SERVE, str(port)], log=folder / "log", env=environment)


def test_the_application_serves(tmp_path: pathlib.Path, config: pathlib.Path) -> None:
    manage = pathlib.Path(sys.executable).parent / "stoker-manage"
    subprocess.run([manage, "--config-file", config, "db", "sync"], check=True, capture_output=True)
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


def test_a_configuration_that_is_wrong_ends_the_server(tmp_path: pathlib.Path, config: pathlib.Path) -> None:
    port = free_port()
    server = serve(tmp_path, config, port)
    with pytest.raises(ProcessEnded, match="stoker-manage db sync"):
        server.wait_for_port(port)
