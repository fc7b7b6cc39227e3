"""Types whose things are in a collection of another thing, such as the members of a pool."""

import copy
import functools
import typing
from collections.abc import Callable, Mapping

from ...shapes import Json
from ..contract import Done, ResourceType, ResourceView, StepContext
from .declared import DeclaredType
from .names import NameNotFound, quoted, resolve
from .service import RemoteNotFound


class PartType(DeclaredType):
    """Base of the types whose things are in a collection of another thing, the whole.

    A type names this base before that of its service.  Its `path` has ``{}`` in the place of the whole's
    id, as in ``/lbaas/pools/{}/members``.  The methods in `LOCATED` run on a copy of the type that has the
    path of the one collection.

    :cvar whole: the property with the name or the id of the whole.
    :cvar whole_kind: the whole's kind, a name in `names.KINDS`.
    """

    whole: typing.ClassVar[str]
    whole_kind: typing.ClassVar[str]

    def within(self, target: ResourceView, context: StepContext) -> typing.Self:
        """Return the type with the path of the collection that the resource's thing is in.

        :raises NameNotFound, NameNotUnique: no whole, or several, have the name.
        """
        if "{}" not in self.path:
            return self
        located = copy.copy(self)
        vars(located)["path"] = self.path.format(quoted(self.whole_id(target, context)))
        return located

    def whole_id(self, target: ResourceView, context: StepContext) -> str:
        """Return the id of the whole.

        :raises NameNotFound, NameNotUnique: no whole, or several, have the name.
        """
        return resolve(context, self.whole_kind, target.properties[self.whole])

    def _marked(self, mark: str, context: StepContext) -> list[str]:
        """Return the ids of the things with this mark; there are none where the whole is gone."""
        try:
            return super()._marked(mark, context)
        except RemoteNotFound:
            return []


ACTIONS = ("create", "update", "delete", "check")
LOCATED = (
    *(f"handle_{action}" for action in ACTIONS),
    *(f"check_{action}_complete" for action in ACTIONS),
    *("find_created", "needs_replace_failed", "refresh", "live_properties"),
)
"""Methods that call the service."""
WITHOUT_WHOLE: Mapping[str, Json] = {
    "handle_delete": Done(),
    "check_delete_complete": Done(),
    "find_created": None,
    "needs_replace_failed": True,
}
"""The value that a method returns where nothing has the whole's name: the thing went with it."""


def _located(name: str) -> Callable[..., Json]:
    """Return a method that calls that of the next base, on the type with the path of the collection."""

    @functools.wraps(getattr(ResourceType, name))
    def call(self: PartType, *arguments: Json) -> Json:
        target = next(item for item in arguments if isinstance(item, ResourceView))
        try:
            located = self.within(target, arguments[-1])
        except NameNotFound:
            if name in WITHOUT_WHOLE:
                return WITHOUT_WHOLE[name]
            raise
        return getattr(super(PartType, located), name)(*arguments)

    return call


for _name in LOCATED:
    setattr(PartType, _name, _located(_name))
