"""Resource types for the services of an OpenStack cloud, declared over their REST interfaces.

What the author of a declared type imports, besides ``stoker.resources``, and nothing else::

    from stoker.resources.openstack import DeclaredType, NamedThing, StatusMeaning

The modules of this package may move; these names stay.  Stoker itself imports from the modules.
"""

from .bodies import NamedThing
from .declared import THING, DeclaredType
from .marks import FieldMark, Mark, MetadataMark, NameMark, TagMark, chosen_id, mark_of
from .names import resolve
from .polling import Poller, pause
from .service import Conflict, Interface, Service, ThingNotFound, in_use, service_of
from .statuses import StatusMeaning

__all__ = [
    "THING",
    "Conflict",
    "DeclaredType",
    "FieldMark",
    "Interface",
    "Mark",
    "MetadataMark",
    "NameMark",
    "NamedThing",
    "Poller",
    "Service",
    "StatusMeaning",
    "TagMark",
    "ThingNotFound",
    "chosen_id",
    "in_use",
    "mark_of",
    "pause",
    "resolve",
    "service_of",
]
