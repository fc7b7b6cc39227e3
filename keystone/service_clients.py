"""Adapters for the services of the cloud: endpoint, region, microversion, as the configuration says."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keystoneauth1 import discover, exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session


class NoSuchService(Exception):
    """The service catalog has no endpoint of the service."""


class ServiceUnavailable(Exception):
    """The service did not say which versions it has."""


@dataclass(frozen=True)
class ClientOptions:
    """How one service is called.

    :ivar interface: of its endpoints in the service catalog.
    :ivar region_name: None: the only region, or the first.
    :ivar endpoint_override: the address in place of the service catalog's; None: the service catalog's.
    :ivar max_microversion: the newest microversion that may be used; None: no limit.
    :ivar connect_retries: how often a connection is tried again within one call.
    """

    interface: str = "public"
    region_name: str | None = None
    endpoint_override: str | None = None
    max_microversion: str | None = None
    connect_retries: int = 0


@dataclass(frozen=True)
class ServiceClients:
    """Makes adapters.  Immutable.

    :ivar options: by the service's type in the service catalog.
    :ivar others: of services without options of their own.
    """

    options: Mapping[str, ClientOptions] = field(default_factory=dict)
    others: ClientOptions = ClientOptions()

    def adapter(self, session: Session, service: str, version: str, microversion: str | None) -> Adapter:
        """Return the adapter of a service.

        :param version: the major version of its interface.
        :param microversion: the newest that the caller knows; an older service gets its own newest.
        :raises NoSuchService, ServiceUnavailable: as they say.
        """
        chosen = self.options.get(service, self.others)
        adapter = Adapter(
            session,
            service_type=service,
            interface=chosen.interface,
            region_name=chosen.region_name,
            endpoint_override=chosen.endpoint_override,
            min_version=version,
            max_version=f"{version.split('.')[0]}.latest",
            connect_retries=chosen.connect_retries,
        )
        if microversion is not None:
            adapter.default_microversion = _negotiated(adapter, microversion, chosen.max_microversion)
        return adapter


def _negotiated(adapter: Adapter, wanted: str, limit: str | None) -> str:
    """Return the newest microversion that the caller, the configuration and the service know."""
    versions = [discover.normalize_version_number(wanted)]
    if limit is not None:
        versions.append(discover.normalize_version_number(limit))
    try:
        data = adapter.get_endpoint_data()
    except (exceptions.EndpointNotFound, exceptions.CatalogException) as error:
        raise NoSuchService(f"the cloud has no service of type {adapter.service_type}: {error}") from error
    except exceptions.ClientException as error:
        raise ServiceUnavailable(f"{adapter.service_type}: {error}") from error
    if data is not None and data.max_microversion is not None:
        versions.append(data.max_microversion)
    return str(discover.version_to_string(min(versions)))
