"""Questions about objects of the cloud, asked of its services with the token of a request's caller."""

import dataclasses
from collections.abc import Callable

from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ..keystone.caller import CallerAccess
from ..keystone.client_options import ClientOptions, ServiceOptions
from ..keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from ..resources.contract.errors import StepError
from ..resources.openstack.names import KINDS, NameNotFound, NameNotUnique, find
from ..resources.openstack.service import INTERFACES, Service, UnreadableAnswer
from ..shapes import Json
from .cloud import ANSWERED_WITHIN, NotAnswered
from .planning.requests import Question


class ServiceQuestions:
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

    def ask(self, access: CallerAccess, question: Question) -> str | None:
        """Return the error of a question's value, None if the value is right.

        :raises NotAnswered: the service does not say.
        """
        if question.check == "zaqar.queue":
            return _no_queue(question.value)
        if question.check not in KINDS:
            raise NotAnswered("Stoker cannot ask about it")
        kind = KINDS[question.check]
        if question.check == "nova.keypair" and not question.value:
            return None  # As in Heat, servers may have none.
        if not access.has_service(kind.service, self._options.of(kind.service)):
            return f"the service catalog has no service of type {kind.service}"
        interface = INTERFACES[kind.service]
        session = self._make_session(access.auth(), self._versions)
        try:
            adapter = self._clients.adapter(session, kind.service, interface.version, interface.microversion)
            find(Service(adapter), kind, question.value)
        except (NameNotFound, NameNotUnique, NoSuchService) as error:
            return str(error)
        except (UnreadableAnswer, AttributeError, KeyError, TypeError, ValueError) as error:
            raise _not_answered(kind.service, "its answer is malformed") from error
        except StepError as error:
            raise _not_answered(kind.service, getattr(error, "kind", "unavailable or too slow")) from error
        except ServiceUnavailable as error:
            raise _not_answered(kind.service, "its versions are unknown") from error
        return None


def _not_answered(service: str, problem: str) -> NotAnswered:
    """Return the error without the service's own text and address, which hold a value that may be secret."""
    return NotAnswered(f"{service}: {problem}")


def _hurried(options: ServiceOptions) -> ServiceOptions:
    return dataclasses.replace(options, timeout=ANSWERED_WITHIN, connect_retries=0, status_code_retries=0)


def _no_queue(value: str) -> str | None:
    """Return the error of a queue's name, None if it is right; Zaqar makes queues as they are used."""
    return None if 0 < len(value) <= 64 else "the name of a queue has 1 to 64 characters"
