"""Which breakpoints a traversal's tasks get; pure."""

import functools
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..db.states import TaskKind
from ..template.environment import Environment, settings_for
from ..template.language import ResourceSettings

Json = typing.Any

_CREATION = ("pre-create", "post-create")
_DELETION = ("pre-delete", "post-delete")
REACHED_BY: Mapping[TaskKind, tuple[str, ...]] = {
    TaskKind.CREATE: _CREATION,
    # An update becomes a creation where the resource has to be replaced.
    TaskKind.UPDATE: ("pre-update", "post-update", *_CREATION),
    TaskKind.DELETE: _DELETION,
    TaskKind.CLEANUP: _DELETION,
}


@dataclass(frozen=True)
class PlannedBreakpoints:
    """The breakpoints that a traversal observes.

    :ivar registry: of the stack's own environment, for resources that its template does not have any more.
    :ivar abort: reaching any breakpoint ends the stack's action.
    :ivar active: False: there are none, as in a rollback, which nobody watches.
    :ivar may_abort: False: a breakpoint that would end the action holds it instead.  A deletion that was
        ended and is requested again must be able to complete, because it allows no update.
    """

    registry: Mapping[str, Json] = field(default_factory=dict)
    abort: bool = False
    active: bool = True
    may_abort: bool = True

    def settings_of(self, name: str) -> ResourceSettings:
        """Return the environment's settings of a resource that is deleted; timeout and retries too."""
        return settings_for(self._environment, (name,))

    @functools.cached_property
    def _environment(self) -> Environment:
        return Environment(registry=self.registry)

    def of(self, kind: TaskKind, settings: ResourceSettings) -> dict[str, Json] | None:
        """Return the breakpoints that a task of that kind reaches, with their options, as stored."""
        if not self.active or not settings.hooks:
            return None
        hooks = [hook for hook in REACHED_BY.get(kind, ()) if hook in settings.hooks]
        return {hook: self._options(settings.hook_options.get(hook, {})) for hook in hooks} or None

    def _options(self, given: Mapping[str, Json]) -> dict[str, Json]:
        options = {name: value for name, value in given.items() if name != "abort"}
        aborts = self.may_abort and (self.abort or given.get("abort"))
        return {**options, "abort": True} if aborts else options
