"""Other regions and clouds, as resources name them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteCloud:
    """Another region of the cloud, or another cloud: as the properties of OS::Heat::Stack name it.

    :ivar region: None: the first one of the service catalog that has the service.
    """

    region: str | None = None
    credential_secret_id: str | None = None
    ca_cert: str | None = None
    insecure: bool = False
