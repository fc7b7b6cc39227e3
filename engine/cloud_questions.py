"""Questions about objects of the cloud, asked of its services with the token of a request's caller."""

from ..keystone.caller import CallerAccess
from ..keystone.service_clients import NoSuchService, ServiceUnavailable
from ..resources.contract.errors import StepError
from ..resources.openstack.names import KINDS, NameNotFound, NameNotUnique, find
from ..resources.openstack.service import UnreadableAnswer
from .caller_services import CallerServices
from .cloud import NotAnswered
from .planning.requests import Question


class ServiceQuestions:
    """Asks the services.  Thread-safe."""

    def __init__(self, services: CallerServices) -> None:
        self._services = services

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
        if not self._services.has(access, kind.service):
            return f"the service catalog has no service of type {kind.service}"
        try:
            find(self._services.service(access, kind.service), kind, question.value)
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


def _no_queue(value: str) -> str | None:
    """Return the error of a queue's name, None if it is right; Zaqar makes queues as they are used."""
    return None if 0 < len(value) <= 64 else "the name of a queue has 1 to 64 characters"
