"""Findings: what would keep an action from its end, with the way to another end; values."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ...resources.contract.preflight import Certainty
from ...shapes import Json
from ...template.errors import dotted
from ...template.language import Path


class FindingKind(enum.StrEnum):
    """The kinds of findings."""

    QUOTA = "quota"
    FIT = "fit"
    SURPRISE = "surprise"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class CloudFinding:
    """One finding.

    :ivar path: the path in the template; (): it is of the whole.
    :ivar needed: what the action needs; "": there is no amount or value to name.
    :ivar available: what the cloud has.
    :ivar advice: what the user can do.
    """

    kind: FindingKind
    path: Path
    message: str
    needed: str = ""
    available: str = ""
    certainty: Certainty = Certainty.CERTAIN
    advice: str = ""

    @property
    def is_obstacle(self) -> bool:
        """Return whether the action is likely to fail for it."""
        hinders = self.kind in (FindingKind.QUOTA, FindingKind.FIT)
        return hinders and self.certainty is not Certainty.NOT_KNOWN

    @property
    def text(self) -> str:
        """Return path and message as one line."""
        return f"{dotted(self.path)}: {self.message}" if self.path else self.message

    def view(self) -> dict[str, Json]:
        """Return the finding as the API has it."""
        return {
            "kind": self.kind.value,
            "path": dotted(self.path),
            "message": self.message,
            "needed": self.needed,
            "available": self.available,
            "certainty": self.certainty.value,
            "advice": self.advice,
        }


def obstacles(findings: Sequence[CloudFinding]) -> list[CloudFinding]:
    """Return the findings for which an action is likely to fail, the certain ones first."""
    likely = [finding for finding in findings if finding.is_obstacle]
    return sorted(likely, key=lambda finding: finding.certainty is not Certainty.CERTAIN)
