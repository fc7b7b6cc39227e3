"""The services as the caller of a request reaches them: with the caller's token, and for a short time."""

import dataclasses
from collections.abc import Callable

from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ..keystone.caller import CallerAccess
from ..keystone.client_options import ClientOptions, ServiceOptions
from ..keystone.service_clients import ServiceClients
from ..resources.openstack.service import INTERFACES, Service
from ..shapes import Json

MakeSession = Callable[[BaseAuthPlugin, dict[str, Json]], Session]
"""Makes a session with the rights of a plugin, and the cache of versions that all sessions share.

The cache holds nothing that belongs to a project.
"""


class CallerServices:
    """Makes clients of services for callers.  Thread-safe.

    :param within: seconds that a call may take, without a second try: a thread must not wait much longer
        than the request does.
    """

    def __init__(self, options: ClientOptions, make_session: MakeSession, *, within: float) -> None:
        self._options = options
        self._clients = ServiceClients(
            ClientOptions(
                _hurried(options.default, within),
                {name: _hurried(item, within) for name, item in options.services.items()},
            )
        )
        self._make_session = make_session
        self._versions: dict[str, Json] = {}

    def has(self, access: CallerAccess, service: str) -> bool:
        """Return whether the caller's service catalog has a service that Stoker knows how to ask."""
        return service in INTERFACES and access.has_service(service, self._options.of(service))

    def service(
        self,
        access: CallerAccess,
        service: str,
        checkpoint: Callable[[], None] = lambda: None,
        microversion: str = "",
    ) -> Service:
        """Return a client of a service.

        :param checkpoint: called between the pages of a list; what it raises ends the list.
        :param microversion: the newest to be used; "": that of the service's interface.
        :raises NoSuchService: the caller's service catalog has none.
        :raises ServiceUnavailable: it does not tell its versions.
        """
        interface = INTERFACES[service]
        session = self._make_session(access.auth(), self._versions)
        newest = microversion or interface.microversion
        adapter = self._clients.adapter(session, service, interface.version, newest)
        return Service(adapter, checkpoint)


def _hurried(options: ServiceOptions, within: float) -> ServiceOptions:
    timeout = within if options.timeout is None else min(within, options.timeout)
    return dataclasses.replace(options, timeout=timeout, connect_retries=0, status_code_retries=0)
