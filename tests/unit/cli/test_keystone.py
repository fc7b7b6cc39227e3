"""Keystone's middleware in front of the API, and a Keystone that is silent."""

import json
import pathlib
import socket
import typing
import wsgiref.util

import pytest
from oslo_config import cfg
from stoker.cli.wiring.keystone import behind_keystone
from stoker.cli.wiring.service_account import KEYSTONE_ANSWERS_WITHIN

Json = typing.Any


OPTIONS = """\
[keystone_authtoken]
auth_type = password
username = stoker
password = p
project_name = service
user_domain_id = default
project_domain_id = default
"""


def configured(directory: pathlib.Path, url: str = "http://127.0.0.1:1/v3", more: str = "") -> cfg.ConfigOpts:
    path = directory / "stoker.conf"
    path.write_text(f"{OPTIONS}auth_url = {url}\n{more}")
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.StrOpt("auth_strategy", default="keystone"), "api")
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    return conf


def test_the_check_of_a_token_has_a_limit_unless_the_operator_says_otherwise(tmp_path: pathlib.Path) -> None:
    for more, seconds in (("", KEYSTONE_ANSWERS_WITHIN), ("http_connect_timeout = 7\n", 7)):
        conf = configured(tmp_path, more=more)
        behind_keystone(lambda environ, start: [], conf)
        assert conf.keystone_authtoken.http_connect_timeout == seconds


@pytest.mark.timeout(120)
def test_a_keystone_that_is_silent_holds_no_request_forever(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v3"
        limits = "http_connect_timeout = 1\nhttp_request_max_retries = 0\n"
        messages: list[str] = []
        guarded = behind_keystone(lambda environ, start: [], configured(tmp_path, url, limits))
        environ: dict[str, Json] = {"PATH_INFO": "/v1/t/stacks", "HTTP_X_AUTH_TOKEN": "token"}
        wsgiref.util.setup_testing_defaults(environ)
        body = b"".join(guarded(environ, lambda status, headers, info=None: messages.append(status)))
    assert messages == ["503 Service Unavailable"]
    assert json.loads(body)["error"]["type"] == "ServiceUnavailable"
