"""What a user asks of a stack, as values; the API makes them, `orders.py` carries them out."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..keystone.delegated_auth import Trustor
from ..template.budget import Budget

Json = typing.Any

EXISTING = "the stack's own environment"
"""Name under which it is merged as a file, below those of the request; it is not stored."""


MayUse = Callable[[str], bool]


def anything(type_name: str) -> bool:
    """Every type may be used."""
    return True


class TypeForbidden(Exception):
    """Whoever asks may not use a resource type; in Heat's words."""

    def __init__(self, type_name: str) -> None:
        super().__init__(f"You are not authorized to use {type_name}.")


@dataclass(frozen=True)
class Goal:
    """Everything that says what a stack shall be.

    :ivar template: the template as text or as a dict.
    :ivar files: contents by name or URL, for get_file, nested templates and environment files.
    :ivar environment_files: names in `files`, merged in this order on the server, before `environment`.
    :ivar generated: the template was made by a resource type; its size is not limited.
    :ivar may_use: which resource types, on whatever level; what a conductor compiles was asked for before.
    :ivar facade: of a nested stack: what its template may ask of the parent's resource, as residuals.
    :ivar secret: names of given parameters that are hidden whatever the template declares, because a
        secret is in their values.
    :ivar budget: of the request; None: one of its own.
    """

    template: str | Mapping[str, Json]
    environment: Mapping[str, Json] = field(default_factory=dict)
    environment_files: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    facade: Mapping[str, Json] | None = None
    generated: bool = False
    secret: frozenset[str] = frozenset()
    may_use: MayUse = anything
    budget: Budget | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class AdoptedResource:
    """What is known of a thing that is there already; secrets in clear.

    :ivar physical_id: None: it was never made, so it cannot be adopted.
    :ivar metadata: None: as the template says.
    :ivar nested: of a nested stack: its own document.
    """

    physical_id: str | None = None
    metadata: Mapping[str, Json] | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    nested: Mapping[str, Json] | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Json]) -> "AdoptedResource":
        """From a document's entry.  What is said of a nested stack is its own document, with those of the
        resource beside it."""
        return cls(
            physical_id=entry.get("resource_id"),
            metadata=entry.get("metadata"),
            data=entry.get("resource_data") or {},
            nested=None if entry.get("resources") is None else entry,
        )


@dataclass(frozen=True)
class CreateRequest:
    """:ivar timeout_mins: None: the service's default.
    :ivar adopted: things to be taken over, by the resource's name; None: all are made.
    :ivar abort_on_breakpoint: reaching a breakpoint ends the stack's action.
    :ivar delegator: who asks for it, where Keystone says so.
    """

    tenant: str
    name: str
    goal: Goal
    owner: str | None = None
    timeout_mins: int | None = None
    disable_rollback: bool = True
    abort_on_breakpoint: bool = False
    tags: Sequence[str] = ()
    adopted: Mapping[str, AdoptedResource] | None = None
    delegator: Trustor | None = None

    @property
    def action(self) -> str:
        """Of the stack."""
        return "CREATE" if self.adopted is None else "ADOPT"


@dataclass(frozen=True)
class UpdateRequest:
    """:ivar existing: what the goal leaves out is taken from what the stack has (PATCH).
    :ivar converge: look first at what is really there, and mend it where it is gone or differs.
    :ivar clear_parameters: of those it has, not to be taken.
    :ivar timeout_mins: None: as it was.
    :ivar disable_rollback: None: as it was; abort_on_breakpoint likewise.
    :ivar tags: None: none, or with `existing` those it has.
    :ivar delegator: who asks for it, where Keystone says so.
    """

    goal: Goal
    existing: bool = False
    converge: bool = False
    clear_parameters: Sequence[str] = ()
    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    abort_on_breakpoint: bool | None = None
    tags: Sequence[str] | None = None
    delegator: Trustor | None = None


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
