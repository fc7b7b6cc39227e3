"""The steps of an action, which `handle_X` and `check_X_complete` return."""

from dataclasses import dataclass

from ...shapes import Json, JsonMap


@dataclass(frozen=True)
class Done:
    """The action has ended.

    :ivar physical_id: the resource's physical id; None keeps the stored one.
    :ivar data: values to store with the resource; None keeps the stored ones.
    """

    physical_id: str | None = None
    data: JsonMap | None = None


@dataclass(frozen=True)
class Poll:
    """The action is in progress: poll later.

    :ivar progress: token for the next poll, JSON; not None.
    :ivar after: seconds until the next poll.
    """

    progress: Json
    after: float = 1.0
    physical_id: str | None = None
    data: JsonMap | None = None


@dataclass(frozen=True)
class Park:
    """The action waits for a signal (a change of another resource's metadata) or for a nested stack.

    :ivar waits_on: ``resource:ID`` or ``stack:ID``.
    :ivar seen: generation of the metadata that the step read; a later one wakes the task at once.
    :ivar after: seconds until the task is polled anyway; None: only the resource's timeout.
    """

    progress: Json
    waits_on: str
    seen: int = 0
    after: float | None = None
    physical_id: str | None = None
    data: JsonMap | None = None


Step = Done | Poll | Park
