"""The rows of Heat's that one tree of stacks becomes, before they are stored; values."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..heat.rows import HeatConfig, HeatDeployment, HeatTree


@dataclass(frozen=True)
class OutgoingTree:
    """The rows of one tree.

    :ivar tree: the stacks.  What Heat has not stored yet has negative numbers as ids.
    :ivar notes: what differs after the move, each with what to do.
    """

    tree: HeatTree
    configs: Sequence[HeatConfig] = ()
    deployments: Sequence[HeatDeployment] = ()
    notes: Sequence[str] = ()
