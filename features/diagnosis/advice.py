"""The advice for stacks that have failed: one table from the cause of a failure to what helps.

The action that has failed does not say what helps: a check whose thing is gone fails again, and an update
beyond a quota does, too.
"""

import re
from dataclasses import dataclass

from ...db.rows import FailureCause, Stack

CONTINUED_BY_UPDATE = ("CREATE", "UPDATE", "ROLLBACK", "ADOPT", "RESTORE")
"""Actions after whose failure an update continues the stack."""
UPDATE = "openstack stack update --existing {stack}"
HEAL = "openstack stack update --existing --converge {stack}"
CHANGE = "openstack stack update --existing --template FILE {stack}"
AGAIN = "openstack stack {verb} {stack}"


@dataclass(frozen=True)
class Advice:
    """Help for a stack that has failed for a certain cause.

    :ivar cause: name of the cause; tests bring it about.
    :ivar actions: the failed actions of stacks for which it holds.
    :ivar kinds: pattern of the kind of the failure; it matches the whole.
    :ivar messages: pattern that the text of the failure has somewhere.
    :ivar first: what has to be done before the command, as a sentence's part; "": nothing.
    :ivar command: the command, with ``{stack}`` for the stack's id, and ``{verb}`` for its action.
    """

    cause: str
    actions: tuple[str, ...]
    command: str
    kinds: str = ".*"
    messages: str = ""
    first: str = ""

    def fits(self, action: str, cause: FailureCause) -> bool:
        """Return whether the advice is for this failure of an action."""
        is_kind = re.fullmatch(self.kinds, cause.kind) is not None
        return action in self.actions and is_kind and re.search(self.messages, cause.message) is not None

    def command_for(self, stack: Stack) -> str:
        """Return the command for a stack."""
        verb = "snapshot create" if stack.action == "SNAPSHOT" else stack.action.lower()
        return self.command.format(stack=stack.id, verb=verb)


ALL = (*CONTINUED_BY_UPDATE, "DELETE", "SUSPEND", "RESUME", "CHECK", "SNAPSHOT")
ADVICE = (
    # A check changes nothing, so it fails again until an update has made what it has missed.
    Advice("checked", ("CHECK",), HEAL),
    Advice(
        "quota",
        CONTINUED_BY_UPDATE,
        UPDATE,
        messages="over the quota",
        first="the project's quota has to be raised, or something deleted",
    ),
    # The service does not know an id that a resource has: only a check of each finds those that are gone.
    Advice("gone", CONTINUED_BY_UPDATE, HEAL, kinds="NotFound"),
    Advice(
        "goal",
        CONTINUED_BY_UPDATE,
        CHANGE,
        kinds="BadRequest|StackValidationFailed|NotSupported|.+NotFound|PhysicalResourceNameAmbiguity",
        first="the template or its parameters have to change, or what they name has to be made",
    ),
    Advice("unfinished", CONTINUED_BY_UPDATE, UPDATE),
    Advice(
        "in use", ("DELETE",), AGAIN, messages="in use", first="whatever uses the thing has to release it"
    ),
    Advice("again", ALL, AGAIN),
)
"""The first one that fits counts; the last ones fit whatever the cause is."""


def advise(stack: Stack) -> Advice:
    """Return the advice for a stack that has failed."""
    cause = stack.failure_cause or FailureCause(stack.reason)
    return next((item for item in ADVICE if item.fits(stack.action, cause)), ADVICE[-1])
