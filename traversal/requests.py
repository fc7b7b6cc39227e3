"""What a user asks of a stack, as values; the API makes them, `orders.py` carries them out."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Json = typing.Any


@dataclass(frozen=True)
class Goal:
    """Everything that says what a stack shall be.

    :ivar template: the template as text or as a dict.
    :ivar files: contents by name or URL, for get_file, nested templates and environment files.
    :ivar environment_files: names in `files`, merged in this order on the server, before `environment`.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json] = field(default_factory=dict)
    environment_files: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateRequest:
    """:ivar timeout_mins: None: the service's default."""

    tenant: str
    name: str
    goal: Goal
    owner: str | None = None
    timeout_mins: int | None = None
    disable_rollback: bool = True
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class PreviewedResource:
    """One resource of a previewed stack; `action` says what an action on the real one would do."""

    name: str
    type: str
    action: str
    properties: Mapping[str, Json]
    metadata: Mapping[str, Json]
    description: str
    required_by: Sequence[str]


@dataclass(frozen=True)
class Preview:
    """A stack that was planned but not stored."""

    name: str
    description: str
    parameters: Mapping[str, str]
    timeout_mins: int | None
    disable_rollback: bool
    tags: Sequence[str]
    resources: Sequence[PreviewedResource]
