"""What an update's first step finds that it has to do."""

from ...db.states import Status
from ...db.work.claim import Claim
from ...resources.context import ResourceView, StepContext
from ...resources.errors import StepError
from ...resources.plugin import ResourceType
from ...resources.update_decision import RESTRICTED, UpdateDecision, decide_update, survives_failure
from .target import fits


class Restricted(StepError):
    """The environment forbids what the update would have to do; the resource stays as it is."""


def decide(claim: Claim, plugin: ResourceType, target: ResourceView, work: StepContext) -> UpdateDecision:
    """What the update comes to, once all values are known.

    One whose last action failed is replaced, as in Heat, unless its type knows better: nobody knows what
    state it is in.

    :param plugin: the type that the resource has, which need not be the one it shall have.
    :raises Restricted: it is forbidden.
    :raises Final: a property has changed that never may.
    """
    verdict = _verdict(claim, plugin, target, work)
    check_allowed(claim, verdict)
    return verdict


def check_allowed(claim: Claim, verdict: UpdateDecision) -> None:
    """:raises Restricted: the environment forbids it."""
    word = RESTRICTED.get(verdict)
    if word in claim.task.restricted:
        raise Restricted(f"{word} is restricted for resource.")


def _verdict(claim: Claim, plugin: ResourceType, target: ResourceView, work: StepContext) -> UpdateDecision:
    resource = claim.resource
    if not fits(claim):
        return UpdateDecision.REPLACE
    if resource.status == Status.FAILED:
        asked = survives_failure(plugin, action=resource.action)
        if not asked or plugin.needs_replace_failed(target, work):
            return UpdateDecision.REPLACE
    redefined = resource.definition != claim.task.definition
    return decide_update(plugin, target.previous, target.properties, redefined=redefined)
