"""What the lines of the log belong to: a request or a traversal, a project and a stack.

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
"""Of lines that belong to something."""
UNKNOWN = "-"
REQUEST = "req-"
"""How the ids of requests begin."""


class _Context(context.RequestContext):
    """oslo.log asks the current one of the thread for the values that a line begins with."""

    def __init__(self, request: str, project: str, stack: str, *, overwrite: bool = True) -> None:
        super().__init__(request_id=request, project_id=project, overwrite=overwrite)
        self.stack = stack

    def get_logging_values(self) -> dict[str, typing.Any]:
        return {**super().get_logging_values(), "project_id": self.project_id, "stack_id": self.stack}


def _nothing() -> _Context:
    """Of lines that belong to nothing: without a request id oslo.log uses its other format."""
    made = _Context(UNKNOWN, UNKNOWN, UNKNOWN, overwrite=False)
    made.request_id = ""
    return made


_NOTHING = _nothing()


def current_request() -> str | None:
    """The id of the user's request that this thread works for; None: it is not known to work for one."""
    current = context.get_current()
    request = current.request_id if isinstance(current, _Context) else ""
    return request if request and request.startswith(REQUEST) else None


def named(request: str | None, traversal: str) -> str:
    """What stands in the request's place: the request, or where none is known the traversal, which the API
    logs with the request that began it."""
    return request or f"trv-{traversal}"


@contextlib.contextmanager
def about(
    *, request: str | None = None, project: str | None = None, stack: str | None = None
) -> Iterator[None]:
    """Inside, the lines that this thread writes say what they belong to.

    :param request: the request's id, see `named`.
    """
    before = context.get_current()
    outer = before if isinstance(before, _Context) and before.request_id else None
    _Context(
        request or (outer.request_id if outer else UNKNOWN),
        project or ((outer.project_id if outer else None) or UNKNOWN),
        stack or (outer.stack if outer else UNKNOWN),
    )
    try:
        yield
    finally:
        (before or _NOTHING).update_store()
