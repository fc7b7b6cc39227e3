"""The preflight: it compares a compiled goal, or the plan of an update, with the cloud of the caller."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...db.rows import Stack
from ...engine.context import Compiled, EngineContext
from ...engine.errors import NotUpdatable
from ...engine.planning.requests import PREVIEWED, CreateRequest, UpdateRequest
from ...engine.requested import compile_requested
from ...keystone.caller import CallerAccess
from ...resources.contract.known_stack import PropertyPath
from ...resources.contract.preflight import Certainty, CloudFacts, Misfit
from ...sealing.sealer import SealError
from ...template.errors import LimitExceeded, TemplateError
from ...template.language import Path
from ..preview.plan import ResourceChange
from ..preview.updates import changes_of_compiled, preview_changes, things_of
from ..preview.validation import NO_ID
from .findings import CloudFinding, FindingKind
from .planned import PlannedPart, own_ids, parts_of_creation, parts_of_update, stacks_to_read
from .quota import find_exceeded
from .reader import ROUNDS, CloudReader, CloudReaders, TooMuchToJudge
from .surprises import find_shrinking, find_surprises

LOG = logging.getLogger(__name__)
MOST_FINDINGS = 200
"""Findings of one preflight."""


class CloudPreflight:
    """Finds what would keep an action from its end.  It stores and changes nothing.  Thread-safe."""

    def __init__(self, context: EngineContext, readers: CloudReaders) -> None:
        self._context = context
        self._readers = readers

    def of_creation(self, request: CreateRequest, access: CallerAccess | None) -> list[CloudFinding]:
        """Return the findings for a stack that is to be created; none for an adoption, which makes nothing.

        :param access: the caller's access to the services; None: Keystone has not named the caller.
        :raises TemplateError: the goal is wrong.
        """
        compiled = compile_requested(
            self._context,
            replace(request.goal, purpose=PREVIEWED),
            name=request.name,
            stack_id=NO_ID,
            project_id=request.project_id,
            root_id="",
        )
        return self.of_compiled(compiled, access) if request.adopted is None else []

    def of_compiled(self, compiled: Compiled, access: CallerAccess | None) -> list[CloudFinding]:
        """Return the findings for a new stack, whose goal was compiled with its nested stacks."""
        registry = self._context.registry.usable
        return _safely(
            lambda: self._find(
                list(parts_of_creation(compiled.plan, compiled.nested, registry)),
                compiled.identity.project_id,
                access,
            )
        )

    def of_update(
        self, stack: Stack, request: UpdateRequest, access: CallerAccess | None
    ) -> list[CloudFinding]:
        """Return the findings for an update.

        :raises TemplateError: the goal is wrong.
        :raises NotUpdatable: the stack's state allows no update.
        """
        changes = preview_changes(self._context, stack, request, nested=True)
        return self.of_changes(changes, stack.project_id, access)

    def of_goal(
        self, stack: Stack, compiled: Compiled, request: UpdateRequest, access: CallerAccess
    ) -> list[CloudFinding]:
        """Return the findings for an update to a compiled goal; none where the update would fail anyway."""

        def find() -> list[CloudFinding]:
            try:
                changes = changes_of_compiled(
                    self._context, compiled, stack, converge=request.converge, nested=True
                )
            except LimitExceeded as error:
                return [_not_checked(str(error))]  # Only its preview reads so much.
            except (NotUpdatable, TemplateError, SealError):
                return []  # The update itself says so.
            return self.of_changes(changes, stack.project_id, access)

        return _safely(find)

    def of_changes(
        self, changes: Sequence[ResourceChange], project_id: str, access: CallerAccess | None
    ) -> list[CloudFinding]:
        """Return the findings for the changes that an update would make."""
        return _safely(lambda: self._find(self._parts(changes), project_id, access))

    # -- inside ------------------------------------------------------------------------------------

    def _parts(self, changes: Sequence[ResourceChange]) -> list[PlannedPart]:
        stack_ids = stacks_to_read(changes)
        things = things_of(self._context, stack_ids) if stack_ids else ()
        return list(parts_of_update(changes, self._context.registry.usable, own_ids(things)))

    def _find(
        self, parts: Sequence[PlannedPart], project_id: str, access: CallerAccess | None
    ) -> list[CloudFinding]:
        shrinking = list(find_shrinking(parts))
        return [*shrinking, *self._compared(parts, project_id, access)][:MOST_FINDINGS]

    def _compared(
        self, parts: Sequence[PlannedPart], project_id: str, access: CallerAccess | None
    ) -> list[CloudFinding]:
        """Return the findings for which the services are asked."""
        if not any(_asks(planned) for planned in parts):
            return []
        if access is None:
            return [_not_checked("nobody has named the caller, so no service can be asked")]
        if access.project_id != project_id:
            # An admin's token sees the admin's own project, not that of another's stack.
            return [_not_checked("the token is for another project than the stack's")]
        return findings_of(parts, self._readers.reader(access))


def findings_of(parts: Sequence[PlannedPart], reader: CloudReader) -> list[CloudFinding]:
    """Return the findings for what an action makes; the cloud is asked as far as its judgement needs it."""
    findings: list[CloudFinding] = []
    for _ in range(ROUNDS):
        findings = _judged(parts, reader)
        if not reader.fetch():
            break
    return [*findings, *reader.findings()][:MOST_FINDINGS]


def _asks(planned: PlannedPart) -> bool:
    """Return whether a type of a stack compares anything with the cloud."""
    return any(plugin.service is not None for plugin in planned.types.values())


def _not_checked(problem: str) -> CloudFinding:
    return CloudFinding(FindingKind.NOT_CHECKED, (), f"not checked: {problem}", certainty=Certainty.NOT_KNOWN)


def _safely(find: Callable[[], list[CloudFinding]]) -> list[CloudFinding]:
    """Return the findings; a bug, also of a type's rule, must not keep a user from their stack."""
    try:
        return find()
    except TooMuchToJudge:
        return [_not_checked("it takes too long to compare so many resources with so many things")]
    except Exception:
        LOG.exception("A preflight failed")
        return [_not_checked("a rule has failed; the log of the API says which")]


