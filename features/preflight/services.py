"""Readings of lists and limits, asked of the services with the token of a request's caller."""

import dataclasses
from collections.abc import Callable

from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ...keystone.caller import CallerAccess
from ...keystone.client_options import ClientOptions, ServiceOptions
from ...keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from ...resources.contract.errors import StepError
from ...resources.openstack.service import INTERFACES, RemoteNotFound, Service, object_of
from ...shapes import Json
from .reader import ANSWERED_WITHIN, NotRead, Reading

_PAGE = 1000
"""Members of one page of a list; a service may make smaller ones."""


class ServiceReadings:
    """Asks the services.  Thread-safe.

    :param make_session: makes a session with the rights of a plugin, and the cache of versions that all
        sessions share: it holds nothing that belongs to a project.
    """

    def __init__(
        self, options: ClientOptions, make_session: Callable[[BaseAuthPlugin, dict[str, Json]], Session]
    ) -> None:
        self._options = options
        # A thread must not wait much longer than the request does.
        self._clients = ServiceClients(
            ClientOptions(
                _hurried(options.default),
                {name: _hurried(item) for name, item in options.services.items()},
            )
        )
        self._make_session = make_session
        self._versions: dict[str, Json] = {}

    def has_service(self, access: CallerAccess, service: str) -> bool:
        """Return whether the caller's service catalog has a service that Stoker knows how to ask."""
        return service in INTERFACES and access.has_service(service, self._options.of(service))

    def ask(self, access: CallerAccess, reading: Reading, checkpoint: Callable[[], None]) -> Json:
        """Return the answer to a reading.

        :param checkpoint: called between the pages of a list; it raises NotRead to end the reading.
        :raises NotRead: the service does not tell.
        """
        interface = INTERFACES[reading.service]
        session = self._make_session(access.auth(), self._versions)
        try:
            adapter = self._clients.adapter(
                session, reading.service, interface.version, interface.microversion
            )
            service = Service(adapter, checkpoint)
            query = dict(reading.query)
            if reading.is_list:
                limit = {} if reading.service in _UNPAGED else {"limit": _PAGE}
                return service.list_all(reading.path, reading.key, **{**limit, **query})
            return object_of(service.get(reading.path, **query), reading.key)
        except RemoteNotFound as error:
            if not reading.is_list:
                return {}
            raise NotRead(str(error)) from error
        except NoSuchService as error:
            raise NotRead(str(error)) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise NotRead("its answer is malformed") from error
        except ServiceUnavailable as error:
            raise NotRead("its versions are unknown") from error
        except StepError as error:
            raise NotRead(str(error)) from error


_UNPAGED = frozenset({"load-balancer"})
"""Services that refuse a limit above their own, or count members of all projects with it."""


def _hurried(options: ServiceOptions) -> ServiceOptions:
    timeout = ANSWERED_WITHIN if options.timeout is None else min(ANSWERED_WITHIN, options.timeout)
    return dataclasses.replace(options, timeout=timeout, connect_retries=0, status_code_retries=0)
