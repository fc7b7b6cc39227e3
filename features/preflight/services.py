"""Readings of lists and limits, asked of the services with the token of a request's caller."""

from collections.abc import Callable

from ...engine.caller_services import CallerServices
from ...keystone.caller import CallerAccess
from ...keystone.service_clients import NoSuchService, ServiceUnavailable
from ...resources.contract.errors import StepError
from ...resources.openstack.service import RemoteNotFound, object_of
from ...shapes import Json
from .reader import NotRead, Reading

_PAGE = 1000
"""Members of one page of a list; a service may make smaller ones."""


class ServiceReadings:
    """Asks the services.  Thread-safe."""

    def __init__(self, services: CallerServices) -> None:
        self._services = services

    def ask(self, access: CallerAccess, reading: Reading, checkpoint: Callable[[], None]) -> Json:
        """Return the answer to a reading.

        :param checkpoint: called between the pages of a list; it raises NotRead to end the reading.
        :raises NotRead: the service does not tell.
        """
        try:
            service = self._services.service(access, reading.service, checkpoint, reading.microversion)
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
