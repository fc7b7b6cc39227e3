"""Endpoints of services, in the own cloud and elsewhere: their failures become errors of the step."""

import typing
from collections.abc import Callable, Sequence

from ...keystone.client_options import ClientOptions
from ...keystone.remote_clouds import (
    RemoteClouds,
    RemotePlace,
    RemoteUnavailable,
    WrongCertificate,
    WrongCredential,
    secrets_of,
)
from ...keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from ...resources.contract.cloud import RemoteCloud
from ...resources.contract.errors import PermanentError, RetryableError
from ...shapes import Json

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session

KEPT = 300.0
"""Seconds for which a remote endpoint is kept; then its credential and the service catalog are read again."""


class Endpoints:
    """Makes adapters of services.  Thread-safe.

    :param remote_hosts: hosts of other clouds, as of RemoteClouds.
    :param remote_proxy: the proxy on the way to them; None: there is none.
    """

    def __init__(
        self,
        options: ClientOptions | None = None,
        remote_hosts: Sequence[str] = (),
        remote_proxy: str | None = None,
    ) -> None:
        self._clients = ServiceClients(options)
        self._clouds = RemoteClouds(options, remote_hosts, remote_proxy)

    def adapter(
        self,
        session: "Session",
        service: str,
        version: str,
        microversion: str | None,
        *,
        is_hurried: bool = False,
    ) -> "Adapter":
        """Return the adapter of a service of the own cloud.

        :param is_hurried: calls end early where the service does not answer.
        :raises PermanentError, RetryableError: see StepContext.adapter.
        """
        try:
            return self._clients.adapter(session, service, version, microversion, is_hurried=is_hurried)
        except NoSuchService as error:
            raise PermanentError(str(error), kind="ResourceTypeUnavailable") from error
        except ServiceUnavailable as error:
            raise RetryableError(str(error)) from error

    def remote(
        self,
        session: "Session",
        cloud: RemoteCloud,
        service: tuple[str, str],
        credential: Callable[[], Json],
        hide: Callable[[Json], None],
    ) -> tuple[Sequence[str], "Adapter"]:
        """Return the secrets of the credential, and the adapter of a service elsewhere.

        :param session: with the stack's own rights.
        :param service: its type, and the version of its interface.
        :param hide: remembers a value as a secret.
        :raises PermanentError, RetryableError: see StepContext.remote_adapter.
        """
        secret = None if cloud.credential_secret_id is None else credential()
        place = RemotePlace(cloud.region, cloud.ca_cert, cloud.insecure, secret)
        try:
            secrets = () if secret is None else secrets_of(secret)
            hide(secrets)
            return secrets, self._clouds.adapter(session, place, *service)
        except WrongCredential as error:
            text = f"context.credential_secret_id: the credential of the secret: {error}"
            raise PermanentError(text, kind="AuthorizationFailure") from error
        except WrongCertificate as error:
            raise PermanentError(f"context.ca_cert: {error}", kind="StackValidationFailed") from error
        except NoSuchService as error:
            raise PermanentError(str(error), kind="EndpointNotFound") from error
        except (RemoteUnavailable, ServiceUnavailable) as error:
            raise RetryableError(str(error)) from error
