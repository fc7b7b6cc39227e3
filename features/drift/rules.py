"""The rules of the policy for the routes of this feature."""

from ...api.paths import STACK
from ...api.policy import READER, Rule

RULES: tuple[Rule, ...] = (
    ("stacks:drift", READER, "Show what differs from the cloud.", "GET", f"{STACK}/drift"),
)
