"""The access of a request's caller to OpenStack's services: their token, and its service catalog."""

import functools
import json
from dataclasses import dataclass, field

from keystoneauth1.access.access import AccessInfoV2
from keystoneauth1.access.service_catalog import ServiceCatalogV2
from keystoneauth1.identity.access import AccessInfoPlugin

from ..shapes import Json
from .client_options import ServiceOptions

_NEVER = "9999-12-31T23:59:59Z"


@dataclass(frozen=True)
class CallerAccess:
    """The access that a valid token gives.

    :ivar catalog_text: the service catalog as keystonemiddleware writes it into a header: JSON in the form of
        Keystone's version 2; None: the token has none.
    """

    token: str = field(repr=False)
    user_id: str
    project_id: str
    catalog_text: str | None = field(default=None, repr=False)

    @functools.cached_property
    def catalog(self) -> Json:
        """Return the service catalog, None if it is not known."""
        try:
            catalog = json.loads(self.catalog_text) if self.catalog_text else None
        except ValueError:
            return None
        return catalog if isinstance(catalog, list) else None

    def has_service(self, service_type: str, options: ServiceOptions) -> bool:
        """Return whether the catalog has an endpoint of a service; True where nothing is known."""
        if options.endpoint_override is not None or self.catalog is None:
            return True
        try:
            endpoints = ServiceCatalogV2(self.catalog).get_endpoints_data(
                service_type=service_type, interface=options.interface, region_name=options.region_name
            )
        except ValueError:
            # keystoneauth 5.16: the catalog has two names of the service, and neither has such an endpoint.
            return False
        return any(endpoints.values())

    def auth(self) -> AccessInfoPlugin:
        """Return a plugin of keystoneauth's that uses the token as it is, and never asks Keystone."""
        token = {"id": self.token, "expires": _NEVER, "tenant": {"id": self.project_id}}
        body = {"token": token, "user": {"id": self.user_id}, "serviceCatalog": self.catalog or []}
        return AccessInfoPlugin(AccessInfoV2({"access": body}, auth_token=self.token))
