"""Sends messages to queues of Zaqar, with the rights of the stacks' users."""

import typing
from collections.abc import Callable, Sequence

from keystoneauth1 import exceptions

from ..db.event_sinks import SinkRow
from ..db.ids import StackId
from ..keystone.delegated_auth import CredentialGone, KeystoneUnavailable
from ..keystone.service_clients import NoSuchService, ServiceClients, ServiceUnavailable
from ..sealing.sealer import SealError
from ..shapes import Json

if typing.TYPE_CHECKING:
    from keystoneauth1.session import Session

SERVICE = "messaging"
VERSION = "2"
ANSWERED_WITHIN = 10.0
"""Seconds within which Zaqar must answer: less than a sink stays taken for one request."""
MOST_TEXT = 500
"""Characters of a refusal that become part of a reason."""
TOO_MUCH = frozenset({400, 413})
"""Status codes of requests that are wrong, or larger than the service or the queue allows."""


class SendFailed(Exception):
    """The queue did not take the messages; the text says why."""


class RequestRefused(SendFailed):
    """The service refuses this request: it may accept a smaller one."""


class Post(typing.Protocol):
    """Sends messages to an event sink.  Thread-safe."""

    def __call__(self, sink: SinkRow, messages: Sequence[Json]) -> None:
        """Send the bodies of messages, in their order.

        :raises RequestRefused: the service refuses this request; it may accept a smaller one.
        :raises SendFailed: the service did not take the messages.
        """


class ZaqarQueues:
    """Sends messages by version 2 of Zaqar's API.  Thread-safe.

    :param session: returns a session with the rights of a root stack's user; see Delegations.session.
    """

    def __init__(self, session: "Callable[[StackId], Session]", clients: ServiceClients) -> None:
        self._session = session
        self._clients = clients

    def post(self, sink: SinkRow, messages: Sequence[Json]) -> None:
        """Send the bodies of messages, in their order; Zaqar creates a queue that does not exist.

        :raises RequestRefused: the service refuses this request; it may accept a smaller one.
        :raises SendFailed: the service did not take the messages.
        """
        body = {"messages": [{"ttl": sink.ttl, "body": message} for message in messages]}
        # Zaqar hides a client's messages from the client itself, so nobody else has this id.
        headers = {"Client-ID": sink.id}
        try:
            adapter = self._clients.adapter(self._session(sink.root_id), SERVICE, VERSION, None)
            adapter.post(
                f"/queues/{sink.target}/messages", json=body, headers=headers, timeout=ANSWERED_WITHIN
            )
        except (CredentialGone, KeystoneUnavailable) as error:
            raise SendFailed(f"Keystone: {error}") from error
        except (NoSuchService, ServiceUnavailable, SealError) as error:
            raise SendFailed(str(error)) from error
        except exceptions.HttpError as error:
            reason = error.message if error.response is None else error.response.text
            text = f"{SERVICE} {error.http_status}: {str(reason)[:MOST_TEXT]}"
            raise (RequestRefused if error.http_status in TOO_MUCH else SendFailed)(text) from error
        except exceptions.ClientException as error:
            raise SendFailed(f"{SERVICE}: {str(error)[:MOST_TEXT]}") from error
