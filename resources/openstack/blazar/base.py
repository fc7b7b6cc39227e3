"""The common part of the types of reservations."""

from ....shapes import JsonMap
from ...contract import ResourceView, SupportStatus
from ..compared import ComparedType


class BlazarType(ComparedType):
    """Base of the types; as in Heat nothing of them changes in place."""

    support_status = SupportStatus(version="12.0.0")
    service = "reservation"
    list_parameters = {}
    identity = "the name; Stoker first stores which of them have it"

    def request(self, body: JsonMap, target: ResourceView) -> JsonMap:
        return body
