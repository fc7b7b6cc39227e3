"""Types with variants or new names: the choice for one resource, when its template is compiled; pure.

A variant is a type of its own that users know by the name of another one; the row of the resource has both
names.  So an update that changes the choice replaces the resource, as if the environment mapped its type to
another.
"""

import typing

from ..template.budget import Budget
from ..template.language import ResourceDefinition
from ..template.residual import Lookup, evaluate, is_deferred, is_failing, members, references
from .plugin import NOT_KNOWN, ResourceType

Json = typing.Any


def chosen_type(plugin: ResourceType, definition: ResourceDefinition, secrets: Lookup, budget: Budget) -> str:
    """Return a resource's type: its own one, a variant that its properties choose, or a new name.

    :param plugin: the resource's type.
    :param secrets: opens the tokens of hidden parameters.
    """
    if plugin.renamed_to:
        return plugin.renamed_to
    if definition.external_id is not None or not plugin.chosen_by:
        return definition.type
    parts = members(definition.properties)
    choice = parts.get(plugin.chosen_by) if parts or not definition.properties else NOT_KNOWN
    return plugin.variant(_known(choice, secrets, budget)) or definition.type


def _known(tree: Json, secrets: Lookup, budget: Budget) -> Json:
    """Return what is known of a value: hidden parameters are, values of other resources are not."""
    if tree is NOT_KNOWN:
        return tree
    if parts := members(tree):
        return {name: _known(value, secrets, budget) for name, value in parts.items()}
    if not is_deferred(tree) or not (references(tree) or is_failing(tree)):
        return evaluate(tree, secrets, budget)
    return NOT_KNOWN
