"""The goals of stacks as an update would have them.

A nested stack gets the goal that Stoker's resource type makes, not Heat's template of it.  So an update with
the same template finds nothing to change.  Members of groups keep the definition that Heat has for them where
it says something else than the group's.
"""

import json

from ....conductor.steps.child_secrets import goal_with_secrets
from ....engine.children import goal_of_child, opened_environment
from ....engine.context import Compiled, EngineContext
from ....engine.planning.requests import MOVED, Goal
from ....resources.contract.children import ChildGoal
from ....resources.contract.context import GoalContext
from ....resources.contract.errors import StepError, UnknownType
from ....sealing.sealer import BoundSealer
from ....sealing.secrets import Secrets
from ....sealing.stored import SealedRowLookup
from ....template.compile import Identity
from ....template.errors import TemplateError
from ....template.residual import partial
from ..heat.rows import HeatStack, HeatTree, Refused, document_of
from .built import Resizing
from .group_goals import NestedResource, group_goal_of, resizing_of


class GoalMaker:
    """Compiles the goals of one tree.

    :param sealer: sealer of the tree.
    """

    def __init__(self, context: EngineContext, tree: HeatTree, sealer: BoundSealer) -> None:
        self._context = context
        self._tree = tree
        self._sealer = sealer

    def of_template(self, stack: HeatStack, template_id: int) -> Compiled:
        """Compile one of Heat's templates for a stack of the tree, with the environment that it has there.

        :raises Refused: Heat has deleted the template, or it is wrong by the rules of this release.
        """
        stored = self._tree.templates.get(template_id)
        if stored is None:
            raise Refused(
                f"stack {stack.name} needs template {template_id}, which Heat has purged: update it in Heat"
            )
        goal = Goal(
            template=stored.template,
            environment=document_of(stored.environment),
            files=stored.files,
            purpose=MOVED,
        )
        return self._compile(stack, goal, tree=stack.owner_id is None)

    def heat_template(self, stack: HeatStack) -> str:
        """Return Heat's template of a stack as text; "": Heat has deleted it."""
        template = self._tree.templates.get(stack.template_id)
        return "" if template is None else json.dumps(template.template)

    def resizing(self, nested: NestedResource) -> Resizing:
        """Return what an update with the same template would change in a group, as far as that is known."""
        try:
            return resizing_of(nested, self._tree.templates.get(nested.stack.template_id))
        except (StepError, TemplateError, LookupError):
            return Resizing()  # The update says then what is wrong; the move does without.

    def of_nested(self, nested: NestedResource, secrets: Secrets, context: GoalContext) -> Compiled:
        """Compile the goal that Stoker's type makes of a resource for its nested stack.

        :param context: the context of the resource.
        :raises Refused: the type can make none.
        """
        try:
            goal = self._child_goal(nested, context)
            goal = goal_with_secrets(goal, nested.definition.type, nested.properties, secrets)
        except (StepError, TemplateError, UnknownType, LookupError) as error:
            name = nested.definition.name
            raise Refused(f"the nested stack of resource {name} cannot be taken over: {error}") from error
        lookup = SealedRowLookup(nested.rows)
        facade = {
            "metadata": partial(nested.definition.metadata, lookup),
            "deletion_policy": nested.definition.deletion_policy,
            "update_policy": partial(nested.definition.update_policy, lookup),
        }
        parent = nested.parent
        environment = opened_environment(self._context, parent.environment, parent.files, self._sealer.open)
        child = goal_of_child(goal, nested.named, facade, environment=environment, files=parent.files)
        return self._compile(nested.stack, child, tree=False)

    def _compile(self, stack: HeatStack, goal: Goal, *, tree: bool) -> Compiled:
        identity = Identity(stack.name, stack.id, stack.project_id)
        try:
            return self._context.compiler.compile(goal, identity, self._sealer, tree=tree)
        except TemplateError as error:
            texts = [str(error), *map(str, error.others)]
            raise Refused(*(f"stack {stack.name}: {text}" for text in texts)) from error

    def _child_goal(self, nested: NestedResource, context: GoalContext) -> ChildGoal:
        template = self._tree.templates.get(nested.stack.template_id)
        return group_goal_of(nested, template) or nested.plugin.child_goal(nested.target, context)
