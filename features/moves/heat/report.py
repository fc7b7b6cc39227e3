"""The report of a move between Heat and Stoker: the end of each root stack, and why; without secrets."""

import collections
import enum
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

ShowProgress = Callable[[int, int], None]
"""Gets the number of root stacks that are done, and that of all."""


class MoveProgress:
    """The number of root stacks that a run is done with; shown at each change.

    :param show: None: nobody looks.
    """

    def __init__(self, show: ShowProgress | None) -> None:
        self._show = show
        self._total = 0
        self._done = 0

    def begin(self, total: int) -> None:
        """Set the number of all root stacks."""
        self._total = total
        self.add(0)

    def add(self, count: int) -> None:
        """Count root stacks that are done, whatever became of them."""
        self._done += count
        if self._show is not None:
            self._show(self._done, self._total)


class Disposition(enum.StrEnum):
    """The end of a root stack's move, with all that is nested in it."""

    MOVES = "moves"  #: a dry run: it can be moved
    MOVED = "moved"
    PRESENT = "present"  #: an earlier run has moved it
    STAYS = "stays"  #: it cannot be moved; the reasons say why


@dataclass(frozen=True)
class MovedStack:
    """The report of one root stack.

    :ivar reasons: why it stays, each with what to do.
    :ivar notes: what differs after the move, each with what to do.
    :ivar differences: what an update with the same template would change; empty, too, where nobody asked.
    """

    id: str
    name: str
    project_id: str
    disposition: Disposition
    stacks: int = 0
    resources: int = 0
    reasons: Sequence[str] = ()
    notes: Sequence[str] = ()
    differences: Sequence[str] = ()


@dataclass
class Report:
    """The report of a run.

    :ivar present: number of the root stacks that an earlier run has moved.
    :ivar notes: what of all stacks stays behind by the way in which they were read.
    """

    stacks: list[MovedStack] = field(default_factory=list)
    present: int = 0
    configs: int = 0
    deployments: int = 0
    notes: Sequence[str] = ()

    def counts(self) -> dict[str, int]:
        """Return the number of root stacks by disposition."""
        counted = collections.Counter(stack.disposition.value for stack in self.stacks)
        counted[Disposition.PRESENT.value] += self.present
        return {item.value: counted[item.value] for item in Disposition if counted[item.value]}

    def as_json(self) -> str:
        """Return the report as a JSON document."""
        document = {
            "counts": self.counts(),
            "resources": sum(stack.resources for stack in self.stacks),
            "software_configs": self.configs,
            "software_deployments": self.deployments,
            "notes": list(self.notes),
            "stacks": [asdict(stack) for stack in self.stacks],
        }
        return json.dumps(document, indent=2)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report as text: the stacks with reasons or notes, and the sums."""
        for stack in self.stacks:
            if stack.reasons or stack.notes or stack.differences:
                yield f"{stack.name} ({stack.id}, project {stack.project_id}): {stack.disposition.value}"
                yield from (f"  stays: {reason}" for reason in stack.reasons)
                yield from (f"  note: {note}" for note in stack.notes)
                yield from (f"  would change: {difference}" for difference in stack.differences)
        yield from (f"note: {note}" for note in self.notes)
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items()) or "none"
        yield f"root stacks: {counts}"
        yield f"resources: {sum(stack.resources for stack in self.stacks)}"
        if self.configs or self.deployments:
            yield f"software configs: {self.configs}, deployments: {self.deployments}"
