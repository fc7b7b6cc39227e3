"""The guests that apply software, and the quotas of projects, from the parts of a process."""

import typing
from collections.abc import Mapping

from ...engine.context import EngineContext
from ...engine.guests import Guests
from ...engine.quotas import Quotas
from ...engine.signal_urls import SignalAddresses
from ...features.quotas.operations import QuotaOperations
from ...features.software.views import guest_config_view
from ...sealing.sealer import Sealer
from .parts import Parts


def make_guests(context: EngineContext, addresses: SignalAddresses, sealer: Sealer) -> Guests:
    """Return the service that answers the polls of guests."""
    return Guests(context, addresses, lambda config: guest_config_view(config, sealer))


def make_quotas(parts: Parts, context: EngineContext) -> Mapping[type, typing.Any]:
    """Return the operations on quotas of projects, as `Feature.services`."""
    return {QuotaOperations: QuotaOperations(context.database, context.settings.quotas or Quotas())}
