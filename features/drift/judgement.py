"""Compares a resource with its thing in the cloud."""

from collections.abc import Collection
from dataclasses import dataclass, field

from ...engine.planning.property_changes import GivenProperties, property_changes
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import immutable_changed, replacement_needed, resolve_reported
from ...resources.contract.views import ResourceView
from ...sealing.redaction import MASK
from ...sealing.secrets import Secrets
from ...shapes import Json, JsonMap
from ...template.drift import DriftPolicy
from ...template.residual import holds_secret, is_node, members, sealed
from .rows import DriftKind


@dataclass(frozen=True)
class Difference:
    """A difference between a resource and its thing.

    :ivar properties: ``{name: {"template": value, "cloud": value}}``, secrets masked.
    :ivar needs_replacement: an update that repairs it would make another thing.
    :ivar can_update: no update is refused because a property can never be changed.
    """

    kind: DriftKind
    properties: JsonMap = field(default_factory=dict)
    needs_replacement: bool = False
    can_update: bool = True

    def may_heal(self, policy: DriftPolicy) -> bool:
        """Return whether the policy of its resource lets an update repair it."""
        return policy.heal and self.can_update and (policy.allow_replace or not self.needs_replacement)

    def text(self, policy: DriftPolicy) -> str:
        """Return the reason of the event that records it."""
        text = "It is gone from the cloud"
        if self.kind is DriftKind.CHANGED:
            text = f"Changed in the cloud: {', '.join(self.properties)}"
        if not policy.heal or self.may_heal(policy):
            return text
        why = "that would replace it, which allow_replace permits"
        return f"{text}. It is not healed: {why if self.can_update else 'the type allows no such update'}"


GONE = Difference(DriftKind.GONE, needs_replacement=True)


def judge(
    plugin: ResourceType,
    target: ResourceView,
    stored: Json,
    reported: JsonMap,
    policy: DriftPolicy,
    secrets: Secrets,
) -> Difference | None:
    """Return the difference between a resource's properties and those that its thing shows; None: none.

    :param stored: the properties as they are stored, a residual with secrets sealed.
    :param reported: the properties that the thing shows.
    :param secrets: the secrets that were opened for the comparison.
    """
    schema = plugin.properties_schema
    live = resolve_reported(schema, reported, target.properties, policy.ignore)
    changes = property_changes(
        schema,
        GivenProperties({name: target.properties.get(name) for name in live}, stored or {}),
        GivenProperties(live, _hidden(stored or {})),
    )
    if not changes:
        return None
    after = {**target.properties, **live}
    names = frozenset(changes)
    return Difference(
        DriftKind.CHANGED,
        {
            name: {"template": change.old, "cloud": MASK if secrets.holds(change.new) else change.new}
            for name, change in changes.items()
        },
        needs_replacement=_replaces(plugin, names, after, target.properties),
        can_update=not immutable_changed(schema, names),
    )


def _hidden(stored: Json) -> Json:
    """Return a residual in which the properties with secrets are secrets as a whole.

    So nothing of the cloud's value is shown, whatever it has in the place of the secret.
    """
    if is_node(stored) and not members(stored):
        return sealed("") if holds_secret(stored) else {}
    return {name: sealed("") for name, part in members(stored).items() if holds_secret(part)}


def _replaces(plugin: ResourceType, names: Collection[str], live: JsonMap, properties: JsonMap) -> bool:
    """Return whether an update from the live properties to the template's replaces the resource."""
    if plugin.always_replaced or replacement_needed(plugin.properties_schema, names):
        return True
    return plugin.needs_replace(live, properties)
