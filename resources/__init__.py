"""Resource types: what the author of a plugin imports, and nothing else.

    from stoker.resources import Done, Json, Poll, Property, ResourceType, ResourceView, Step, StepContext

The modules of this package may move; these names stay.  Stoker itself imports from the modules.
"""

from ..shapes import Json
from ..template.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from .contract import (
    ANY_NAME,
    Attribute,
    Cancelled,
    DeletionView,
    Done,
    ImpliedDependency,
    NotSupported,
    Park,
    PermanentError,
    Poll,
    Presigned,
    Property,
    PropertyError,
    ReplacementView,
    ReplaceNeeded,
    ResourceType,
    ResourceView,
    RetryableError,
    Sibling,
    Signal,
    SignalError,
    StackFacts,
    Step,
    StepContext,
    SupportStatus,
)

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
