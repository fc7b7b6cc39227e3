"""The templates of which the reference of types has its examples, on the services of their types."""

import pathlib
import typing
import uuid
from collections.abc import Mapping

import pytest
from cloud import type_templates
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.scripted_service import Answer, serving

Json = typing.Any
SERVICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "stacks": {
        "alarms": ("alarms",),
        "aws_balancer": ("balancers",),
        "aws_groups": (),
        "aws_servers": (),
        "aws_signals": (),
        "compute": (),
        "engine": (),
        "keys": ("secrets",),
        "load_balancer": ("balancers", "alarms"),
        "names": ("names",),
        "network": (),
        "objects": ("objects",),
        "software": (),
    },
    "operator_stacks": {
        "compute_operator": (),
        "identity": (),
        "load_balancer_operator": ("balancers",),
        "network_operator": (),
        "shares": ("shares",),
    },
}
"""The fixtures of services that the cloud has on demand, by template, for users and for operators."""
ELSEWHERE = {"messages", "workflows"}
"""Templates with a test of their own; that of messages is with the other tests of Zaqar."""
SERVER, *METRICS = (str(uuid.UUID(int=number)) for number in range(1, 4))
CASES = [
    pytest.param(stacks, services, name, id=name)
    for stacks, templates in SERVICES.items()
    for name, services in templates.items()
]


def test_each_template_is_run() -> None:
    names = {name for templates in SERVICES.values() for name in templates}
    assert names | ELSEWHERE == set(type_templates.template_names())


@pytest.mark.parametrize(("stacks_fixture", "services", "name"), CASES)
def test_a_template_lives(
    request: pytest.FixtureRequest, stacks_fixture: str, services: tuple[str, ...], name: str
) -> None:
    stacks: Stacks = request.getfixturevalue(stacks_fixture)
    for service in services:
        request.getfixturevalue(service)
    with serving() as web:
        web.answers["GET /renderer.img"] = Answer(200, "no image at all")
        parameters: Mapping[str, Json] = {
            "alarms": {"server": SERVER, "metrics": METRICS},
            "compute_operator": {"location": f"{web.url}/renderer.img"},
        }
        type_templates.live(stacks, name, parameters.get(name, {}))


@pytest.mark.usefixtures("workflows")
def test_workflows_of_a_template(cloud: Cloud, project: Project, tmp_path: pathlib.Path) -> None:
    """A trigger makes a trust with the token of the stack's."""
    with stoker_on(cloud, tmp_path, "[stacks]\nallow_trusts_redelegation = true\n") as stoker:
        stacks = Stacks(stoker, project)
        type_templates.live(stacks, "workflows", remaining=["executions"])
