"""Settings of the conductors."""

from dataclasses import dataclass

from ..settings import Seconds, setting


@dataclass(frozen=True)
class StackUpkeep:
    """The events of stacks that are kept, and the losses that their tasks survive."""

    keep_events: int = setting(
        "max_events_per_stack",
        1000,
        "Maximum number of events kept per stack; a purge once a minute removes the oldest ones beyond. 0: "
        "all are kept.",
        least=0,
        is_mutable=True,
    )
    task_losses: int = setting(
        "task_losses",
        3,
        "Number of conductors that may die or go silent while they run the same task; then its resource "
        "fails. A lower number protects conductors from a step that kills them, a higher one protects a "
        "step that only ran beside it. An orderly stop does not count. At least 2: one loss does not show "
        "which task caused it.",
        least=2,
    )


@dataclass(frozen=True)
class ConductorSettings:
    """The resources of one conductor, and its end."""

    threads: int = setting(
        "threads",
        32,
        "Steps that run at the same time. A step that waits takes no thread, so this bounds the concurrent "
        "calls to other services, not the stacks in progress.",
        least=1,
        most=1024,
    )
    in_progress: int = setting(
        "in_progress",
        20_000,
        "Maximum number of tasks that this conductor holds at a time. Fewer leave more tasks to other "
        "conductors; more take more memory.",
        least=1,
    )
    weight: float = setting(
        "weight",
        1.0,
        "Share of the stacks that this conductor owns, relative to the other conductors' weights.",
        least=0.01,
        most=1000,
        is_mutable=True,
    )
    most_written_off: int = setting(
        "most_written_off",
        8,
        "Number of threads hung in cancelled calls at which the conductor drains and exits with code 75, so "
        "that its service manager restarts it; 0: never. Lower frees memory and connections sooner, higher "
        "restarts less often.",
        least=0,
    )
    drain: Seconds = setting(
        "drain",
        30.0,
        "Seconds that running steps get to finish when the conductor stops. Longer interrupts fewer steps, "
        "shorter stops sooner.",
        least=0,
        is_mutable=True,
    )
    keep_deleted: Seconds = setting(
        "keep_deleted",
        30 * 86400.0,
        "Seconds for which deleted stacks stay visible. Longer keeps more rows in the database.",
        least=0,
        is_mutable=True,
    )
