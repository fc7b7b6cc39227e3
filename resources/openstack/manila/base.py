"""The common part of the types of shared file systems."""

import re
from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ...contract import PermanentError, ResourceView, RetryableError, Step, StepContext, SupportStatus
from ..declared import DeclaredType

BUSY = re.compile(r"still in use|assigned to share network|dependent|status must be one of", re.IGNORECASE)
"""The words of a deletion's refusal that does not last; the service answers 400 or 403 in place of 409."""


class ManilaType(DeclaredType):
    """Base of the types."""

    support_status = SupportStatus(version="5.0.0")
    service = "shared-file-system"

    def handle_delete(self, target: ResourceView, context: StepContext) -> Step:
        """Delete the thing.

        :raises RetryableError: something uses it, or the service works on it.
        """
        try:
            return super().handle_delete(target, context)
        except PermanentError as error:
            if BUSY.search(str(error)):
                raise RetryableError(f"still in use: {error}") from error
            raise


class DescribedManilaType(ManilaType):
    """Base of the types whose mark is in the description until the template's own is set."""

    def has_more(self, target: ResourceView) -> bool:
        """Return whether it has a description of its own, in the mark's place."""
        return bool(target.properties.get("description"))

    def after_create(self, target: ResourceView, context: StepContext) -> None:
        """Set the description."""
        if target.properties.get("description"):
            body = {"description": target.properties["description"]}
            self.service_for(context).put(self.path_of(target), self._wrapped(body))


def as_in_template(present: Mapping[str, Json], template: JsonMap | None) -> dict[str, Json]:
    """Return texts that the service has, in the form of the template where they mean the same."""
    by_text = {} if template is None else {(name, str(value)): value for name, value in template.items()}
    return {name: by_text.get((name, str(value)), value) for name, value in present.items()}
