"""The context of a duty, for tests of one duty."""

import typing
from collections.abc import Callable

from stoker.conductor.duties.context import CurrentSettings, DutyContext, DutySettings
from stoker.db.engine import Database


class AtOnce:
    """conductor.background.Background without threads."""

    def submit(self, key: object, job: Callable[[], None]) -> bool:
        """Run the work at once, and return that it was accepted."""
        job()
        return True


def nothing(*_: object) -> typing.Any:
    """Stands for a collaborator that a duty must not need."""
    raise AssertionError("this duty has no business here")


def duty_context(
    database: Database, ring: object, *, settings: DutySettings | None = None, **collaborators: typing.Any
) -> DutyContext:
    """Return a context with the given collaborators; the duty may use no others."""
    fields: dict[str, typing.Any] = {
        "hints": None,
        "clock": database.clock,
        "roll_back": nothing,
        "revoke": nothing,
        "post": nothing,
        "background": lambda name: AtOnce(),
        **collaborators,
    }
    return DutyContext(
        database=database,
        ring=typing.cast(typing.Any, ring),
        settings=CurrentSettings(settings or DutySettings("a")),
        **fields,
    )
