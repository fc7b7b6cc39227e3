"""The Orchestration API of a cloud, with the credentials of the environment, and its routes for admins."""

import typing
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from keystoneauth1.session import Session

from ...shapes import Json

FROM_CATALOG = "auto"
"""The address that stands for that of the service catalog."""
SERVICE = "orchestration"
VERSION = "/v1"


class NoCredentials(Exception):
    """The credentials for the API are missing or wrong, or its address is; the text says what is right."""


class NoProject(Exception):
    """Keystone has no such project, several of that name, or does not answer; the text says which."""


@dataclass(frozen=True)
class CloudAccess:
    """Access to the Orchestration API of a cloud.

    :ivar session: sends requests with a token of the credentials.
    :ivar address: the address of the API.
    :ivar project_id: the project of the credentials; None: they are for none, as without Keystone.
    :ivar find_project: a function that returns the id of a project by its name or id.  Without Keystone, and
        for users whom Keystone does not answer, its argument is the id.  It raises NoProject.
    """

    session: Session
    address: str
    project_id: str | None
    find_project: Callable[[str], str]


def open_cloud_access(address: str) -> CloudAccess:
    """Return access with the credentials of the ``openstack`` client: OS_* variables, or clouds.yaml.

    :param address: the address of the API, or `FROM_CATALOG`.
    :raises NoCredentials: there are no credentials, they are wrong, or the service catalog has no address.
    """
    try:
        import openstack  # noqa: PLC0415
    except ImportError as error:
        raise NoCredentials("it needs openstacksdk: pip install 'stoker[client]'") from error
    sdk: typing.Any = openstack
    try:
        cloud = sdk.config.OpenStackConfig(app_name="stoker-manage").get_one()
        session = cloud.get_session()
        project_id = session.get_project_id()
        if address == FROM_CATALOG:
            address = cloud.get_session_endpoint(SERVICE) or ""
    except (sdk.exceptions.ConfigException, ClientException) as error:
        raise NoCredentials(
            f"OS_* variables, or OS_CLOUD and clouds.yaml, must be credentials for a project: {error}"
        ) from error
    if not address:
        raise NoCredentials(f"the service catalog has no {SERVICE}: give the address of the API")
    find_project = _same if project_id is None else _project_finder(cloud, sdk)
    return CloudAccess(session, address, project_id, find_project)


def _same(project: str) -> str:
    return project


def _project_finder(cloud: typing.Any, sdk: typing.Any) -> Callable[[str], str]:
    """Return a function that asks Keystone for the id of a project.

    :param cloud: the region of openstacksdk with the credentials.
    :param sdk: the modules of openstacksdk, which is an extra.
    """

    def find(project: str) -> str:
        try:
            identity = sdk.connection.Connection(config=cloud).identity
            return str(identity.find_project(project, ignore_missing=False).id)
        except sdk.exceptions.ForbiddenException:
            return project
        except sdk.exceptions.NotFoundException as error:
            raise NoProject(f"Keystone has no project with the name or id {project}") from error
        except (sdk.exceptions.SDKException, ClientException) as error:
            raise NoProject(f"Keystone does not find the project {project}: {error}") from error

    return find


def split_address(address: str) -> tuple[str, str]:
    """Return the root of the API with its version, and the project that follows it; "": none does.

    :raises NoCredentials: the address is none of the API.
    """
    parts = urllib.parse.urlsplit(address)
    front, version, project = parts.path.rstrip("/").partition(VERSION)
    if parts.scheme not in ("http", "https") or not version or project.count("/") > 1:
        raise NoCredentials(
            f"{address} is not an address of the Orchestration API: it must be such as http://heat.example:8004/v1"
        )
    return f"{parts.scheme}://{parts.netloc}{front}{VERSION}", project.strip("/")


RETRIES = 2
MOST_SHOWN = 300
"""Characters of an answer's text that are shown."""
NOT_FOUND = 404


class ApiRefusal(Exception):
    """The API has refused a request, or does not answer; the text says why.

    :ivar status: status of the answer; None: there is no answer.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class OperatorApi:
    """Sends requests to the paths below ``/v1/admin``.

    :param adapter: sends requests with a token, below the path for admins.
    :param find_project: see `CloudAccess`.
    """

    def __init__(self, adapter: Adapter, find_project: Callable[[str], str]) -> None:
        self._adapter = adapter
        self._find_project = find_project

    def project_id(self, project: str) -> str:
        """Return the id of a project by its name or id.

        :raises ApiRefusal: there is no such project, or several have the name.
        """
        try:
            return self._find_project(project)
        except NoProject as error:
            raise ApiRefusal(str(error)) from error

    def request(self, method: str, path: str, body: Json = None) -> Json:
        """Return the body of an answer; None: it has none.

        :param path: the path below ``/v1/admin``, with its query.
        :raises ApiRefusal: the API refuses the request, or does not answer.
        """
        target = f"{method} /v1/admin{path}"
        options = {} if body is None else {"json": body}
        try:
            response = self._adapter.request(path, method, headers={"Accept": "application/json"}, **options)
        except ClientException as error:
            raise ApiRefusal(f"Stoker does not answer {target}: {str(error)[:MOST_SHOWN]}") from error
        status = response.status_code
        try:
            answer = response.json() if response.content else None
        except ValueError as error:
            raise ApiRefusal(f"{target} is answered by {status} and no JSON: is it Stoker's API?") from error
        if status >= 400:
            raise ApiRefusal(f"Stoker answers {status} to {target}: {_reason(answer)[:MOST_SHOWN]}", status)
        return answer


def open_operator_api(address: str) -> OperatorApi:
    """Return the routes for admins.

    :param address: the root of the API with its version, with or without a project, or `FROM_CATALOG`.
    :raises NoCredentials: there are no credentials, they are wrong, or the address is.
    """
    access = open_cloud_access(address)
    root, _ = split_address(access.address)
    adapter = Adapter(
        access.session,
        service_type=SERVICE,
        endpoint_override=f"{root}/admin",
        connect_retries=RETRIES,
        raise_exc=False,
        user_agent="stoker-manage",
    )
    return OperatorApi(adapter, access.find_project)


def _reason(answer: Json) -> str:
    """Return the reason in the body of a refusal, in the API's form or in that of Keystone's middleware."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return str(error.get("message") if isinstance(error, dict) else error or answer)
