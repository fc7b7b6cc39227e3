"""Adapters for services in another region, or in another cloud of which a user has a credential."""

import functools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keystoneauth1 import exceptions, loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ..settings import Form, setting
from ..shapes import Json, JsonMap
from .client_options import ClientOptions
from .guarded_http import AllowedHosts, GuardedRequests, GuardedSession, own_http_session
from .service_clients import KEPT, derived_session, service_adapter

AUTH_TYPES = (
    "v3applicationcredential",
    "v3password",
    "v3token",
    "password",
    "token",
)
"""Kinds of credentials: those that neither read a file nor ask another service than Keystone."""
_SHAPE = (
    'it must be JSON like {"auth_type": "v3applicationcredential", "auth": {"auth_url": "https://…", '
    '"application_credential_id": "…", "application_credential_secret": "…"}}'
)


class WrongCredential(Exception):
    """The credential is malformed, or the other cloud refuses it; the text holds nothing of it."""


class WrongCertificate(Exception):
    """The certificates of authorities cannot be read."""


class RemoteUnavailable(Exception):
    """The other cloud's Keystone does not answer."""


@dataclass(frozen=True)
class RemotePlace:
    """Another region or cloud.

    :ivar region: name of the region; None: the first one of the service catalog that has the service.
    :ivar ca_cert: certificates of authorities, in PEM; None: those for other services.
    :ivar insecure: whether certificates are accepted unverified.
    :ivar credential: credential of another cloud, as its secret has it; None: this cloud, with the rights of
        the session.
    """

    region: str | None = None
    ca_cert: str | None = None
    insecure: bool = False
    credential: JsonMap | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RemoteCloudSettings:
    """The other clouds that stacks may be in."""

    hosts: Sequence[str] = setting(
        "remote_cloud_hosts",
        (),
        "Hosts, NAME (all ports) or NAME:PORT, separated by commas, that a credential in "
        "`credential_secret_id` of OS::Heat::Stack may name: the other cloud's Keystone, and the services "
        "in its service catalog. Users can make conductors send requests there. `*`: all others, too, whose "
        "addresses are public. No request is sent to metadata services. Empty: no stacks in other clouds.",
    )
    proxy: str | None = setting(
        "remote_cloud_proxy",
        None,
        "Address of a proxy for the requests to other clouds. It decides which addresses are reached, so it "
        "must refuse private ones. Proxies of the environment are not used for these requests.",
        form=Form.HTTP_URL,
    )


class RemoteClouds:
    """Makes adapters.  Thread-safe.

    :param hosts: hosts that credentials may name: ``NAME``, ``NAME:PORT``, or ANY_HOST.
    :param proxy: address of a proxy for requests to other clouds; None: no proxy.
    """

    def __init__(
        self, options: ClientOptions | None = None, hosts: Sequence[str] = (), proxy: str | None = None
    ) -> None:
        self._options = options or ClientOptions()
        self._proxy = proxy
        self._hosts = AllowedHosts(hosts)
        self._derived = functools.lru_cache(KEPT)(_derive)

    def adapter(self, session: Session, place: RemotePlace, service: str, version: str) -> Adapter:
        """Return the adapter of a service in the place.

        :param session: session with the rights of the stack, for places of this cloud.
        :param version: the major version of its interface.
        :raises WrongCredential: the credential is malformed, or the other cloud refuses it.
        :raises WrongCertificate: the certificates of authorities cannot be read.
        :raises RemoteUnavailable: the other cloud's Keystone does not answer.
        :raises NoSuchService, ServiceUnavailable: the reasons of ServiceClients.adapter.
        """
        options = replace(self._options.of(service), region_name=place.region, endpoint_override=None)
        verify = False if place.insecure else (True if place.ca_cert else options.verify)
        try:
            if place.credential is None:
                derived = self._derived(session, verify, options.cert, place.ca_cert)
                return service_adapter(options, derived, service, version)
            http = GuardedRequests(self._hosts, place.ca_cert, proxy=self._proxy)
        except ValueError as error:
            raise WrongCertificate(str(error)) from error
        elsewhere = GuardedSession(
            http, auth=_plugin(place.credential), verify=not place.insecure, timeout=options.timeout
        )
        _check(elsewhere)
        options = replace(options, interface="public", verify=None, cert=None, connect_retries=0)
        return service_adapter(options, elsewhere, service, version)


def _derive(
    session: Session, verify: bool | str | None, cert: str | tuple[str, str] | None, ca_cert: str | None
) -> Session:
    """Return a session with the rights of another one; a ValueError says that the certificates are none."""
    http = None if ca_cert is None else own_http_session(ca_cert)
    return derived_session(session, verify, cert, http)


def parse_credential(document: Json) -> JsonMap:
    """Return the document, if it has the parts of a credential.

    :raises WrongCredential: a part is missing or wrong; the text names the right form.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("auth"), Mapping):
        raise WrongCredential(_SHAPE)
    kind = document.get("auth_type")
    auth = document["auth"]
    if kind not in AUTH_TYPES:
        raise WrongCredential(f"its auth_type must be one of {', '.join(AUTH_TYPES)}")
    option_names = {option.dest for option in loading.get_plugin_loader(kind).get_options()}
    if wrong := [str(name) for name in auth if name not in option_names]:
        raise WrongCredential(f"{kind} has no option {wrong[0]:.100}")
    if wrong := [name for name, value in auth.items() if not isinstance(value, str)]:
        raise WrongCredential(f"the option {wrong[0]} must be a text")
    if not str(auth.get("auth_url", "")).startswith(("https://", "http://")):
        raise WrongCredential("its auth_url must be an address, https://…")
    return document


def secrets_of(document: Json) -> list[str]:
    """Return the parts of a credential that are secrets.

    :raises WrongCredential: a part of the credential is missing or wrong.
    """
    credential = parse_credential(document)
    options = loading.get_plugin_loader(credential["auth_type"]).get_options()
    auth = credential["auth"]
    return [auth[option.dest] for option in options if option.secret and option.dest in auth]


def _plugin(credential: JsonMap) -> BaseAuthPlugin:
    document = parse_credential(credential)
    try:
        loader: Json = loading.get_plugin_loader(document["auth_type"])
        plugin = loader.load_from_options(**document["auth"])
    except exceptions.MissingRequiredOptions as error:
        raise WrongCredential(str(error)) from error
    return typing.cast(BaseAuthPlugin, plugin)


def _check(session: Session) -> None:
    """Check that the credential gives a token for a project.

    :raises WrongCredential: the other cloud refuses the credential, or its token is for no project.
    :raises RemoteUnavailable: the other cloud's Keystone does not answer.
    """
    try:
        session.get_token()
        project = session.get_project_id()
    except (exceptions.ConnectionError, exceptions.RetriableConnectionFailure) as error:
        raise RemoteUnavailable(str(error)) from error
    except exceptions.HttpError as error:
        if error.http_status >= 500 or error.http_status == 429:
            raise RemoteUnavailable(str(error)) from error
        raise WrongCredential(f"Keystone refuses it: {error}") from error
    except exceptions.ClientException as error:
        raise WrongCredential(f"{type(error).__name__}: {error}") from error
    if project is None:
        raise WrongCredential("it must be scoped to a project")
