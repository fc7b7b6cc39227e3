"""Actions on a stack."""

import typing
from collections.abc import Callable, Mapping

from ..db.stacks import Stack
from ..db.states import TaskKind
from .call import Call, Reply, shortened
from .faults import bad_request

Json = typing.Any


def act(call: Call) -> Reply:
    """POST …/actions: a body of one key, which names the action."""
    stack, body = call.stack(), call.valid({"type": "object"})
    if len(body) != 1:
        raise bad_request("No action specified" if not body else "Multiple actions specified")
    (name,) = body
    if name not in ACTIONS:
        known = ", ".join(sorted(ACTIONS))
        raise bad_request(f"Invalid action {shortened(name)} specified; known are: {known}")
    ACTIONS[name](call, stack)
    return Reply(None)


def _cancel_update(call: Call, stack: Stack) -> None:
    call.services.updates.cancel(stack, rollback=True)


def _cancel_without_rollback(call: Call, stack: Stack) -> None:
    call.services.updates.cancel(stack, rollback=False)


def _act(kind: TaskKind) -> Callable[[Call, Stack], None]:
    def act(call: Call, stack: Stack) -> None:
        call.services.orders.act(stack, kind)

    return act


ACTIONS: Mapping[str, Callable[[Call, Stack], None]] = {
    "cancel_update": _cancel_update,
    "cancel_without_rollback": _cancel_without_rollback,
    "check": _act(TaskKind.CHECK),
    "resume": _act(TaskKind.RESUME),
    "suspend": _act(TaskKind.SUSPEND),
}
