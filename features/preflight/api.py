"""The preflight as the API's handlers ask for it."""

from collections.abc import Callable, Sequence

from ...api.errors import Fault
from ...db.rows import Stack
from ...engine.context import Compiled, Review
from ...engine.planning.requests import CreateRequest, UpdateRequest
from ...keystone.caller import CallerAccess
from ...shapes import JsonMap
from ...template.environment import PreflightMode, preflight_mode
from ...template.errors import dotted
from .check import CloudPreflight
from .findings import CloudFinding, obstacles

MOST_NOTED = 3
"""Findings that a stack's reason names."""
LONGEST_NOTE = 250
"""Characters of one of them."""


class ApiPreflight:
    """Implements `api.collaborators.Preflight`.  Thread-safe.

    :param usual: the mode of stacks whose environments set none.
    """

    def __init__(self, preflight: CloudPreflight, usual: Callable[[], PreflightMode]) -> None:
        self._preflight = preflight
        self._usual = usual

    def of_creation(self, request: CreateRequest, access: CallerAccess | None) -> Sequence[JsonMap]:
        """Return the findings for a stack that would be created."""
        return [finding.view() for finding in self._preflight.of_creation(request, access)]

    def of_update(
        self, stack: Stack, request: UpdateRequest, access: CallerAccess | None
    ) -> Sequence[JsonMap]:
        """Return the findings for an update."""
        return [finding.view() for finding in self._preflight.of_update(stack, request, access)]

    def review_of_creation(self, access: CallerAccess) -> Review:
        """Return the review of a stack that is to be created."""
        return lambda compiled: self._note(compiled, lambda: self._preflight.of_compiled(compiled, access))

    def review_of_update(self, stack: Stack, request: UpdateRequest, access: CallerAccess) -> Review:
        """Return the review of an update.

        A request whose goal is compiled again, because another one has changed the stack, is reviewed once:
        its answer has waited long enough.
        """
        notes: list[str] = []

        def review(compiled: Compiled) -> str:
            if not notes:
                notes.append(
                    self._note(compiled, lambda: self._preflight.of_goal(stack, compiled, request, access))
                )
            return notes[0]

        return review

    def _note(self, compiled: Compiled, find: Callable[[], Sequence[CloudFinding]]) -> str:
        """Return what the stack's reason says of what hinders its action; "": nothing does.

        :raises Fault: 409, the mode is to refuse.
        """
        mode = preflight_mode(compiled.environment["resource_registry"]) or self._usual()
        if mode is PreflightMode.OFF:
            return ""
        findings = find()
        hindering = obstacles(findings)
        if not hindering:
            return ""
        if mode is PreflightMode.REFUSE:
            raise _refused(hindering, findings)
        texts = [_shortened(finding.text) for finding in hindering[:MOST_NOTED]]
        return f"; preflight: {_count(hindering)}: {'; '.join(texts)}"


def _refused(hindering: Sequence[CloudFinding], findings: Sequence[CloudFinding]) -> Fault:
    """Return the answer to a request that is refused, with all findings."""
    lines = [
        f"- {finding.text} ({finding.certainty.value}). {finding.advice}".strip() for finding in hindering
    ]
    message = "\n".join([f"The cloud would not carry this out: {_count(hindering)}:", *lines])
    others = [finding for finding in findings if finding not in hindering]
    errors = [
        {**{name: str(value) for name, value in finding.view().items()}, "path": dotted(finding.path)}
        for finding in [*hindering, *others]
    ]
    return Fault(409, "PreflightRefused", message, errors)


def _count(findings: Sequence[CloudFinding]) -> str:
    return "1 finding" if len(findings) == 1 else f"{len(findings)} findings"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_NOTE else f"{text[: LONGEST_NOTE - 1]}…"
