"""The routes of Stoker's API for admins, with the credentials of the environment or of clouds.yaml."""

from collections.abc import Callable

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException

from ...shapes import Json
from .cloud_access import SERVICE, NoProject, open_cloud_access, split_address

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
