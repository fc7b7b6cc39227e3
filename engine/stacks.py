"""Creating stacks and deleting them, and actions on all of their resources."""

import uuid
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from ..db import conductors
from ..db.conductors import ConductorRecord
from ..db.ids import StackId
from ..db.rows import Stack
from ..db.states import TaskKind
from ..planning.plan import TraversalScope
from ..planning.requests import CreateRequest
from ..template.compile import Identity
from .actions import start_action
from .announce import Started, announce_started
from .context import EngineContext
from .creation import NewStack, create_stack
from .delete import start_delete
from .plan_inputs import count_ids_to_act, count_ids_to_delete


class StackOperations:
    """Carries out what users ask of whole stacks.  Thread-safe."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def create(self, request: CreateRequest) -> Stack:
        """Create or adopt a stack; it is committed when this returns, and runs once a conductor is there.

        :raises TemplateError: the goal is wrong.
        :raises NameTaken: a living stack has the name.
        :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
        """
        context, stack_id = self._context, StackId(str(uuid.uuid4()))
        compiled = context.compiler.compile(
            request.goal,
            Identity(request.name, stack_id, request.tenant),
            context.sealer.of_stack(request.tenant, stack_id),
        )
        timeout = context.timeout(request.timeout_mins)
        new = NewStack(
            id=stack_id,
            name=request.name,
            project_id=request.tenant,
            username=request.owner,
            deadline=lambda now: now + timeout,
            timeout_mins=request.timeout_mins,
            disable_rollback=request.disable_rollback,
            abort_on_breakpoint=request.abort_on_breakpoint,
            tags=tuple(request.tags),
            adopted=request.adopted,
        )
        with context.delegations.begin(stack_id, request.trustor) as delegation:
            return create_stack(
                context, new, compiled, lambda conn: context.delegations.confirm(conn, delegation)
            )

    def delete(self, stack: Stack) -> None:
        """Delete a stack at whatever moment; a stack that is deleted, or is being deleted, stays as it is."""
        timeout = self._context.timeout(stack.timeout_mins)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_delete(conn, scope, timeout=timeout)

        started = self._context.start_traversal(
            stack.id, lambda conn: count_ids_to_delete(conn, stack.id), start
        )
        if started is not None:
            announce_started(self._context.hints, started)

    def act(self, stack: Stack, kind: TaskKind) -> None:
        """Check, suspend or resume a stack.

        :raises NotUpdatable: see actions.start_action.
        """
        timeout = self._context.timeout(stack.timeout_mins)

        def start(conn: Connection, scope: TraversalScope) -> Started:
            return start_action(conn, kind, scope, deadline_at=scope.now + timeout)

        started = self._context.start_traversal(
            stack.id, lambda conn: count_ids_to_act(conn, stack.id), start
        )
        announce_started(self._context.hints, started)

    def services(self) -> Sequence[ConductorRecord]:
        """Return the conductors as they last reported."""
        return self._context.database.read(conductors.list_all)
