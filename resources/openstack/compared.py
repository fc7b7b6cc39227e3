"""Types whose things can hold no idempotency key: they are found by fields that the template sets.

A first step stores which things are like the one to be made.  Those that are like it besides were made by a
lost call; the others belong to somebody else.
"""

import dataclasses
import typing
from collections.abc import Sequence

from ...shapes import Json
from ..contract import Poll, ResourceView, Step, StepContext
from .declared import DeclaredType
from .service import RemoteNotFound

BEFORE = "before"
"""Key of the data: the ids of the things that were like it before the creation."""
BEGUN = "begun"
"""Key of the progress of a creation that has stored them."""


class ComparedType(DeclaredType):
    """Base of the types whose things are found by their fields; see the module's text.

    :cvar compared: fields by which things are alike.
    :cvar filters: those by which the service filters its list.
    """

    mark = None
    compared: typing.ClassVar[Sequence[str]] = ("name",)
    filters: typing.ClassVar[Sequence[str]] = ()

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store which things are like the one to be made."""
        if target.physical_id is not None:
            return super().handle_create(target, context)
        data = {**target.data, BEFORE: self._alike(target, context)}
        return Poll(progress={BEGUN: True}, after=0.0, data=data)

    def check_create_complete(self, target: ResourceView, progress: Json, context: StepContext) -> Step:
        """Create the thing, unless an earlier step has."""
        if not progress.get(BEGUN):
            return super().check_create_complete(target, progress, context)
        if target.attempt > 1 and target.physical_id is None:
            created = self.find_created(target.key, target, context)
            target = dataclasses.replace(target, physical_id=created)
        return super().handle_create(target, context)

    def find_created(self, key: str, target: ResourceView, context: StepContext) -> str | None:
        """Return the first thing that is like it, and was not there before the creation."""
        if BEFORE not in target.data:
            return None
        before = target.data[BEFORE]
        return next((thing for thing in self._alike(target, context) if thing not in before), None)

    def needs_replace_failed(self, target: ResourceView, context: StepContext) -> bool:
        """Return whether the thing is gone; what a lost call has made is deleted, for it is in the way."""
        if target.physical_id is None:
            created = self.find_created(target.creation_key, target, context)
            if created is not None:
                self.service_for(context).delete(f"{self.path}/{created}")
        return super().needs_replace_failed(target, context)

    def _alike(self, target: ResourceView, context: StepContext) -> list[str]:
        """Return the ids of the things with the same fields."""
        as_created = dataclasses.replace(target, key=target.creation_key or target.key)
        body = self.create_body(as_created, context)
        query = {name: body[name] for name in self.filters}
        try:
            remotes = self.service_for(context).list_all(self.path, self._items(), **query)
        except RemoteNotFound:
            return []  # The collection is that of another thing, which is gone.
        return [
            str(remote[self.id_field])
            for remote in remotes
            if all(text_of(remote.get(name)) == text_of(body.get(name)) for name in self.compared)
        ]


def text_of(value: Json) -> str:
    """Return a field as it is compared: a service may show numbers as texts, and null for what is empty."""
    return "" if value is None else str(value)
