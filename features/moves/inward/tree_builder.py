"""Makes Stoker's rows of one tree of Heat's stacks.  It reads no database, and calls no service."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from ....db.states import Status
from ....engine.context import EngineContext
from ....shapes import Json
from ....template.residual import sealed
from ..heat.rows import HeatStack, HeatTree, Refused
from ..mapping.software import stored_config, stored_deployment
from .built import BuiltTree
from .goals import GoalMaker
from .project_software import ProjectSoftware
from .stack_builder import StackBuilder
from .stack_rows import TreeParts
from .type_data import Neighbours

_HOOKS = frozenset(
    f"{moment}-{action}" for moment in ("pre", "post") for action in ("create", "update", "delete")
)
"""Keys of the data of a resource that Heat holds at a breakpoint."""
NO_TRUST = (
    "it has no trust for Stoker's account: the next update, action or deletion by its owner gives "
    "it a new one; until then alarms scale nothing in the cloud"
)


class TreeBuilder:
    """Builds trees.  For one thread.

    :param neighbours: what the data of some types depends on, without handles and deployments.
    :param own_trusts: ids of the trusts that Stoker's account may use; None: stacks get no credentials.
    """

    def __init__(
        self, context: EngineContext, neighbours: Neighbours, own_trusts: Collection[str] | None = None
    ) -> None:
        self._context = context
        self._near = neighbours
        self._own_trusts = own_trusts

    def build(self, tree: HeatTree, software: ProjectSoftware) -> BuiltTree:
        """Return the rows of a tree.

        :param software: the configs and deployments that its resources may have.

        :raises Refused: it cannot be moved.
        """
        if reasons := list(obstacles(tree)):
            raise Refused(*reasons)
        root = tree.root
        sealer = self._context.sealer.of_stack(root.project_id, root.id)
        goals = GoalMaker(self._context, tree, sealer)
        nested = {stack.id: stack for stack in tree.stacks}
        shard_count = self._context.settings.shard_count
        parts = TreeParts(sealer, shard_count, nested, software, notes=list(tree.notes))
        neighbours = replace(self._near, software=software)
        builder = StackBuilder(self._context, parts, goals, neighbours)
        built = builder.build(root, goals.of_template(root, root.template_id), None)
        resources = sum(len(one.rows) for one in built.all())
        stack = replace(built.stack, tree_resources=resources, goal_size=built.compiled.size)
        built = replace(built, stack=stack)
        place = self._context.sealer.of_software(root.project_id)
        credential = self._credential(root, parts.notes)
        return BuiltTree(
            root=built,
            contents=parts.contents,
            events=parts.events,
            snapshots=[item.snapshot for item in parts.snapshots],
            copies=[copy for item in parts.snapshots for copy in item.copies],
            keys=parts.keys,
            configs=[stored_config(item, place, owner) for item, owner in software.configs()],
            deployments=[stored_deployment(item, place, owner) for item, owner in software.deployments()],
            credential=credential,
            credential_user=root.trustor_id,
            notes=list(dict.fromkeys(parts.notes)),
        )

    def _credential(self, root: HeatStack, notes: list[str]) -> Json:
        """Return the sealed credential of the root; None where the owner's next request gives it one."""
        if self._own_trusts is None:
            return None
        if root.trust_id not in self._own_trusts:
            notes.append(NO_TRUST)
            return None
        return sealed(self._context.sealer.of_credential(root.id).seal({"trust": root.trust_id}))


def obstacles(tree: HeatTree) -> Iterator[str]:
    """Yield the reasons that Heat's rows alone give why a tree cannot be moved."""
    if tree.faults:
        yield from tree.faults
        return
    for stack in (tree.root, *tree.stacks):
        hooks = [f"{row.name} ({key})" for row in stack.resources for key in row.data if key in _HOOKS]
        if hooks:
            names = ", ".join(hooks)
            yield f"stack {stack.name} is held at the breakpoint of {names}: clear it in Heat first"
        elif stack.status == Status.IN_PROGRESS:
            state = f"{stack.action}_{stack.status}"
            yield f"stack {stack.name} is {state}: let Heat finish, or cancel it there, and run this again"
        elif stack.locked_by is not None:
            yield f"stack {stack.name} is locked by an engine of Heat: let it finish, and run this again"
        if stack.project_id != tree.root.project_id:
            yield f"stack {stack.name} is of another project than {tree.root.name}, in which it is nested"
        if stack.is_backup:
            yield (
                f"stack {stack.name} holds what an unfinished update of an engine without convergence has "
                "left: update the stack around it in Heat until that succeeds"
            )
