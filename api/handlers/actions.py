"""Actions on a stack."""

from collections.abc import Callable, Mapping

from ...db.rows import Stack
from ...db.states import TaskKind
from ...engine.breakpoints import continue_held
from ...engine.stacks import act_on_stack
from ...engine.updates import cancel_action
from ...shapes import Json
from ..errors import bad_request, shortened
from ..operations import Request
from ..reply import Reply
from ..schemas import GO_ON
from ..views.stacks import breakpoint_view


def act(request: Request) -> Reply:
    """Answer POST …/actions: a body of one key, which names the action."""
    body = request.valid({"type": "object"})
    if len(body) != 1:
        raise bad_request("No action specified" if not body else "Multiple actions specified")
    [(name, details)] = body.items()
    if name not in ACTIONS:
        names = ", ".join(sorted(ACTIONS))
        raise bad_request(f"Invalid action {shortened(name)} specified; known: {names}")
    if details and name not in WITH_DETAILS:
        raise bad_request(f"{name}: the action takes no details, send null")
    # As in Heat, each action has a rule of its own.
    request.auth.authorize(request.caller, f"actions:{name}")
    return Reply(ACTIONS[name](request, request.living_stack()))


def _cancel_update(request: Request, stack: Stack) -> None:
    cancel_action(request.services.context, stack, rollback=True, by=request.caller.user)


def _cancel_without_rollback(request: Request, stack: Stack) -> None:
    cancel_action(request.services.context, stack, rollback=False, by=request.caller.user)


def _go_on(*, step: bool) -> Callable[[Request, Stack], Json]:
    """Ours: Heat's client clears breakpoints one by one, by signals."""

    def act(request: Request, stack: Stack) -> Json:
        options = request.valid(GO_ON)["step" if step else "continue"] or {}
        cleared = continue_held(
            request.services.context,
            stack,
            names=options.get("resources"),
            hook=options.get("hook"),
            step=step,
        )
        return {"cleared": [breakpoint_view(item) for item in cleared]}

    return act


def _act(kind: TaskKind) -> Callable[[Request, Stack], None]:
    def act(request: Request, stack: Stack) -> None:
        if kind != TaskKind.CHECK:
            request.read(lambda conn: request.check_types(conn, stack))
        act_on_stack(request.services.context, stack, kind, request.caller.trustor)

    return act


WITH_DETAILS = ("continue", "step")
ACTIONS: Mapping[str, Callable[[Request, Stack], Json]] = {
    "cancel_update": _cancel_update,
    "cancel_without_rollback": _cancel_without_rollback,
    "check": _act(TaskKind.CHECK),
    "continue": _go_on(step=False),
    "resume": _act(TaskKind.RESUME),
    "step": _go_on(step=True),
    "suspend": _act(TaskKind.SUSPEND),
}
