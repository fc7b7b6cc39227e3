"""The steps of an action: what `handle_X` and `check_X_complete` return."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

Json = typing.Any


@dataclass(frozen=True)
class Done:
    """The action has ended.

    :ivar physical_id: None leaves it as it is.
    :ivar data: None leaves it as it is.
    """

    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Poll:
    """Look again.

    :ivar progress: JSON for the next look; not None.
    :ivar after: seconds until then.
    """

    progress: Json
    after: float = 1.0
    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Park:
    """Wait for a signal (a change of another resource's metadata) or for the end of a child stack.

    :ivar waits_on: ``resource:ID`` or ``stack:ID``.
    :ivar seen: generation of the metadata when the step looked; a later one wakes the task at once.
    :ivar after: seconds until the task is looked at even so; None: only the resource's timeout.
    """

    progress: Json
    waits_on: str
    seen: int = 0
    after: float | None = None
    physical_id: str | None = None
    data: Mapping[str, Json] | None = None


Step = Done | Poll | Park
