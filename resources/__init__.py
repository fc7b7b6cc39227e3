"""Resource types: what the author of a plugin imports, and nothing else.

    from stoker.resources import Done, Json, Poll, Property, ResourceType, ResourceView, Step, StepContext

The modules of this package may move; these names stay.  Stoker itself imports from the modules.
"""

from ..shapes import Json
from ..template.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from .contract.context import StepContext
from .contract.errors import (
    Cancelled,
    NotSupported,
    PermanentError,
    PropertyError,
    ReplaceNeeded,
    RetryableError,
    SignalError,
)
from .contract.guests import Presigned
from .contract.implied import ImpliedDependency
from .contract.plugin import ResourceType
from .contract.schema import ANY_NAME, Attribute, Property, SupportStatus
from .contract.signals import Signal
from .contract.steps import Done, Park, Poll, Step
from .contract.views import DeletionView, ReplacementView, ResourceView, Sibling, StackFacts

__all__ = [
    "ANY_NAME",
    "AllowedPattern",
    "AllowedValues",
    "Attribute",
    "Cancelled",
    "Custom",
    "DeletionView",
    "Done",
    "ImpliedDependency",
    "Json",
    "Length",
    "Modulo",
    "NotSupported",
    "Park",
    "PermanentError",
    "Poll",
    "Presigned",
    "Property",
    "PropertyError",
    "Range",
    "ReplaceNeeded",
    "ReplacementView",
    "ResourceType",
    "ResourceView",
    "RetryableError",
    "Sibling",
    "Signal",
    "SignalError",
    "StackFacts",
    "Step",
    "StepContext",
    "SupportStatus",
]
