"""Adapters for the services of the cloud: endpoint, region, certificates, microversion."""

import functools
import time
from collections.abc import Mapping

import requests
from keystoneauth1 import discover, exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ..shapes import Json
from .client_options import ClientOptions, ServiceOptions

PAUSE = 0.5
"""Seconds until a call whose connection failed is repeated."""
KEPT = 256
"""Sessions with certificates of their own that are kept, those used last."""
_WITHOUT_VERSIONS = frozenset({"object-store"})
"""Services that list no versions: that of the address in the service catalog is the only one."""
_MICROVERSION_NAMES: Mapping[str, str] = {"application-container": "container"}
"""Names of services in the header of microversions, where it is not the type in the service catalog."""
_CREATING = frozenset({"POST", "PATCH"})
"""Methods of calls that are not sent again where a connection has ended: the first may have been received."""


class NoSuchService(Exception):
    """The service catalog has no endpoint of the service."""


class ServiceUnavailable(Exception):
    """The service did not say which versions it has."""


class ServiceClients:
    """Makes adapters.  Thread-safe."""

    def __init__(self, options: ClientOptions | None = None) -> None:
        self._options = options or ClientOptions()
        self._derived = functools.lru_cache(KEPT)(derived_session)

    def adapter(
        self,
        session: Session,
        service: str,
        version: str,
        microversion: str | None,
        *,
        is_hurried: bool = False,
    ) -> Adapter:
        """Return the adapter of a service.

        :param version: the major version of its interface.
        :param microversion: the newest that the caller knows; an older service gets its own newest.
        :param is_hurried: whether calls end early if the service does not answer; see ServiceOptions.hurried.
        :raises NoSuchService: the service catalog has no endpoint of the service.
        :raises ServiceUnavailable: the service did not say which versions it has.
        """
        options = self._options.of(service)
        options = options.hurried() if is_hurried else options
        if options.verify is not None or options.cert is not None:
            session = self._derived(session, options.verify, options.cert)
        return service_adapter(options, session, service, version, microversion)


def service_adapter(
    options: ServiceOptions, session: Session, service: str, version: str, microversion: str | None = None
) -> Adapter:
    """Return the adapter of a service, with its own options; as `ServiceClients.adapter`.

    :raises NoSuchService: the service catalog has no endpoint of the service.
    :raises ServiceUnavailable: the service did not say which versions it has.
    """
    has_versions = service not in _WITHOUT_VERSIONS
    adapter = _ServiceAdapter(
        options,
        session,
        service_type=service,
        interface=options.interface,
        region_name=options.region_name,
        min_version=version if has_versions else None,
        max_version=f"{version.split('.')[0]}.latest" if has_versions else None,
        connect_retries=options.connect_retries,
        status_code_retries=options.status_code_retries,
    )
    if options.endpoint_override is not None:
        # The address may be that of all versions of the service, as many service catalogs have it.
        adapter.endpoint_override = options.endpoint_override.replace(
            "%(project_id)s", adapter.get_project_id() or ""
        )
    if not has_versions:
        _check_listed(adapter)
        return adapter
    data = _endpoint_data(adapter)
    if options.endpoint_override is not None:
        adapter.endpoint_override = data.url
    if microversion is not None:
        limits = [_number(microversion), _number(options.max_microversion), data.max_microversion]
        newest = min(number for number in limits if number is not None)
        adapter.default_microversion = str(discover.version_to_string(newest))
    return adapter


class _ServiceAdapter(Adapter):
    """An adapter that applies the options to each call."""

    def __init__(self, options: ServiceOptions, session: Session, **settings: Json) -> None:
        super().__init__(session, **settings)
        self._options = options

    def request(self, url: str, method: str, **kwargs: Json) -> Json:
        """Send a request; see Session.request.

        keystoneauth takes a service that does not answer in time for a failed connection, and would repeat
        the call at once: a silent service would hold the thread for several timeouts.
        """
        kwargs.setdefault("timeout", self._options.timeout)
        kwargs.setdefault("microversion_service_type", _MICROVERSION_NAMES.get(str(self.service_type)))
        if method in _CREATING:
            kwargs |= {"connect_retries": 0, "status_code_retries": 0}
        repetitions = kwargs.pop("connect_retries", self._options.connect_retries)
        while True:
            try:
                return super().request(url, method, connect_retries=0, **kwargs)
            except exceptions.ConnectTimeout:
                raise
            except exceptions.RetriableConnectionFailure:
                if repetitions <= 0:
                    raise
            repetitions -= 1
            time.sleep(kwargs.get("connect_retry_delay", PAUSE))


