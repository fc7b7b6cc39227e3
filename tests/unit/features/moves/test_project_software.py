"""Configs and deployments of a tree are of its project, whoever reads the rows of Heat."""

import dataclasses
import typing

import pytest
from stoker.features.moves.heat.rows import HeatConfig, HeatDeployment, HeatResource
from stoker.features.moves.inward.project_software import ProjectSoftware
from stoker.resources.registry import ResourceRegistry

REGISTRY = ResourceRegistry.installed()
CONFIG = HeatConfig("config", "own", "n", "script", {})
DEPLOYMENT = HeatDeployment("deployment", "own", "config", "server", "CREATE", "COMPLETE", "", 0.0)


def resource(physical_id: str) -> HeatResource:
    fields = dict.fromkeys(field.name for field in dataclasses.fields(HeatResource))
    return HeatResource(**{**fields, "physical_id": physical_id})  # type: ignore[arg-type]


def has(software: ProjectSoftware) -> tuple[bool, bool]:
    """Return whether the resources of a config and of a deployment get what they name."""
    return (
        software.has(resource("config"), REGISTRY.get("OS::Heat::SoftwareConfig")),
        software.has(resource("deployment"), REGISTRY.get("OS::Heat::SoftwareDeployment")),
    )


@pytest.mark.parametrize(
    ("config_of", "deployment_of", "elsewhere", "expected"),
    [
        ("own", "own", (), (True, True)),
        ("foreign", "own", (), (False, False)),
        ("own", "foreign", (), (True, False)),
        ("own", "own", ("config",), (False, False)),
        ("own", "own", ("deployment",), (True, False)),
    ],
)
def test_a_thing_of_another_project_or_tree_is_nobodys(
    config_of: str, deployment_of: str, elsewhere: typing.Collection[str], expected: tuple[bool, bool]
) -> None:
    config = dataclasses.replace(CONFIG, project_id=config_of)
    deployment = dataclasses.replace(DEPLOYMENT, project_id=deployment_of)
    assert has(ProjectSoftware("own", [config], [deployment], elsewhere)) == expected


def test_a_type_that_makes_no_such_things_has_none() -> None:
    software = ProjectSoftware("own", [CONFIG], [DEPLOYMENT])
    value = REGISTRY.get("OS::Heat::Value")
    assert not software.has(resource("config"), value)
    assert not software.has(resource("deployment"), value)
