"""Random templates and environments, and random changes of them."""

import copy
import random
import typing
from dataclasses import dataclass, field

Json = typing.Any


@dataclass(frozen=True)
class RandomGoal:
    """What a stack shall be."""

    template: Json
    environment: Json = field(default_factory=dict)

    @property
    def resources(self) -> Json:
        """Of the template."""
        return self.template["resources"]


NOTHING = RandomGoal({"heat_template_version": "2018-08-31", "resources": {}})
"""What a stack is rolled back to that was never complete."""


def random_goal(dice: random.Random) -> RandomGoal:
    """A random graph: each resource stands on some of the earlier ones."""
    names = [f"r{index}" for index in range(dice.randint(1, 9))]
    found: Json = {}
    for index, name in enumerate(names):
        below = dice.sample(names[:index], k=min(index, dice.choice([0, 0, 1, 1, 2, 3])))
        properties: Json = {
            "needs": [{"get_resource": other} for other in below],
            "looks": dice.choice([1, 1, 1, 2, 3]),
            "after": dice.choice([0, 0, 0.5, 2]),
            "flaky": dice.choice([0, 0, 0, 0, 0, 0, 1, 2]),
        }
        if below:
            properties["value"] = {"get_attr": [below[0], "address"]}
        odds = dice.random()
        properties["fail"] = odds < 0.02
        if odds > 0.985:
            properties.update(endless=True, after=20)
        if dice.random() < 0.04:
            properties["hangs"] = [dice.choice(["create", "made", "look", "update", "delete"])]
        found[name] = {"type": "Sim::Server", "properties": properties}
    return RandomGoal({"heat_template_version": "2018-08-31", "resources": found}, _environment(names, dice))


def _environment(names: list[str], dice: random.Random) -> Json:
    """Some resources may take a limited time only: shorter than others let them wait."""
    limited = [name for name in names if dice.random() < 0.25]
    limits = {name: {"timeout": dice.randint(2, 15), "retries": dice.randint(0, 4)} for name in limited}
    return {"resource_registry": {"resources": limits}} if limits else {}


def mutated(goal: RandomGoal, dice: random.Random) -> RandomGoal:
    """The goal with some of its resources changed, one way or the other, or gone; or another one."""
    if dice.random() < 0.3:
        return random_goal(dice)
    found = copy.deepcopy(goal.template)
    if dice.random() < 0.3:
        found["resources"] = _without_one(found["resources"], dice)
    for resource in found["resources"].values():
        properties = resource["properties"]
        odds = dice.random()
        if odds < 0.2:
            properties["size"] = dice.randint(1, 3)
        elif odds < 0.4 and not isinstance(properties.get("value"), dict):
            properties["value"] = str(dice.randint(1, 3))
        elif odds < 0.5:
            properties.update(fail=False, endless=False)
    return RandomGoal(found, goal.environment)


def _without_one(resources: Json, dice: random.Random) -> Json:
    """Without one of the resources, and those that stand on it."""
    gone = {dice.choice(list(resources))} if resources else set()
    for name, resource in resources.items():
        if any(need["get_resource"] in gone for need in resource["properties"]["needs"]):
            gone.add(name)
    return {name: resource for name, resource in resources.items() if name not in gone}
