"""Errors that a step may raise; one class for each different reaction."""

import typing
from collections.abc import Sequence


class StepError(Exception):
    """Base of the errors that a step raises on purpose."""


class RetryableError(StepError):
    """The step failed now but may succeed later.

    :ivar after: seconds until the retry; None: pauses that grow.
    :ivar at_least: seconds that a growing pause lasts at least.
    """

    def __init__(self, reason: str, *, after: float | None = None, at_least: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after
        self.at_least = at_least


class OverQuota(RetryableError):
    """A quota of the user's project is exceeded, which only the user can cure.

    The retries end sooner than others: [stacks] quota_wait.
    """


class StepTimedOut(RetryableError):
    """The action took longer than its resource's timeout; the conductor raises it and restarts the action."""


class PermanentError(StepError):
    """The step failed, and a retry is of no use; the text becomes the resource's reason.

    :ivar kind: kind of failure, one word that Heat prints before the reason.
    """

    def __init__(self, reason: str, *, kind: str = "ResourceFailure") -> None:
        super().__init__(reason)
        self.kind = kind


class ChildGone(PermanentError):
    """The nested stack of a resource is gone, or never existed."""

    def __init__(self) -> None:
        super().__init__("the nested stack is gone")


class ReplaceNeeded(StepError):
    """The resource cannot be updated in place; handle_update or check_update_complete raises it.

    The resource is then replaced, as if its schema said so.
    """


class Cancelled(StepError):
    """The step is cancelled; StepContext.checkpoint and StepContext.pause raise it."""


class NotSupported(StepError):
    """The type does not support this action; the API answers 400."""


class NoAction(StepError):
    """A signal changes nothing now; as in Heat this is no error, and the client does not see it."""


class SignalError(StepError):
    """The signal's details cannot be used; the API answers 400."""


class SignalNotSupported(NotSupported):
    """The type takes no signals."""


class PropertyError(ValueError):
    """A property's value does not fit its schema.

    :ivar path: property names and indices, outermost first.
    :ivar others: further errors of the properties, which were found after this one.
    """

    others: "Sequence[PropertyError]" = ()

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.message = message
        self.path = path
        super().__init__(f"{'.'.join(str(part) for part in path)}: {message}" if path else message)

    def with_others(self, others: "Sequence[PropertyError]") -> typing.Self:
        """Return the error, which names these further ones from now on."""
        self.others = others
        return self


class UnknownProperty(PropertyError):
    """A name is given that the schema does not have.

    :ivar name: the unknown name.
    :ivar guess: the name that was probably meant; None: none is similar.
    :ivar allowed: all names that may be given.
    """

    def __init__(
        self, name: str, guess: str | None, allowed: Sequence[str], path: tuple[str | int, ...] = ()
    ) -> None:
        self.name = name
        self.guess = guess
        self.allowed = allowed
        super().__init__(self.text(), path)

    def text(self, hint: str = "") -> str:
        """Return the message.

        :param hint: said where no name is similar.
        """
        if self.guess is not None:
            return f'Unknown Property {self.name}; did you mean "{self.guess}"?'
        allowed = f"allowed: {', '.join(self.allowed)}" if self.allowed else "none is allowed here"
        return f"Unknown Property {self.name}{hint} ({allowed})"


def raise_all(errors: Sequence[PropertyError]) -> None:
    """Raise the first error, with the others; nothing where there is none.

    :raises PropertyError: there is one.
    """
    if errors:
        first, *others = errors
        raise first.with_others(others)


class UnknownType(LookupError):
    """No resource type of this name is registered."""


class AbsentType(UnknownType):
    """A type of Heat that does not come with Stoker; the text is Heat's for one whose service is missing."""
