"""The list of a service that has all things of a type, by which the duty Drift observes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...shapes import JsonMap
from .context import StepContext


@dataclass(frozen=True)
class Collection:
    """A list of a service.  Types whose collections are equal share one reading of it.

    :ivar service: the service's type in the service catalog.
    :ivar path: path of the list.
    :ivar read: function that returns the things of a project by physical id; its arguments are the context
        and the id of the project.  It raises the errors of a step.
    """

    service: str
    path: str
    read: Callable[[StepContext, str], Mapping[str, JsonMap]] = field(compare=False, repr=False)
