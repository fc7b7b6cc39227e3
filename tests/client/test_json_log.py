"""The log in JSON, as oslo.log writes it."""

import json
import pathlib
import re
import typing
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.templates import one, template

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "observation.md"
SECRET = "s3cret-of-a-stack"
TEMPLATE = template(
    {"r": one(value={"get_param": "password"})},
    parameters={"password": {"type": "string", "hidden": True}},
)


@pytest.fixture
def service(tmp_path: pathlib.Path) -> Iterator[Service]:
    """A Stoker with the options of the page, and all that is logged for developers."""
    [options] = re.findall(r"^    (\[DEFAULT\]\n    use_json = .*)$", PAGE.read_text(), re.MULTILINE)
    config = tmp_path / "json.conf"
    config.write_text(re.sub(r"(?m)^    ", "", options) + "\ndebug = true\n")
    running = Service(tmp_path, conductors=1, config=config)
    yield running
    running.stop()


def entries(service: Service) -> list[dict[str, typing.Any]]:
    """Return the objects that are logged so far."""
    lines = service.process.text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_each_line_of_the_log_is_an_object_with_request_project_and_stack(service: Service) -> None:
    body = {"stack_name": "s", "template": TEMPLATE, "parameters": {"password": SECRET}}
    answer = service.call("POST", "/v1/demo/stacks", body)
    stack_id = answer.body["stack"]["id"]
    assert service.settled(f"/v1/demo/stacks/s/{stack_id}")["stack_status"] == "CREATE_COMPLETE"
    [started] = [entry for entry in entries(service) if "CREATE started" in entry["message"]]
    keys = ("request_id", "project_id", "stack_id")
    expected = (answer.headers["X-Openstack-Request-Id"], "demo", stack_id)
    assert tuple(started["context"][key] for key in keys) == expected
    assert started["levelname"] == "INFO"
    assert started["name"].startswith("stoker.")
    # The arguments of a message are in the object, too.
    assert SECRET not in service.process.text()
    plain_lines = [line for line in service.process.text().splitlines() if re.match(r"\d{4}-\d\d-\d\d", line)]
    assert plain_lines == []
