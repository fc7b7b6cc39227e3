"""Settings for the calls to OpenStack's services: one set for all services, and one for each that differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from os_service_types import ServiceTypes

_TYPES = ServiceTypes()
HURRIED = 10.0
"""Seconds in which an answer must begin that something else waits for, and that is of little weight."""


def official_type(service_type: str) -> str:
    """Return the official name of a service type; a name that nobody has registered stays as it is.

    ``volumev3`` is ``block-storage``: service-types.openstack.org has the names.
    """
    return str(_TYPES.get_service_type(service_type) or service_type)


@dataclass(frozen=True)
class ServiceOptions:
    """Settings for the calls to one service.

    :ivar interface: interface of its endpoint in the service catalog: public, internal or admin.
    :ivar region_name: region of its endpoint; None: the first of the service catalog.
    :ivar endpoint_override: endpoint in place of the service catalog's; ``%(project_id)s`` is the project's
        id.
    :ivar verify: path of the certificates of authorities to trust; False: no certificate is checked; None:
        the setting of the session.
    :ivar cert: paths of a client's certificate and of its key, or of a file with both; None: the setting of
        the session.
    :ivar connect_retries: repetitions of a call whose connection failed; never of a POST.
    :ivar status_code_retries: repetitions of a call that the service answered with 503; never of a POST.
    :ivar timeout: seconds for each connection and for each pause of an answer; None: no limit.
    :ivar max_microversion: the newest microversion of a call; None: the one that a resource type needs.
    """

    interface: str = "public"
    region_name: str | None = None
    endpoint_override: str | None = None
    verify: bool | str | None = None
    cert: str | tuple[str, str] | None = None
    connect_retries: int = 2
    status_code_retries: int = 0
    timeout: float | None = 60.0
    max_microversion: str | None = None

    def hurried(self) -> "ServiceOptions":
        """Return the settings for calls that nobody waits long for: a short timeout, and no repetition."""
        timeout = HURRIED if self.timeout is None else min(HURRIED, self.timeout)
        return replace(self, timeout=timeout, connect_retries=0, status_code_retries=0)


@dataclass(frozen=True)
class ClientOptions:
    """Settings for the calls to all services.

    :ivar default: settings of the services that have none of their own.
    :ivar services: settings by official service type.
    """

    default: ServiceOptions = ServiceOptions()
    services: Mapping[str, ServiceOptions] = field(default_factory=dict)

    def of(self, service_type: str) -> ServiceOptions:
        """Return the settings of a service, whichever of its names is given."""
        return self.services.get(official_type(service_type), self.default)
