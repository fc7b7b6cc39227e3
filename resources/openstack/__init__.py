"""Resource types for the services of an OpenStack cloud, declared over their REST interfaces.

Names that the author of a declared type imports, besides ``stoker.resources``, and nothing else::

    from stoker.resources.openstack import DeclaredType, NamedRemote, StatusMeaning

The modules of this package may move; these names stay.  Stoker itself imports from the modules.
"""

from .bodies import NamedRemote
from .compared import ComparedType
from .declared import REMOTE, DeclaredType
from .marks import FieldMark, Mark, MetadataMark, NameMark, TagMark, chosen_id, mark_of
from .names import resolve
from .parts import PartType
from .polling import Poller, pause
from .service import Conflict, Interface, RemoteNotFound, Service, in_use, service_of
from .statuses import StatusMeaning

__all__ = [
    "REMOTE",
    "ComparedType",
    "Conflict",
    "DeclaredType",
    "FieldMark",
    "Interface",
    "Mark",
    "MetadataMark",
    "NameMark",
    "NamedRemote",
    "PartType",
    "Poller",
    "Service",
    "StatusMeaning",
    "TagMark",
    "RemoteNotFound",
    "chosen_id",
    "in_use",
    "mark_of",
    "pause",
    "resolve",
    "service_of",
]
