"""Random breakpoints."""

import random
import typing
from collections.abc import Sequence

Json = typing.Any
OF_DELETIONS = ("pre-delete", "post-delete")
HOOKS = ("pre-create", "post-create", "pre-update", "post-update", *OF_DELETIONS)


def random_environment(dice: random.Random, names: Sequence[str]) -> Json:
    """None, or some breakpoints, of which a few have a limit, or end the action of the stack."""
    if dice.random() < 0.5:
        return {}
    entries: Json = {}
    for name in dice.sample(list(names), k=min(len(names), dice.randint(1, 3))):
        hooks = dice.sample(HOOKS, k=dice.randint(1, 3))
        entries[dice.choice([name, name, "r*"])] = {"hooks": {hook: _options(dice, hook) for hook in hooks}}
    return {"resource_registry": {"resources": entries}}


def _options(dice: random.Random, hook: str) -> Json:
    """A deletion that ends as failed leaves something behind, which is right, but hides what is wrong."""
    odds = dice.random()
    if odds < 0.2:
        fails = hook not in OF_DELETIONS and dice.random() < 0.3
        return {"timeout": dice.choice([1, 10, 50]), "then": "fail" if fails else "continue"}
    return {"abort": True} if odds < 0.25 and hook not in OF_DELETIONS else {}
