"""Reading the files of a stack from a container of the user's in Swift, with the token of the request."""

import time
import urllib.parse
from collections.abc import Callable, Collection

from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ..keystone.caller import CallerAccess
from ..keystone.client_options import ClientOptions
from .errors import ContainerNotRead, NoContainers

SERVICE = "object-store"
MOST_FILES = 1000
"""Files of a container: each costs a request to Swift."""
_PIECE = 65536


class ContainerFiles:
    """Reads containers.  Thread-safe.

    :param make_session: makes a session with the rights of a plugin.
    :param max_bytes: bytes that all files together may have.
    :param seconds: seconds that reading all of them may take.
    """

    def __init__(
        self,
        options: ClientOptions,
        make_session: Callable[[BaseAuthPlugin], Session],
        *,
        max_bytes: int,
        seconds: float,
    ) -> None:
        self._options = options
        self._make_session = make_session
        self._max_bytes = max_bytes
        self._seconds = seconds

    def read(self, access: CallerAccess | None, container: str, present: Collection[str]) -> dict[str, str]:
        """Return the files of a container, without those that the request has itself.

        :param access: access of the request's caller; None: nothing is known of a cloud.
        :raises NoContainers: the cloud has no Swift.
        :raises ContainerNotRead: there is no such container, or it is too large, or Swift does not answer.
        """
        options = self._options.of(SERVICE)
        if access is None or not access.has_service(SERVICE, options):
            raise NoContainers
        adapter = Adapter(
            self._make_session(access.auth()),
            service_type=SERVICE,
            interface=options.interface,
            region_name=options.region_name,
            endpoint_override=options.endpoint_override,
        )
        until = time.monotonic() + self._seconds
        try:
            return self._files(adapter, container, set(present), until)
        except exceptions.HttpError as error:
            raise ContainerNotRead(container, f"Swift answers {error.http_status}") from error
        except (KeyError, TypeError, ValueError) as error:  # requests has errors that are both.
            raise ContainerNotRead(container, "the answer of Swift is malformed") from error
        except (exceptions.ClientException, OSError) as error:
            raise ContainerNotRead(container, f"Swift is unavailable: {type(error).__name__}") from error

    def _files(
        self, adapter: Adapter, container: str, present: Collection[str], until: float
    ) -> dict[str, str]:
        place = "/" + urllib.parse.quote(container, safe="")
        answer = adapter.get(f"{place}?format=json&limit={MOST_FILES + 1}", timeout=_remaining(until))
        listed = {str(item["name"]): int(item["bytes"]) for item in answer.json() if "name" in item}
        sizes = {name: size for name, size in listed.items() if name not in present}
        if len(sizes) > MOST_FILES:
            raise ContainerNotRead(container, f"it has more than {MOST_FILES} files")
        if sum(sizes.values()) > self._max_bytes:
            raise self._too_large(container, sum(sizes.values()))
        texts: dict[str, str] = {}
        total = 0
        for name in sizes:
            if time.monotonic() >= until:
                raise ContainerNotRead(container, f"its files did not arrive within {self._seconds:g} s")
            body = self._object(
                adapter, f"{place}/{urllib.parse.quote(name)}", self._max_bytes - total, until
            )
            total += len(body)
            if total > self._max_bytes:
                raise self._too_large(container, total)
            try:
                texts[name] = body.decode()
            except UnicodeDecodeError as error:
                raise ContainerNotRead(container, f"{name:.300} is not a text in UTF-8") from error
        return texts

    def _object(self, adapter: Adapter, path: str, most: int, until: float) -> bytes:
        """Return an object; of one that has grown since it was listed a little more than `most` bytes."""
        with adapter.get(path, stream=True, timeout=_remaining(until)) as answer:
            body = b""
            for piece in answer.iter_content(_PIECE):
                body += piece
                if len(body) > most or time.monotonic() >= until:
                    break
            return body

    def _too_large(self, container: str, size: int) -> ContainerNotRead:
        return ContainerNotRead(
            container,
            f"Total size of files to download ({size} bytes) exceeds maximum allowed "
            f"({self._max_bytes} bytes).",
        )


def _remaining(until: float) -> float:
    return max(0.001, until - time.monotonic())
