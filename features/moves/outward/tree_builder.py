"""Makes Heat's rows of one tree of Stoker's stacks.  It reads no database, and calls no service."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ....db.rows import Stack
from ....resources.registry import ResourceRegistry
from ....sealing.sealer import Sealer, SealError
from ....template.residual import token_of
from ..heat.rows import STACK_TYPE, HeatEvent, HeatStack, HeatTemplate, HeatTree, Refused
from ..mapping.columns import EVENT
from ..mapping.software import heat_config, heat_deployment
from .obstacles import accounts_made, obstacles
from .outgoing import OutgoingTree
from .snapshot_rows import heat_snapshots
from .stack_builder import HeatStackBuilder
from .stoker_rows import StokerTree

LONGEST = 255
"""Characters of the columns of events."""
NO_TRUST = (
    "it has no trust that Heat could use: users' requests work, and signals and alarms that change the cloud "
    "fail until Heat has one"
)


@dataclass
class _Parts:
    """The parts of a tree that are collected while its stacks are built."""

    stacks: list[HeatStack] = field(default_factory=list)
    templates: dict[int, HeatTemplate] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class HeatTreeBuilder:
    """Builds trees.  For one thread.

    :param trustors: users by the ids of the trusts that they have made for Stoker's account.
    :param claimed_by: the engine that holds the locks of stacks which an import has moved.
    """

    def __init__(
        self, registry: ResourceRegistry, sealer: Sealer, trustors: Mapping[str, str], claimed_by: str
    ) -> None:
        self._registry = registry
        self._sealer = sealer
        self._trustors = trustors
        self._claimed_by = claimed_by

    def build(self, tree: StokerTree, earlier: HeatTree | None) -> OutgoingTree:
        """Return the rows of a tree.

        :param earlier: the tree as Heat's database has it; None: it has none with this id.
        :raises Refused: it cannot be moved.
        """
        if reasons := list(obstacles(tree, earlier, self._registry, self._claimed_by)):
            raise Refused(*reasons)
        try:
            return self._built(tree, earlier)
        except SealError as error:
            raise Refused(
                f"a secret of stack {tree.root.name} cannot be opened: name the key that has sealed it "
                "in [secrets]"
            ) from error

    def _built(self, tree: StokerTree, earlier: HeatTree | None) -> OutgoingTree:
        root = tree.root
        unseal = self._sealer.of_stack(root.project_id, root.id).open
        stored_stacks = (
            {} if earlier is None else {stack.id: stack for stack in (earlier.root, *earlier.stacks)}
        )
        builder = HeatStackBuilder(tree, self._registry, unseal, stored_stacks)
        if reasons := list(accounts_made(tree, builder.accounts)):
            raise Refused(*reasons)
        parts = _Parts()
        names: dict[str, str] = {root.id: root.name}
        for stack in tree.all_stacks:
            built = builder.build(stack, names[stack.id], first_template=-2 * len(parts.stacks) - 1)
            names.update(built.children)
            snapshots, notes = heat_snapshots(stack, tree, unseal, stored_stacks.get(stack.id))
            events = _events(stack, names[stack.id], tree)
            parts.stacks.append(replace(built.stack, events=events, snapshots=snapshots))
            parts.templates.update(built.templates)
            parts.notes += [*built.notes, *notes]
        first = self._with_credential(parts.stacks[0], tree, stored_stacks.get(root.id), parts.notes)
        sealer = self._sealer.of_software(root.project_id)
        return OutgoingTree(
            HeatTree(first, parts.stacks[1:], parts.templates),
            [heat_config(config, sealer) for config in tree.configs],
            [heat_deployment(deployment, sealer) for deployment in tree.deployments],
            list(dict.fromkeys(parts.notes)),
        )

    def _with_credential(
        self, root: HeatStack, tree: StokerTree, stored_stacks: HeatStack | None, notes: list[str]
    ) -> HeatStack:
        """Return the root with the trust that Stoker uses, or else with the credential that Heat had."""
        token = token_of(tree.credential)
        credential = None if token is None else self._sealer.of_credential(root.id).open(token)
        trust = credential.get("trust") if isinstance(credential, Mapping) else None
        if isinstance(trust, str) and trust in self._trustors:
            return replace(root, trust_id=trust, trustor_id=self._trustors[trust])
        if stored_stacks is not None and stored_stacks.creds_id is not None:
            return replace(
                root,
                trust_id=stored_stacks.trust_id,
                trustor_id=stored_stacks.trustor_id,
                creds_id=stored_stacks.creds_id,
            )
        notes.append(NO_TRUST)
        return root


def _events(stack: Stack, name: str, tree: StokerTree) -> list[HeatEvent]:
    """Return the events of a stack, those of the stack itself under the name that it has in Heat."""
    return [
        replace(
            HeatEvent(stack_id=stack.id, **EVENT.to_heat(event)),
            resource_name=name if event.resource_type == STACK_TYPE else event.resource_name,
            resource_type=event.resource_type[:LONGEST],
            physical_id=event.physical_id and event.physical_id[:LONGEST],
            reason=event.reason[:LONGEST],
        )
        for event in tree.events
        if event.stack_id == stack.id
    ]
