"""Finds things that Stoker has made and that no row has, as after a restored backup."""

import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ...db.ids import ResourceId, StackId
from ...resources.contract.context import Collection
from ...resources.contract.errors import StepError
from ...resources.contract.plugin import ResourceType
from ...shapes import JsonMap
from . import known_things
from .context import DriftServices, ObservationContext
from .lists import MOST_CREDENTIALS

PAGE = 1000
"""Rows that one query reads."""


@dataclass(frozen=True)
class UnknownThing:
    """A thing with a mark of Stoker's, and without a row.

    :ivar type: the first resource type of its collection, by name.
    :ivar name: "": it has none.
    :ivar created_at: as the service says it; "": it does not.
    :ivar key: the idempotency key of its creation.
    """

    project_id: str
    type: str
    physical_id: str
    name: str
    created_at: str
    key: str


@dataclass(frozen=True)
class LostThing:
    """A thing whose mark names a resource that has no thing: it has no physical id, or its own is gone.

    :ivar row: the resource.
    """

    thing: UnknownThing
    row: known_things.ThingOfRow


@dataclass(frozen=True)
class UnreadList:
    """A list of a project that could not be read: what is in it was not compared.

    :ivar types: the resource types whose things it has.
    """

    types: Sequence[str]
    reason: str


@dataclass(frozen=True)
class Comparison:
    """The result for a project.

    :ivar things: the things whose keys no row has.
    :ivar lost: the things whose keys resources have that lack them.
    """

    things: Sequence[UnknownThing]
    unread: Sequence[UnreadList]
    lost: Sequence[LostThing]


class UnknownThings:
    """Compares the lists of projects with the rows.  It changes nothing."""

    def __init__(self, services: DriftServices) -> None:
        self._services = services
        by_collection: dict[Collection, list[tuple[str, ResourceType]]] = {}
        for name, plugin in sorted(services.registry.listed.items(), key=_by_name):
            collection = plugin.collection()
            if collection is not None:
                by_collection.setdefault(collection, []).append((name, plugin))
        self._collections: Mapping[Collection, Sequence[tuple[str, ResourceType]]] = by_collection

    def of_project(self, project_id: str) -> Comparison:
        """Return the things of a project of which no row knows.

        :raises Unavailable: the database does not answer.
        """
        read = functools.partial(known_things.living_roots, project_id=project_id, limit=MOST_CREDENTIALS)
        roots = self._services.database.read(read)
        lists: list[tuple[Collection, Mapping[str, JsonMap]]] = []
        unread: list[UnreadList] = []
        for collection, types in self._collections.items():
            try:
                lists.append((collection, self._read(collection, project_id, roots)))
            except StepError as error:
                unread.append(UnreadList([name for name, _ in types], str(error)))
        # The rows come last: the key of a creation is stored before the thing is made.
        rows: dict[str | None, known_things.ThingOfRow] = {}
        ids: set[str | None] = set()
        for row in self._rows(project_id):
            rows[row.key] = row
            ids.add(row.physical_id)
        things: list[UnknownThing] = []
        lost: list[LostThing] = []
        for collection, remotes in lists:
            for thing in self._without_row(collection, project_id, remotes, ids):
                if (owner := rows.get(thing.key)) is None:
                    # What belongs to no project may be another project's, or another installation's.
                    if collection.is_of_project:
                        things.append(thing)
                elif owner.is_resource and owner.physical_id not in remotes:
                    lost.append(LostThing(thing, owner))
        return Comparison(things, unread, lost)

    def _without_row(
        self,
        collection: Collection,
        project_id: str,
        remotes: Mapping[str, JsonMap],
        ids: Set[str | None],
    ) -> Iterator[UnknownThing]:
        """Yield the things of a list that have a mark, and whose ids no row has."""
        for physical_id, remote in remotes.items():
            if physical_id not in ids:
                unknown = self._marked(collection, project_id, physical_id, remote)
                if unknown is not None:
                    yield unknown

    def _read(
        self, collection: Collection, project_id: str, roots: Sequence[StackId]
    ) -> Mapping[str, JsonMap]:
        """Read a list with the rights of the first stack that has them.

        :raises StepError: none has.
        """
        last = StepError("the project has no stack whose user's rights could be used")
        for root_id in roots:
            context = ObservationContext(project_id, root_id, self._services)
            try:
                return collection.read(context, project_id)
            except StepError as error:
                last = error
        raise last

    def _rows(self, project_id: str) -> Iterator[known_things.ThingOfRow]:
        last = ResourceId(0)
        while True:
            read = functools.partial(known_things.of_project, project_id=project_id, after=last, limit=PAGE)
            page = self._services.database.read(read)
            yield from page
            if len(page) < PAGE:
                return
            last = page[-1].resource_id

    def _marked(
        self, collection: Collection, project_id: str, physical_id: str, remote: JsonMap
    ) -> UnknownThing | None:
        """Return a thing with a mark; None: Stoker has not made it."""
        for name, plugin in self._collections[collection]:
            if (key := plugin.key_on(remote)) is not None:
                created = remote.get("created_at") or remote.get("created") or ""
                label = str(remote.get("name") or "")
                return UnknownThing(project_id, name, physical_id, label, str(created), key)
        return None


def _by_name(item: tuple[str, ResourceType]) -> tuple[bool, str]:
    """Return a key that sorts the types of OpenStack before their other names."""
    return not item[0].startswith("OS::"), item[0]
