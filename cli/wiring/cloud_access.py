"""The Orchestration API of a cloud, with the credentials of the environment or of clouds.yaml."""

import urllib.parse
from dataclasses import dataclass

from keystoneauth1.exceptions import ClientException
from keystoneauth1.session import Session

FROM_CATALOG = "auto"
"""The address that stands for that of the service catalog."""
SERVICE = "orchestration"
VERSION = "/v1"


class NoCredentials(Exception):
    """The credentials for the API are missing or wrong, or its address is; the text says what is right."""


@dataclass(frozen=True)
class CloudAccess:
    """Access to the Orchestration API of a cloud.

    :ivar session: sends requests with a token of the credentials.
    :ivar address: the address of the API.
    :ivar project_id: the project of the credentials; None: they are for none, as without Keystone.
    """

    session: Session
    address: str
    project_id: str | None


def open_cloud_access(address: str) -> CloudAccess:
    """Return access with the credentials of the ``openstack`` client: OS_* variables, or clouds.yaml.

    :param address: the address of the API, or `FROM_CATALOG`.
    :raises NoCredentials: there are no credentials, they are wrong, or the service catalog has no address.
    """
    try:
        from openstack import config, exceptions  # noqa: PLC0415
    except ImportError as error:
        raise NoCredentials("it needs openstacksdk: pip install 'stoker[client]'") from error
    try:
        cloud = config.OpenStackConfig(app_name="stoker-manage").get_one()
        session = cloud.get_session()
        project_id = session.get_project_id()
        if address == FROM_CATALOG:
            address = cloud.get_session_endpoint(SERVICE) or ""
    except (exceptions.ConfigException, ClientException) as error:
        raise NoCredentials(
            f"OS_* variables, or OS_CLOUD and clouds.yaml, must be credentials for a project: {error}"
        ) from error
    if not address:
        raise NoCredentials(f"the service catalog has no {SERVICE}: give the address of the API")
    return CloudAccess(session, address, project_id)


def split_address(address: str) -> tuple[str, str]:
    """Return the root of the API with its version, and the project that follows it; "": none does.

    :raises NoCredentials: the address is none of the API.
    """
    parts = urllib.parse.urlsplit(address)
    front, version, project = parts.path.rstrip("/").partition(VERSION)
    if parts.scheme not in ("http", "https") or not version or project.count("/") > 1:
        raise NoCredentials(
            f"{address} is no address of the Orchestration API: it must be such as http://heat.example:8004/v1"
        )
    return f"{parts.scheme}://{parts.netloc}{front}{VERSION}", project.strip("/")
