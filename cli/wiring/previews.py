"""The collaborators of the handlers of previews."""

import typing
from collections.abc import Mapping

from ...engine.context import EngineContext
from ...features.preview.updates import Previews
from ...features.preview.validation import Validation
from .parts import Parts


def make_previews(parts: Parts, context: EngineContext) -> Mapping[type, typing.Any]:
    """Return the collaborators by type, as `Feature.services`."""
    return {Previews: Previews(context), Validation: Validation(context)}
