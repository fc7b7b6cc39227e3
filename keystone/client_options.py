"""Settings for the calls to OpenStack's services: one set for all services, and one for each that differs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from os_service_types import ServiceTypes

from ..settings import Form, Seconds, setting

_TYPES = ServiceTypes()
_MICROVERSION = re.compile("[0-9]{1,3}[.][0-9]{1,3}")
HURRIED = 10.0
"""Seconds in which an answer must begin that something else waits for, and that is of little weight."""


def official_type(service_type: str) -> str:
    """Return the official name of a service type; a name that nobody has registered stays as it is.

    ``volumev3`` is ``block-storage``: service-types.openstack.org has the names.
    """
    return str(_TYPES.get_service_type(service_type) or service_type)


@dataclass(frozen=True)
class ClientSettings:
    """The calls to all services; the section of one service may say something else of each setting.

    :raises ValueError: a key has no certificate.
    """

    interface: str = setting(
        "endpoint_type",
        "public",
        "Interface of the services' endpoints in the service catalog: public, internal or admin.",
        pattern="^(public|internal|admin)(URL)?$",
    )
    region_name: str | None = setting(
        "region_name",
        None,
        "Region of the services' endpoints. Unset: the first endpoint of the service catalog.",
    )
    ca_file: str | None = setting(
        "ca_file",
        None,
        "File with the certificates of authorities that sign the services' certificates. Unset: cafile of "
        "[trustee], else those that the system trusts.",
    )
    cert_file: str | None = setting(
        "cert_file",
        None,
        "File with a client certificate to send to the services.",
    )
    key_file: str | None = setting(
        "key_file",
        None,
        "File with the key of cert_file. Unset: cert_file holds it, too.",
    )
    insecure: bool = setting(
        "insecure",
        False,
        "Do not verify the services' certificates. An attacker on the network can then read tokens and pose "
        "as a service.",
    )
    connect_retries: int = setting(
        "connect_retries",
        2,
        "Number of times that a call is repeated at once when the connection failed, but did not time out. "
        "Calls that create something are never repeated: their step is retried, and first searches for what "
        "was created.",
        least=0,
        most=20,
    )
    status_code_retries: int = setting(
        "status_code_retries",
        0,
        "Number of times that a call is repeated at once when the service answered 503. 0: the step is "
        "retried, which holds no thread between two attempts.",
        least=0,
        most=20,
    )
    timeout: Seconds = setting(
        "timeout",
        60.0,
        "Seconds that a service may take to accept a connection, and to begin its answer. A thread of the "
        "conductor waits meanwhile. 0: no limit.",
        least=0,
    )

    def __post_init__(self) -> None:
        if self.key_file and not self.cert_file:
            raise ValueError("key_file: cert_file is missing, the certificate of this key")

    @property
    def cert(self) -> str | tuple[str, str] | None:
        """Return the paths of a client's certificate and of its key, or of a file with both."""
        return (self.cert_file, self.key_file) if self.cert_file and self.key_file else self.cert_file or None


@dataclass(frozen=True)
class ParameterChecks:
    """The checks of parameters against the caller's cloud."""

    check_parameters: bool = setting(
        "check_parameters",
        True,
        "Whether a request that creates, updates, previews or validates a stack is refused at once if a "
        "custom constraint such as glance.image is not met. The services are asked with the user's token, "
        "for one second at most. False: the resource that uses the value fails.",
        is_mutable=True,
    )


@dataclass(frozen=True)
class OneServiceSettings:
    """The calls to one service.

    :raises ValueError: a microversion is none.
    """

    endpoint_override: str | None = setting(
        "endpoint_override",
        None,
        "Address of this service in place of the service catalog's. %(project_id)s in it is replaced by the "
        "id of the stack's project.",
        form=Form.HTTP_URL,
    )
    max_microversion: str | None = setting(
        "max_microversion",
        None,
        "The newest microversion to ask this service for, such as 2.79. Unset: each resource type asks for "
        "the one that it needs. With an older one some properties cannot be used.",
    )

    def __post_init__(self) -> None:
        newest = self.max_microversion
        if newest and not _MICROVERSION.fullmatch(newest):
            raise ValueError(f"max_microversion: must be like 2.79, not {newest}")


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

    interface: str = ClientSettings.interface
    region_name: str | None = None
    endpoint_override: str | None = None
    verify: bool | str | None = None
    cert: str | tuple[str, str] | None = None
    connect_retries: int = ClientSettings.connect_retries
    status_code_retries: int = ClientSettings.status_code_retries
    timeout: float | None = ClientSettings.timeout
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
