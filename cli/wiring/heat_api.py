"""Heat's Orchestration API, with the credentials of the environment or of clouds.yaml."""

from collections.abc import Mapping

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from keystoneauth1.session import Session

from ...features.moves.inward.api_reader import Get, HeatApi, HeatRefusal
from ...keystone.guarded_http import bounded_session
from ...shapes import Json
from .operator_api import SERVICE, NoCredentials, open_cloud_access, split_address

RETRIES = 2
LONGEST = 300.0
"""Seconds for one call: an export of a large tree takes a while."""
MOST_BYTES = 256 * 1024 * 1024
"""Size of an answer above which it is not read: an export has all files of a tree."""
MOST_SHOWN = 200
"""Characters of an answer's text that are shown."""


def open_heat_api(address: str, parameters: Mapping[str, Json]) -> HeatApi:
    """Return Heat's API for the project of the credentials, which are those of the ``openstack`` client.

    :param address: root of the API with its version, such as ``http://heat.example:8004/v1``; or
        ``auto``.
    :param parameters: values for hidden parameters, by name, in clear.
    :raises NoCredentials: there are none, they are wrong, or the address is.
    """
    access = open_cloud_access(address)
    root, project_id = project_root(access.address, access.project_id)
    return HeatApi(getter(access.session, root), project_id, parameters)


def project_root(address: str, project_id: str | None) -> tuple[str, str]:
    """Return the address below which a project's stacks are, and the project's id.

    :param project_id: the project of the credentials; None: that of the address.
    :raises NoCredentials: the address is none of the API, or is another project's.
    """
    root, named = split_address(address)
    if project_id is None and not named:
        raise NoCredentials(f"neither the credentials nor the address {address} name a project")
    if project_id and named not in ("", project_id):
        raise NoCredentials(f"{address} is of the project {named}, the credentials are for {project_id}")
    project_id = project_id or named
    return f"{root}/{project_id}", project_id


def getter(session: Session, root: str) -> Get:
    """Return the function that sends requests below an address.

    It follows no redirect, which would give the operator's token to another host, and a call is bounded.
    """
    adapter = Adapter(
        bounded_session(session, seconds=LONGEST, most_bytes=MOST_BYTES),
        service_type=SERVICE,
        endpoint_override=root,
        connect_retries=RETRIES,
        status_code_retries=RETRIES,
        raise_exc=False,
        user_agent="stoker-manage",
    )

    def get(path: str) -> Json:
        try:
            response = adapter.get(path, headers={"Accept": "application/json"}, redirect=False)
        except ClientException as error:
            raise HeatRefusal(f"Heat does not answer GET {path}: {str(error)[:MOST_SHOWN]}") from error
        if response.status_code != 200:
            status = response.status_code
            raise HeatRefusal(f"Heat answers {status} to GET {path}: {response.text[:MOST_SHOWN]}", status)
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise HeatRefusal(f"Heat answers no JSON to GET {path}: is it the Orchestration API?") from error

    return get