def _judged(parts: Sequence[PlannedPart], cloud: CloudFacts) -> list[CloudFinding]:
    """Return the findings, as far as the answers are there."""
    return [
        *find_exceeded(parts, cloud),
        *misfits_of(parts, cloud),
        *find_surprises(parts, cloud),
        *_unknown(parts),
    ]


def misfits_of(parts: Sequence[PlannedPart], cloud: CloudFacts) -> Iterator[CloudFinding]:
    """Yield the values of what an action makes that the cloud would refuse as it is now."""
    for planned in parts:
        types = {
            planned.types[planned.after[name].type]: None
            for name in planned.after
            if name in planned.stack.new
        }
        for rule in dict.fromkeys(rule for plugin in types for rule in plugin.cloud_rules):
            for misfit in rule(planned.stack, cloud):
                yield _finding(misfit, planned.path)


def _finding(misfit: Misfit, path: Path) -> CloudFinding:
    inside: PropertyPath = ("properties", *misfit.path) if misfit.path else ()
    return CloudFinding(
        FindingKind.FIT,
        (*path, "resources", misfit.resource, *inside),
        misfit.message,
        misfit.needed,
        misfit.available,
        misfit.certainty,
        misfit.advice,
    )


def _unknown(parts: Sequence[PlannedPart]) -> Iterator[CloudFinding]:
    for planned in parts:
        for name in planned.open:
            yield CloudFinding(
                FindingKind.NOT_CHECKED,
                (*planned.path, "resources", name),
                "not checked: what the nested stack will have is not known before the action",
                certainty=Certainty.NOT_KNOWN,
            )
