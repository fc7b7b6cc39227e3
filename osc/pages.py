"""The pages of a list that a command reads: none twice, not without end, and all at one service."""

import urllib.parse

from osc_lib import exceptions as exc

MOST_PAGES = 1000
_PORTS = {"http": 80, "https": 443}


class PageTrail:
    """The pages of one list that were read.

    :param endpoint: the service's address; None: pages are markers of our own requests.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint
        self._pages: set[str] = set()

    def checked(self, page: str) -> str:
        """Return the address or the marker of the next page.

        :raises CommandError: it was read already, there are too many, or it is elsewhere, where the request
            would take the user's token.
        """
        if page in self._pages:
            raise exc.CommandError("The service's list has no end: a page of it comes twice")
        if len(self._pages) >= MOST_PAGES:
            raise exc.CommandError(f"The service's list has more than {MOST_PAGES} pages")
        is_path = page.startswith("/") and not page.startswith("//")
        if self._endpoint is not None and not is_path and _origin(page) != _origin(self._endpoint):
            raise exc.CommandError("The service's list continues at another service; it is not read there")
        self._pages.add(page)
        return page


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
