"""The context of log lines: the request or traversal, the project and the stack that they belong to.

oslo.log prints it between brackets, see FORMAT.
"""

import contextlib
import typing
from collections.abc import Iterator

from oslo_context import context

FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(request_id)s %(project_id)s %(stack_id)s] %(message)s"
)
"""Format of lines that have a context."""
UNKNOWN = "-"
REQUEST = "req-"
"""Prefix of the ids of requests."""


class _Context(context.RequestContext):
    """oslo.log asks the current one of the thread for the values that a line begins with."""

    def __init__(self, request: str, project: str, stack: str, *, overwrite: bool = True) -> None:
        super().__init__(request_id=request, project_id=project, overwrite=overwrite)
        self.stack = stack

    def get_logging_values(self) -> dict[str, typing.Any]:
        return {**super().get_logging_values(), "project_id": self.project_id, "stack_id": self.stack}


def _nothing() -> _Context:
    """Return the context of lines that belong to nothing: oslo.log uses its format for no request."""
    nothing = _Context(UNKNOWN, UNKNOWN, UNKNOWN, overwrite=False)
    nothing.request_id = ""
    return nothing


_NOTHING = _nothing()


def current_request() -> str | None:
    """Return the id of the user's request that this thread works for, None if none is known."""
    current = context.get_current()
    request = current.request_id if isinstance(current, _Context) else ""
    return request if request and request.startswith(REQUEST) else None


def named(request: str | None, traversal: str) -> str:
    """Return the request's id, or an id made of the traversal where no request is known.

    The API logs the traversal with the request that started it.
    """
    return request or f"trv-{traversal}"


@contextlib.contextmanager
def about(
    *, request: str | None = None, project: str | None = None, stack: str | None = None
) -> Iterator[None]:
    """Give the log lines that this thread writes in the body their context.

    :param request: the request's id, see `named`.
    """
    outer_context = context.get_current()
    outer = outer_context if isinstance(outer_context, _Context) and outer_context.request_id else None
    _Context(
        request or (outer.request_id if outer else UNKNOWN),
        project or ((outer.project_id if outer else None) or UNKNOWN),
        stack or (outer.stack if outer else UNKNOWN),
    )
    try:
        yield
    finally:
        (outer_context or _NOTHING).update_store()
