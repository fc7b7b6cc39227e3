"""Calls of the orchestration service in another region or cloud, with the credential that a secret holds."""

import re
import typing

from ....shapes import Json, JsonMap
from ...contract import PermanentError, RemoteCloud, ResourceView, RetryableError, StepContext
from ..service import RemoteNotFound, Service, service_of

SECRET_ID = re.compile(r"(?:.*/secrets/)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})/?")
"""An id of Barbican's, or the address that ``openstack secret store`` shows."""
TEXT = "text/plain"
WRONG = "context.credential_secret_id"
"""The property, for errors."""


def cloud_of(properties: JsonMap) -> RemoteCloud:
    """Return the place that the properties of a stack name."""
    context = properties.get("context") or {}
    return RemoteCloud(
        region=context.get("region_name") or None,
        credential_secret_id=context.get("credential_secret_id") or None,
        ca_cert=context.get("ca_cert") or None,
        insecure=bool(context.get("insecure")),
    )


def location_of(cloud: RemoteCloud) -> str:
    """Return the place in Heat's words."""
    return "remote cloud" if cloud.credential_secret_id else f'region "{cloud.region or "":.255}"'


def orchestration(target: ResourceView, context: StepContext) -> Service:
    """Return the calls of the orchestration service that has a resource's stack.

    :raises PermanentError: the place, or the credential for it, is wrong; in Heat's words.
    :raises RetryableError: the place cannot be reached now.
    """
    cloud = cloud_of(target.properties)
    name = f'Cannot establish connection to Heat endpoint at {location_of(cloud)} due to "'
    try:
        adapter = context.remote_adapter(
            cloud, "orchestration", "1", lambda: credential(cloud.credential_secret_id or "", context)
        )
    except RetryableError as error:
        raise RetryableError(f'{name}{error}"', after=error.after, at_least=error.at_least) from error
    except PermanentError as error:
        raise PermanentError(f'{name}{error}"', kind=error.kind) from error
    return Service(adapter)


def credential(secret: str, context: StepContext) -> Json:
    """Return the document of a secret of Barbican's, with the rights of the stack's user.

    :raises PermanentError: there is no such secret, or no Barbican, or the secret is no JSON.
    :raises RetryableError: Barbican is unavailable.
    """
    match = SECRET_ID.fullmatch(secret)
    if match is None:
        raise PermanentError(f"{WRONG}: must be the id of a secret, not {secret:.100}", kind="BadRequest")
    path = f"/secrets/{match[1]}"
    try:
        barbican = service_of(context, "key-manager")
        kind = (barbican.get(path).get("content_types") or {}).get("default", TEXT)
        # The reader is a parser of JSON, and its errors quote nothing.
        return barbican.get_as(str(kind), f"{path}/payload")
    except RemoteNotFound as error:
        raise PermanentError(f"{WRONG}: there is no secret {match[1]}: {error}", kind="NotFound") from error
    except PermanentError as error:
        raise PermanentError(f"{WRONG}: {error}", kind=error.kind) from error
    except ValueError:
        text = f"{WRONG}: the secret {match[1]} is not JSON"
    raise PermanentError(text, kind="AuthorizationFailure")


def as_text(values: typing.Iterable[str] | None) -> str:
    """Return tags as requests have them."""
    return ",".join(values or ())
