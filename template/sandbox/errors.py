"""Errors of an evaluation in a helper process."""


class EvaluationError(Exception):
    """The expression cannot be evaluated; the text names the reason and is for the user."""


class UnusableResult(EvaluationError):
    """The expression has a value that JSON cannot hold."""


class LimitReached(EvaluationError):
    """The evaluation needed more time, memory or bytes than one may; the text names which."""


class HelperUnavailable(Exception):
    """No helper process is free, or none can be started: not the user's error, so retry later."""
