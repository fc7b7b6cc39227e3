"""The contract between a resource type and the conductor that runs its steps: all that a type imports.

`stoker.resources` shows the author of a plugin the part of it that stays.  Who runs types, or compiles
templates, imports from the modules.
"""

from .children import ChildFailure, ChildGoal, ChildState, GroupMember
from .cloud import RemoteCloud
from .context import CloudCalls, Collection, GoalContext, StackReads, StepContext
from .errors import (
    Cancelled,
    ChildGone,
    NoAction,
    NotSupported,
    OverQuota,
    PermanentError,
    PropertyError,
    ReplaceNeeded,
    RetryableError,
    SignalError,
    raise_all,
)
from .guests import Presigned
from .implied import ImpliedDependency
from .known_stack import BrokenRule, KnownResource, KnownStack, Made, StackRule, Thing, rule_of_each
from .plugin import NOT_KNOWN, ResourceType, check_named
from .polled import PolledAlike
from .preflight import (
    Certainty,
    CloudFacts,
    CloudRule,
    Members,
    Misfit,
    PlannedStack,
    QueryValue,
    QuotaAmount,
    QuotaNeeds,
    needs_of,
)
from .schema import ANY_NAME, WITHOUT_EFFECT, Attribute, Property, PropertyType, SupportStatus
from .signals import Adjustment, Scaling, Signal
from .software import ConfigSpec, DeploymentSpec, DeploymentState
from .steps import Done, Park, Poll, Step
from .views import DeletionView, ReplacementView, ResourceView, Sibling, StackFacts, physical_name

__all__ = [
    "ANY_NAME",
    "Adjustment",
    "Attribute",
    "BrokenRule",
    "Cancelled",
    "Certainty",
    "ChildFailure",
    "ChildGoal",
    "ChildGone",
    "ChildState",
    "CloudCalls",
    "CloudFacts",
    "CloudRule",
    "Collection",
    "ConfigSpec",
    "DeletionView",
    "DeploymentSpec",
    "DeploymentState",
    "Done",
    "GoalContext",
    "GroupMember",
    "ImpliedDependency",
    "KnownResource",
    "KnownStack",
    "Made",
    "Members",
    "Misfit",
    "NOT_KNOWN",
    "NoAction",
    "NotSupported",
    "OverQuota",
    "Park",
    "PermanentError",
    "PlannedStack",
    "Poll",
    "PolledAlike",
    "Presigned",
    "Property",
    "PropertyError",
    "PropertyType",
    "QuotaAmount",
    "QueryValue",
    "QuotaNeeds",
    "RemoteCloud",
    "ReplaceNeeded",
    "ReplacementView",
    "ResourceType",
    "ResourceView",
    "RetryableError",
    "Scaling",
    "Sibling",
    "Signal",
    "SignalError",
    "StackFacts",
    "StackReads",
    "StackRule",
    "Step",
    "StepContext",
    "SupportStatus",
    "Thing",
    "WITHOUT_EFFECT",
    "check_named",
    "needs_of",
    "physical_name",
    "raise_all",
    "rule_of_each",
]
