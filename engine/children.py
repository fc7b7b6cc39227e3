"""Nested stacks seen from their parents: the stack that a resource is, and the goal that it shall have."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..planning.hidden_parameters import secret_parameters
from ..planning.nested_check import static_facade, static_goal
from ..planning.preview import UpdatePreview
from ..planning.requests import Goal
from ..resources.context import ChildGoal
from ..resources.nested.base import NestedType
from ..resources.nested.parameterize import parameterize
from ..sealing.stored import StoredLookup
from ..template.environment import as_document, nested_environment, parse_environment
from ..template.model import ResourceDefinition
from ..template.residual import evaluate
from .compiled import Compiled

Json = typing.Any


def goal_of_child(
    goal: ChildGoal,
    name: str,
    facade: Mapping[str, Json],
    *,
    environment: Mapping[str, Json],
    files: Mapping[str, str],
    unseal: Callable[[str], Json],
) -> Goal:
    """Return what the child of a resource is compiled from.

    :param name: of the resource.
    :param environment, files: of the stack around it; the environment as it is stored.
    :param unseal: opens the token of a secret.
    """
    document = evaluate(environment, StoredLookup(unseal))
    return Goal(
        template=goal.template,
        environment=as_document(nested_environment(parse_environment(document), name)),
        files=files,
        parameters=goal.parameters,
        facade=facade,
        generated=goal.generated,
        secret=goal.secret,
    )


def previewed_goal_of_child(
    plugin: object, definition: ResourceDefinition, preview: UpdatePreview, parent: Compiled
) -> Goal | None:
    """Return what the child of a resource would be compiled from after an update.

    :param plugin: the type of the resource.
    :param preview: of the stack around it.
    :returns: None: that depends on values which are not known before the update.
    :raises TemplateError: a value that is known does not fit.
    """
    if not isinstance(plugin, NestedType) or not plugin.previewable:
        return None
    known = preview.known(definition)
    goal = None if known is None else static_goal(definition, plugin, known, parent.files)
    if goal is None:
        return None
    secret = secret_parameters(goal.parameters, preview.kept(definition), lambda value: False)
    return goal_of_child(
        replace(parameterize(goal, None), secret=secret),
        definition.name,
        static_facade(definition),
        environment=parent.environment,
        files=parent.files,
        unseal=parent.sealer.open,
    )
