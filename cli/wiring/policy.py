"""The rules of the policy, composed of the kernel's and those of the features."""

import time
from collections.abc import Callable, Iterable

from oslo_config import cfg
from oslo_policy import policy

from ...api.policy import KERNEL_RULES, Rule, rule_defaults
from ...features.registry import Feature, load
from ..features import FEATURES


def rules_of(features: Iterable[Feature]) -> list[Rule]:
    """Return the rules of the kernel and of some features, by name."""
    of_features = [rule for feature in features if feature.rules for rule in load(feature.rules)]
    return sorted([*KERNEL_RULES, *of_features])


RULES = rules_of(FEATURES)
"""All rules of the product."""


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules of the product; oslo.policy's tools call it, too."""
    return rule_defaults(RULES)


LOOK_EVERY = 1.0
"""Seconds between two looks at the operator's files."""


class Enforcer(policy.Enforcer):
    """Enforces the rules; it looks for changed files at most once in LOOK_EVERY.

    oslo.policy's own looks for them at each question, of which a request has several: that takes longer than
    the answer.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, conf: cfg.ConfigOpts, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(conf)
        self._monotonic = monotonic
        self._next_look = float("-inf")

    def load_rules(self, force_reload: bool = False) -> None:
        """Read the files again where they have changed; see `policy.Enforcer.load_rules`."""
        now = self._monotonic()
        if force_reload or now >= self._next_look:
            super().load_rules(force_reload)
            self._next_look = now + LOOK_EVERY
