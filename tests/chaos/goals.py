"""Random goals of stacks: templates of items in the ledger, and the items that must be there in the end."""

import dataclasses
import json
import random
import typing
from collections.abc import Mapping

Json = typing.Any
CHILD = "child.yaml"
HANDLE = "handle"
SERVER = "server"
ANSWER = "answer"
"""The output that a guest signals."""
HOLDS = "holds"
WAITS = "waits"
DEPLOYS = "deploys"
CFN_SHARE = 0.25
"""Share of the goals whose template is one of CloudFormation's."""


@dataclasses.dataclass(frozen=True)
class Goal:
    """A goal of a stack.

    :ivar number: grows with each goal of a client.
    :ivar body: the parts of a request: template, files, environment, parameters.
    :ivar values: values of the items by their labels, once the stack is complete.
    :ivar ends: whether it can be complete by itself: nothing fails, is held or waits for a signal.
    :ivar trait: plain, fails, endless, holds, waits or deploys.
    """

    number: int
    body: Mapping[str, Json]
    values: Mapping[str, str]
    trait: str = "plain"

    @property
    def ends(self) -> bool:
        """Return whether it can be complete without further requests."""
        return self.trait == "plain"


class Goals:
    """A source of goals for the stacks of a client.

    :param chosen_by: the client's own random numbers.
    """

    def __init__(self, chosen_by: random.Random) -> None:
        self._random = chosen_by
        self._number = 0

    def next(self, stack: str, *, trait: str = "plain") -> Goal:
        """Return a new goal for a stack of this name."""
        self._number += 1
        values: dict[str, str] = {}
        resources = self._items(stack, values, count=self._random.randint(2, 6))
        files = {}
        if self._random.random() < 0.4:
            child = f"{stack}/child"
            child_items = self._items(child, values, count=self._random.randint(1, 4))
            files[CHILD] = json.dumps(_template(child_items))
            resources["child"] = {"type": CHILD, "properties": {"goal": self._number}, "depends_on": ["r0"]}
        environment = self._with_trait(trait, resources)
        is_amazons = self._random.random() < CFN_SHARE
        body = {
            "template": cloudformation_template(resources) if is_amazons else _template(resources),
            "files": files,
            "environment": environment,
            "parameters": {"goal": self._number},
        }
        return Goal(self._number, body, values, trait)

    def _items(self, path: str, values: dict[str, str], *, count: int) -> dict[str, Json]:
        """Return items of which each needs up to two earlier ones; note the items that they make."""
        resources: dict[str, Json] = {}
        for index in range(count):
            earlier = self._random.sample(range(index), min(index, self._random.randint(0, 2)))
            label = f"{path}/r{index}"
            value = f"{self._number if self._random.random() < 0.5 else 'same'}-{index}"
            edition = str(self._number) if self._random.random() < 0.15 else ""
            values[label] = value
            properties = {
                "label": label,
                "value": value,
                "edition": edition,
                "seconds": self._random.choice([0, 0, 0.5, 2]),
                "inputs": [{"get_resource": f"r{number}"} for number in earlier],
            }
            resources[f"r{index}"] = {"type": "Chaos::Item", "properties": properties}
        return resources

    def _with_trait(self, trait: str, resources: dict[str, Json]) -> Json:
        """Change the last item so that the stack does not end well by itself; return the environment."""
        last = max(name for name in resources if name != "child")
        if trait == "fails":
            resources[last]["properties"]["fails"] = True
        elif trait == "endless":
            resources[last]["properties"] |= {"seconds": -1, "edition": f"endless-{self._number}"}
        elif trait == HOLDS:
            return {"resource_registry": {"resources": {last: {"hooks": ["pre-create", "pre-update"]}}}}
        elif trait == WAITS:
            resources[HANDLE] = {"type": "OS::Heat::WaitConditionHandle"}
            properties = {"handle": {"get_resource": HANDLE}, "count": 1, "timeout": 600}
            resources["wait"] = {"type": "OS::Heat::WaitCondition", "properties": properties}
            resources[last]["depends_on"] = ["wait"]
        elif trait == DEPLOYS:
            resources |= self._deployment()
            resources[last]["depends_on"] = ["deployment"]
        return {}

    def _deployment(self) -> dict[str, Json]:
        """Return a server with a config that its guest applies."""
        config = {"group": "script", "config": f"echo {self._number}", "outputs": [{"name": ANSWER}]}
        deployment = {
            "config": {"get_resource": "config"},
            "server": {"get_resource": SERVER},
            "signal_transport": self._random.choice(["CFN_SIGNAL", "TEMP_URL_SIGNAL"]),
        }
        return {
            "config": {"type": "OS::Heat::SoftwareConfig", "properties": config},
            SERVER: {
                "type": "OS::Heat::DeployedServer",
                "properties": {"software_config_transport": "POLL_TEMP_URL"},
            },
            "deployment": {"type": "OS::Heat::SoftwareDeployment", "properties": deployment},
        }


def _template(resources: Json) -> Json:
    parameters = {"goal": {"type": "number"}}
    return {"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources}


AMAZONS: Mapping[str, str] = {
    "OS::Heat::WaitConditionHandle": "AWS::CloudFormation::WaitConditionHandle",
    "OS::Heat::WaitCondition": "AWS::CloudFormation::WaitCondition",
}
AMAZONS_NAMES: Mapping[str, str] = {"handle": "Handle", "count": "Count", "timeout": "Timeout"}


def cloudformation_template(resources: Json) -> Json:
    """Return resources as a template of CloudFormation's."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"goal": {"Type": "Number"}},
        "Resources": {name: _amazons(resource) for name, resource in resources.items()},
    }


def _amazons(resource: Json) -> Json:
    """Return a resource in CloudFormation's words."""
    kind = resource["type"]
    names = AMAZONS_NAMES if kind in AMAZONS else {}
    properties = {
        names.get(name, name): _with_ref(value) for name, value in resource.get("properties", {}).items()
    }
    parts = {"Type": AMAZONS.get(kind, kind), "Properties": properties}
    if "depends_on" in resource:
        parts["DependsOn"] = resource["depends_on"]
    return parts


def _with_ref(value: Json) -> Json:
    """Return a value with Ref in the place of get_resource."""
    if isinstance(value, list):
        return [_with_ref(item) for item in value]
    if isinstance(value, dict):
        if "get_resource" in value:
            return {"Ref": value["get_resource"]}
        return {name: _with_ref(item) for name, item in value.items()}
    return value
