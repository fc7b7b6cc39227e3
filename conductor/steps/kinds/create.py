"""Steps that give a stack a resource: creations, and adoptions."""

from dataclasses import replace

from ....resources.errors import PermanentError
from ....resources.steps import Step
from ....template.residual import evaluate, holds_secret, partial
from ..lookup import ClaimLookup, SealedLookup
from ..results import StepResult
from .base import TaskStep


class CreateStep(TaskStep):
    """A step of a creation.  What the template names by ``external_id`` is there already, and is adopted."""

    action = "create"

    def prepare(self) -> StepResult | None:
        """Give the view the physical id of what is there, or of what an earlier attempt has made."""
        external_id = self.definition.external_id
        if external_id is not None:
            self.action = "adopt"
            if holds_secret(partial(external_id, SealedLookup(self.claim))):
                raise PermanentError(
                    "external_id must not be a secret: an id is stored and shown",
                    kind="StackValidationFailed",
                )
            found = evaluate(external_id, ClaimLookup(self.claim, self.secrets))
            self.target = replace(self.target, physical_id=str(found))
        if self.progress is None and self.claim.task.attempt > 1:
            self.find_created()
        return None


class AdoptStep(TaskStep):
    """A step of the adoption of a thing that another stack has left."""

    action = "adopt"

    def finish(self, step: Step) -> StepResult:
        """Keep the data that came with the thing, unless its type has other data."""
        return super().finish(replace(step, data=self.target.data) if step.data is None else step)
