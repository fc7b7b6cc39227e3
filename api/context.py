"""The context of a request: its caller, and the project that it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..keystone.caller import CallerAccess
from ..resources.contract.cloud import Trustor

USER_LENGTH = 255


@dataclass(frozen=True)
class RequestContext:
    """The caller of a request, and the project that it is for.

    :ivar credentials: the credentials that policy rules may ask for.
    :ivar everywhere: whether the caller may see and change other projects' stacks, by their ids.
    :ivar trustor: the user whose rights can be delegated; None: Keystone has not named the caller.
    :ivar access: the caller's access to other services; None: Keystone has not named the caller.
    """

    project_id: str
    user: str | None = None
    roles: frozenset[str] = frozenset()
    credentials: Mapping[str, object] = field(default_factory=dict)
    everywhere: bool = False
    trustor: Trustor | None = None
    access: CallerAccess | None = None

    @property
    def visible_project(self) -> str | None:
        """Return the id of the project whose things exist for the caller; None: those of all projects do."""
        return None if self.everywhere else self.project_id

    def may_see(self, project_id: str) -> bool:
        """Return whether the project's stacks exist for the caller."""
        return self.everywhere or project_id == self.project_id
