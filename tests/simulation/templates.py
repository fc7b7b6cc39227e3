"""Random templates and environments, and random changes of them."""

import copy
import json
import random
import typing
from dataclasses import dataclass, field

Json = typing.Any


LEAF = "file:///leaf.yaml"
BRANCH = "file:///branch.yaml"
"""Templates of stacks inside of a stack; a branch may have leaves."""


@dataclass(frozen=True)
class RandomGoal:
    """The goal of a stack.

    :ivar files: templates of what is nested in it, by their names.
    """

    template: Json
    environment: Json = field(default_factory=dict)
    files: Json = field(default_factory=dict)

    @property
    def resources(self) -> Json:
        """Return the resources of the template."""
        return self.template["resources"]


NOTHING = RandomGoal({"heat_template_version": "2018-08-31", "resources": {}})
"""The goal that a stack is rolled back to that was never complete."""


def random_goal(dice: random.Random, *, nested: bool = False) -> RandomGoal:
    """A random graph: each resource needs some of the earlier ones.

    :param nested: some of the resources are stacks.
    """
    names = [f"r{index}" for index in range(dice.randint(1, 9))]
    resources = _random_graph(names, dice)
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    environment = _environment(names, dice)
    if not nested:
        _ask(template)
        return RandomGoal(template, environment)
    files = {LEAF: _inner(dice), BRANCH: _inner(dice)}
    _nest(resources, [LEAF, BRANCH], dice)
    _nest(files[BRANCH]["resources"], [LEAF], dice)
    _ask(template)
    return RandomGoal(template, environment, {name: json.dumps(body) for name, body in files.items()})


def is_nested(resource: Json) -> bool:
    """Return whether a resource of a template is a stack."""
    return bool(resource["type"] in (LEAF, BRANCH))


def _random_graph(names: list[str], dice: random.Random) -> Json:
    resources: Json = {}
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
        resources[name] = {"type": "Sim::Server", "properties": properties}
    _share(resources)
    return resources


def _share(resources: Json) -> None:
    """Let some of the later ones use what some of the earlier ones offer, without a reference.

    The dice are of its own, for the order of the schedule's dice has to stay.
    """
    dice = random.Random(json.dumps(resources))
    names = list(resources)
    middle = len(names) // 2
    for index, name in enumerate(names):
        if dice.random() < 0.7:
            definition = resources[name]
            shared = dice.choice(["net", "net", "disk"])
            if index < middle:
                definition["properties"]["offers"] = shared
            else:
                definition["type"] = "Sim::Client"
                definition["properties"]["uses"] = shared


def _ask(template: Json) -> None:
    """Let outputs show who uses some of the resources, which changes after they are made; dice as above."""
    dice = random.Random(json.dumps(template["resources"]))
    names = [
        n
        for n, definition in template["resources"].items()
        if not is_nested(definition) and dice.random() < 0.3
    ]
    template["outputs"] = {name: {"value": {"get_attr": [name, "users"]}} for name in names}


def _inner(dice: random.Random) -> Json:
    """A template with some servers; the first one is what the stack's resource would be if it were none."""
    resources = _random_graph([f"s{index}" for index in range(dice.randint(1, 3))], dice)
    resources["s0"]["properties"].update(needs={"get_param": "needs"}, value={"get_param": "value"})
    return {
        "heat_template_version": "2018-08-31",
        "parameters": {
            "needs": {"type": "json", "default": []},
            "value": {"type": "string", "default": ""},
        },
        "resources": resources,
        "outputs": {"address": {"value": {"get_attr": ["s0", "address"]}}},
    }


def _nest(resources: Json, names: list[str], dice: random.Random) -> None:
    """Make stacks of some of the resources."""
    for name, resource in resources.items():
        if name != "s0" and dice.random() < 0.3:
            outputs = {
                key: resource["properties"][key]
                for key in ("needs", "value")
                if key in resource["properties"]
            }
            resources[name] = {"type": dice.choice(names), "properties": outputs}


def _environment(names: list[str], dice: random.Random) -> Json:
    """Some resources may take a limited time only: shorter than others let them wait."""
    limited = [name for name in names if dice.random() < 0.25]
    limits = {name: {"timeout": dice.randint(2, 15), "retries": dice.randint(0, 4)} for name in limited}
    return {"resource_registry": {"resources": limits}} if limits else {}


def mutated(goal: RandomGoal, dice: random.Random) -> RandomGoal:
    """The goal with some of its resources changed, one way or the other, or gone; or another one."""
    if dice.random() < 0.3:
        return random_goal(dice, nested=bool(goal.files))
    document = copy.deepcopy(goal.template)
    if dice.random() < 0.3:
        document["resources"] = _without_one(document["resources"], dice)
    _change(document["resources"], dice)
    _ask(document)
    files = {name: json.loads(text) for name, text in goal.files.items()}
    for body in files.values():
        if dice.random() < 0.5:
            _change(body["resources"], dice)
    return RandomGoal(document, goal.environment, {name: json.dumps(body) for name, body in files.items()})


def _change(resources: Json, dice: random.Random) -> None:
    for resource in resources.values():
        properties = resource["properties"]
        odds = dice.random()
        if odds < 0.2:
            properties.update({} if is_nested(resource) else {"size": dice.randint(1, 3)})
        elif odds < 0.4 and not isinstance(properties.get("value"), dict):
            properties["value"] = str(dice.randint(1, 3))
        elif odds < 0.5 and not is_nested(resource):
            properties.update(fail=False, endless=False)
    _lose_answers(resources)


def _lose_answers(resources: Json) -> None:
    """Let the cloud carry out some of the updates without an answer; dice as above."""
    dice = random.Random(json.dumps(resources))
    for resource in resources.values():
        if not is_nested(resource) and dice.random() < 0.4:
            resource["properties"].update(unanswered=True, value=str(dice.randint(4, 9)))


def _without_one(resources: Json, dice: random.Random) -> Json:
    """Without one of the resources, and those that need it."""
    removed = {dice.choice(list(resources))} if resources else set()
    for name, resource in resources.items():
        if any(need["get_resource"] in removed for need in resource["properties"]["needs"]):
            removed.add(name)
    return {name: resource for name, resource in resources.items() if name not in removed}
