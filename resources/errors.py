"""What a step may raise; one class for each different reaction."""


class StepError(Exception):
    """Base of what a step raises on purpose."""


class RetryableError(StepError):
    """It did not work now but may later.

    :ivar after: seconds until the next try; None: the service's back-off.
    """

    def __init__(self, reason: str, *, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class StepTimedOut(RetryableError):
    """The action took longer than its resource's timeout; raised by the conductor, which begins it afresh."""


class PermanentError(StepError):
    """It failed and trying again is of no use; the text becomes the resource's reason.

    :ivar kind: what kind of failure, one word as Heat prints it before the reason.
    """

    def __init__(self, reason: str, *, kind: str = "ResourceFailure") -> None:
        super().__init__(reason)
        self.kind = kind


class ChildGone(PermanentError):
    """The stack that a resource stands for is not there any more, or never was."""

    def __init__(self) -> None:
        super().__init__("the nested stack is gone")


class ReplaceNeeded(StepError):
    """What is to be changed cannot be changed in place; raised by handle_update or check_update_complete.

    The resource is replaced then, as though its schema had said so.
    """


class Cancelled(StepError):
    """The step was asked to stop; raised by Work.checkpoint and Work.pause."""


class NotSupported(StepError):
    """The type does not know this action; the API answers 400."""


class NoAction(StepError):
    """A signal changes nothing as things are: that is no error, and the API says so to nobody, as Heat."""


class SignalError(StepError):
    """The signal's details cannot be used; the API answers 400."""


class PropertyError(ValueError):
    """A property's value does not fit its schema.

    :ivar path: property names and indices, outermost first.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        self.message = message
        self.path = path
        super().__init__(f"{'.'.join(str(part) for part in path)}: {message}" if path else message)


class UnknownType(LookupError):
    """No resource type of this name is registered."""