class _AuthOfSession(BaseAuthPlugin):
    """The rights of another session, which alone talks to Keystone, with certificates of its own."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def get_token(self, session: Session, **kwargs: Json) -> str | None:
        """Return the other session's token."""
        return self._session.get_token()

    def get_endpoint_data(self, session: Session, **kwargs: Json) -> Json:
        """Return data of an endpoint; the service is asked with the certificates of the given session."""
        self._session.get_token()  # Or the plugin would ask Keystone for one with them, too.
        return _plugin(self._session).get_endpoint_data(session, **kwargs)

    def get_endpoint(self, session: Session, **kwargs: Json) -> str | None:
        """Return the address of an endpoint; see get_endpoint_data."""
        self._session.get_token()
        endpoint: str | None = _plugin(self._session).get_endpoint(session, **kwargs)
        return endpoint

    def get_project_id(self, session: Session, **kwargs: Json) -> str | None:
        """Return the other session's project."""
        return self._session.get_project_id()

    def get_user_id(self, session: Session, **kwargs: Json) -> str | None:
        """Return the other session's user."""
        return self._session.get_user_id()

    def invalidate(self) -> bool:
        """Forget the other session's token: a service has refused it."""
        return bool(self._session.invalidate())


def _plugin(session: Session) -> Json:
    assert session.auth is not None, "a session without rights calls no service"
    return session.auth


def derived_session(
    session: Session,
    verify: bool | str | None,
    cert: str | tuple[str, str] | None,
    http: requests.Session | None = None,
) -> Session:
    """Return a session with the rights of another one, and certificates of its own.

    :param http: sends the requests; None: a new one.
    """
    return Session(
        auth=_AuthOfSession(session),
        session=http,
        verify=session.verify if verify is None else verify,
        cert=session.cert if cert is None else cert,
        timeout=session.timeout,
        user_agent=session.user_agent,
    )


def _check_listed(adapter: Adapter) -> None:
    """Check that the service has an address, without asking it.

    :raises NoSuchService: the service catalog has no endpoint of the service.
    """
    try:
        address = adapter.endpoint_override or adapter.get_endpoint()
    except (exceptions.EndpointNotFound, exceptions.CatalogException) as error:
        raise NoSuchService(f"the cloud has no service of type {adapter.service_type}: {error}") from error
    if address is None:
        raise NoSuchService(f"the cloud has no service of type {adapter.service_type}")


def _endpoint_data(adapter: Adapter) -> discover.EndpointData:
    """Return the address of the service, with the version that is asked for.

    :raises NoSuchService: the service catalog has no endpoint of the service.
    :raises ServiceUnavailable: the service did not say which versions it has.
    """
    try:
        data = adapter.get_endpoint_data()
    except (exceptions.EndpointNotFound, exceptions.CatalogException, ValueError) as error:
        # ValueError is keystoneauth's where the catalog has two names of the service, and neither fits.
        raise NoSuchService(f"the cloud has no service of type {adapter.service_type}: {error}") from error
    except exceptions.ClientException as error:
        raise ServiceUnavailable(f"{adapter.service_type}: {error}") from error
    if data is None or data.api_version is None:
        # The service did not answer, or without its versions.  keystoneauth takes the address as it is then,
        # or none at all: calls would fail with 404, or as if the service catalog lacked the service.
        where = adapter.endpoint_override or "its endpoint" if data is None else data.url
        text = f"{where} does not say that it has version {adapter.min_version}"
        raise ServiceUnavailable(f"{adapter.service_type}: {text}")
    return data


def _number(version: str | None) -> tuple[float, ...] | None:
    return None if version is None else discover.normalize_version_number(version)
