"""The real ``openstack`` client against one running Stoker; each test has a project of its own."""

import itertools
import pathlib
from collections.abc import Iterator

import pytest
from client.commands import OpenStack
from client.serving import PATIENT, Service

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("client"), conductors=2, env=PATIENT)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def openstack(service: Service, tmp_path: pathlib.Path) -> Iterator[OpenStack]:
    yield OpenStack(service, f"customer{next(_NUMBERS)}", tmp_path)
    service.check_statements()


@pytest.fixture(scope="module")
def demo(service: Service, tmp_path_factory: pytest.TempPathFactory) -> OpenStack:
    """A client whose project has the stack "demo"; for commands that change nothing."""
    client = OpenStack(service, f"customer{next(_NUMBERS)}", tmp_path_factory.mktemp("demo"))
    environment = client.file("environment.yaml", "parameters: {word: hello, secret: s3cret}\n")
    client.run("stack", "create", "demo", "-t", client.file("demo.yaml", DEMO), "-e", environment, *WAIT)
    return client


WAIT = ("--wait", "--poll", "1")
DEMO = """
heat_template_version: 2018-08-31
description: A stack to look at
parameters:
  word: {type: string, description: Said by all}
  size: {type: number, default: 3}
  secret: {type: string, hidden: true, default: none}
resources:
  first:
    type: OS::Heat::TestResource
    properties: {value: {get_param: word}}
    metadata: {colour: red}
  second:
    type: OS::Heat::TestResource
    properties: {value: {get_attr: [first, output]}}
  handle:
    type: OS::Heat::WaitConditionHandle
outputs:
  said:
    description: What the last one says
    value: {get_attr: [second, output]}
  size:
    value: {get_param: size}
"""
