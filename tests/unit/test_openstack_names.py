"""The table of kinds of things: it has all that templates may ask about."""

from stoker.resources.openstack.names import KINDS
from stoker.resources.openstack.service import INTERFACES
from stoker.template.custom_checks import OF_CLOUD

NO_SERVICE = {"expiration", "zaqar.queue"}
"""What a request checks without a service."""


def test_each_custom_constraint_of_a_service_can_be_asked() -> None:
    assert set(KINDS) == OF_CLOUD - NO_SERVICE
    assert {kind.service for kind in KINDS.values()} == set(INTERFACES)
