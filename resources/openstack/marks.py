"""Where a thing of the cloud carries the idempotency key of its resource, and how it is found by it.

A create whose answer was lost is repeated by another step, perhaps on another conductor.  The repetition
finds by its mark the result of the first one.
"""

import typing
import uuid
from collections.abc import Mapping, Sequence

from ...shapes import Json, JsonMap
from .service import Service

PREFIX = "stoker-"
MARK_NAME = "stoker"
"""Name of the mark among a thing's metadata."""


def mark_of(key: str) -> str:
    """Return the mark for an idempotency key."""
    return f"{PREFIX}{key}"


class Mark(typing.Protocol):
    """A way to mark a thing."""

    @property
    def place(self) -> str:
        """Where the mark is, in words for the reference of types."""

    def put(self, body: dict[str, Json], mark: str) -> None:
        """Put the mark into the body that creates the thing."""

    def query(self, mark: str) -> Mapping[str, str]:
        """Return the parameters of a list of all that has the mark."""

    def is_on(self, remote: JsonMap, mark: str) -> bool:
        """Return whether a member of that list has the mark indeed."""

    def texts(self, remote: JsonMap) -> Sequence[Json]:
        """Return the values of a thing that may be its mark."""

    def key_on(self, remote: JsonMap) -> str | None:
        """Return the idempotency key of whose mark a thing has; None: it has no mark."""
        return next(filter(None, map(_key_of, self.texts(remote))), None)


class FieldMark(Mark):
    """A mark in a text field that the type's users do not set, such as ``description``."""

    def __init__(self, name: str = "description") -> None:
        self._name = name

    @property
    def place(self) -> str:
        return f"the field ``{self._name}``"

    def put(self, body: dict[str, Json], mark: str) -> None:
        body[self._name] = mark

    def query(self, mark: str) -> Mapping[str, str]:
        return {self._name: mark}

    def is_on(self, remote: JsonMap, mark: str) -> bool:
        return bool(remote.get(self._name) == mark)

    def texts(self, remote: JsonMap) -> Sequence[Json]:
        return (remote.get(self._name),)


class NameMark(FieldMark):
    """A mark as the name; the step after the creation gives the thing its own name."""

    def __init__(self) -> None:
        super().__init__("name")

    @property
    def place(self) -> str:
        return "the name, until the thing gets its own"


class TagMark(Mark):
    """A mark among the tags."""

    place = "a tag"

    def put(self, body: dict[str, Json], mark: str) -> None:
        body["tags"] = [*(body.get("tags") or ()), mark]

    def query(self, mark: str) -> Mapping[str, str]:
        return {"tags": mark}

    def is_on(self, remote: JsonMap, mark: str) -> bool:
        return mark in (remote.get("tags") or ())

    def texts(self, remote: JsonMap) -> Sequence[Json]:
        return tuple(remote.get("tags") or ())


class MetadataMark(Mark):
    """A mark in the metadata, under `MARK_NAME`."""

    place = f"the entry ``{MARK_NAME}`` of its metadata"

    def put(self, body: dict[str, Json], mark: str) -> None:
        body["metadata"] = {**(body.get("metadata") or {}), MARK_NAME: mark}

    def query(self, mark: str) -> Mapping[str, str]:
        return {"metadata": str({MARK_NAME: mark})}  # Cinder reads a Python literal.

    def is_on(self, remote: JsonMap, mark: str) -> bool:
        return bool((remote.get("metadata") or {}).get(MARK_NAME) == mark)

    def texts(self, remote: JsonMap) -> Sequence[Json]:
        return ((remote.get("metadata") or {}).get(MARK_NAME),)


def _key_of(text: Json) -> str | None:
    """Return the key of a mark; None: the text is no mark."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return None
    key = text.removeprefix(PREFIX)
    try:
        return key if str(uuid.UUID(key)) == key else None
    except ValueError:
        return None


def marked(
    mark: Mark, value: str, service: Service, path: str, items: str, id_field: str = "id"
) -> list[str]:
    """Return the ids of the members of a collection with this mark, the oldest first.

    :param items: key of the members in a list.
    :param id_field: field of a member that holds the id.
    """
    remotes = service.list_all(path, items, **mark.query(value))
    marked_remotes = [remote for remote in remotes if mark.is_on(remote, value)]
    marked_remotes.sort(key=lambda remote: str(remote.get("created_at") or remote.get("created") or ""))
    return [str(remote[id_field]) for remote in marked_remotes]


def chosen_id(key: str) -> str:
    """Return the id of a thing whose id the creator chooses: the mark is the id itself."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, mark_of(key)))
