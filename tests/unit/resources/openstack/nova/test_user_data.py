"""The user_data of servers: the parts that cloud-init and the agents know, and what they do."""

import email
import email.message
import json
import pathlib
import subprocess
import typing

import pytest
from harness.fake_context import FakeContext, target_of
from stoker.resources.contract.errors import PropertyError
from stoker.resources.guests import collect_config
from stoker.resources.openstack.nova.server import Server
from stoker.resources.openstack.nova.user_data import (
    PART_HANDLER,
    RUN_USER_DATA,
    boto_config,
    server_user_data,
)

Json = typing.Any
BOOT = [
    ("text/cloud-config", "cloud-config"),
    ("text/cloud-boothook", "boothook.sh"),
    ("text/part-handler", "part-handler.py"),
]
FILES = "text/x-cfninitdata"


def user_data(metadata: Json = None, **properties: Json) -> str:
    target = target_of(Server(), {"flavor": "f", "image": "i", **properties}, metadata=metadata or {})
    return server_user_data(target, FakeContext())


def parts(text: str) -> list[email.message.Message]:
    message = email.message_from_string(text)
    assert message.is_multipart()
    return typing.cast(list[email.message.Message], message.get_payload())


def kinds(text: str) -> list[tuple[str, str | None]]:
    return [(part.get_content_type(), part.get_filename()) for part in parts(text)]


def content(text: str, filename: str | None) -> str:
    [part] = [part for part in parts(text) if part.get_filename() == filename]
    raw = part.get_payload(decode=True)
    assert isinstance(raw, bytes)
    return raw.decode()


def test_raw_is_passed_as_it_is() -> None:
    assert user_data(user_data="#!/bin/sh\n", user_data_format="RAW") == "#!/bin/sh\n"
    assert user_data(user_data_format="RAW") == ""


def test_cfntools_get_the_script_the_metadata_and_the_address() -> None:
    text = user_data({"AWS::CloudFormation::Init": {"a": 1}}, user_data="#!/bin/sh\necho ä\n")
    assert kinds(text) == [
        *BOOT,
        (FILES, "cfn-userdata"),
        ("text/x-shellscript", "loguserdata.sh"),
        (FILES, "cfn-init-data"),
        (FILES, "cfn-metadata-server"),
        (FILES, "cfn-boto-cfg"),
    ]
    assert content(text, "cfn-userdata") == "#!/bin/sh\necho ä\n"
    assert json.loads(content(text, "cfn-init-data")) == {"AWS::CloudFormation::Init": {"a": 1}}
    assert content(text, "cfn-metadata-server") == FakeContext().guest_access().metadata_url
    assert "cfn_region_endpoint = api.test" in content(text, "cfn-boto-cfg").splitlines()
    # It is Heat's default, and without metadata there is no such part.
    assert (FILES, "cfn-init-data") not in kinds(user_data())


def test_the_boto_configuration_follows_the_address() -> None:
    assert "is_secure = 1" in boto_config("https://h:8000/v1/").splitlines()
    assert "is_secure = 0" in boto_config("http://h:8000/v1/").splitlines()


@pytest.mark.parametrize("transport", ["POLL_SERVER_CFN", "POLL_TEMP_URL"])
def test_software_config_says_where_the_deployments_are(transport: str) -> None:
    properties = {"user_data_format": "SOFTWARE_CONFIG", "software_config_transport": transport}
    text = user_data({"role": "web"}, user_data="#!/bin/sh\n", **properties)
    assert kinds(text) == [*BOOT, ("text/plain", None), (FILES, "cfn-init-data")]
    assert content(text, None) == "#!/bin/sh\n"
    metadata = json.loads(content(text, "cfn-init-data"))
    assert (metadata["role"], metadata["deployments"]) == ("web", [])
    assert metadata["os-collect-config"] == collect_config(transport, FakeContext().guest_access(), ("ec2",))
    # A repeated creation gives the server the same.
    assert user_data({"role": "web"}, user_data="#!/bin/sh\n", **properties) == text


def test_the_parts_of_a_message_become_parts_of_it() -> None:
    inner = user_data(user_data="#!/bin/sh\necho ä\n")
    text = user_data(user_data=inner, user_data_format="SOFTWARE_CONFIG")
    assert kinds(text) == [*BOOT, *kinds(inner), (FILES, "cfn-init-data")]
    assert content(text, "cfn-userdata") == "#!/bin/sh\necho ä\n"


@pytest.mark.parametrize("transport", ["ZAQAR_MESSAGE"])
def test_transports_that_need_other_services_are_refused_where_they_matter(transport: str) -> None:
    properties = {"flavor": "f", "image": "i", "software_config_transport": transport, "networks": None}
    with pytest.raises(PropertyError, match=f"{transport} is not supported: it needs"):
        Server().validate({**properties, "user_data_format": "SOFTWARE_CONFIG"})
    Server().validate({**properties, "user_data_format": "RAW"})


def test_the_part_handler_writes_files(tmp_path: pathlib.Path) -> None:
    handler: dict[str, Json] = {}
    exec(compile(PART_HANDLER, "part-handler.py", "exec"), handler)
    handler["DIRECTORIES"] = (str(tmp_path / "one"), str(tmp_path / "two"))
    assert handler["list_types"]() == [FILES]
    for kind in ("__begin__", "__end__", "text/plain"):
        handler["handle_part"](None, kind, "ignored", "")
    handler["handle_part"](None, FILES, "cfn-init-data", '{"a": "ä"}')
    handler["handle_part"](None, FILES, "../../cfn-boto-cfg", b"bytes")
    for name in ("one", "two"):
        written = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        assert written == {"cfn-init-data": '{"a": "ä"}'.encode(), "cfn-boto-cfg": b"bytes"}
        assert (tmp_path / name / "cfn-init-data").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [
        ("#!/bin/sh\necho made; exit 0\n", 0, "made"),
        ("#!/bin/sh\necho broken >&2; exit 3\n", 3, "broken"),
        ("", 0, "Userdata empty or not executable"),
        ("#cloud-config\nexit: 3\n", 0, "Userdata empty or not executable"),
    ],
)
def test_the_script_of_the_user_is_run_and_logged(
    tmp_path: pathlib.Path, script: str, code: int, printed: str
) -> None:
    (tmp_path / "cfn-userdata").write_text(script)
    program = RUN_USER_DATA.replace("/var/lib/heat-cfntools", str(tmp_path))
    program = program.replace("/var/log", str(tmp_path))
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done
    log = (tmp_path / "heat-provision.log").read_text()
    assert printed in log.splitlines()
    assert printed in done.stdout.splitlines()
    assert (tmp_path / "provision-finished").exists() == (code == 0)
