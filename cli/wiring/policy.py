"""The rules of the policy, composed of the kernel's and those of the features."""

from collections.abc import Iterable

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
