"""The pages of a service's list: all of them, within the bounds of one list.

A list may grow while it is read, and a service that is broken, or not what its name says, may have a next
page without end.  So a list has most pages, bytes and seconds; none of its addresses comes twice; and none
leads to another origin, which would get the user's token.
"""

import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..shapes import JsonMap

MOST_PAGES = 1000
MOST_BYTES = 64 * 1024 * 1024
LONGEST = 300.0
"""Seconds for all pages of one list."""
_PORTS = {"http": 80, "https": 443}


class EndlessList(Exception):
    """The list exceeds a bound; the text names it."""


@dataclass(frozen=True)
class ListReader:
    """Reads lists page by page.

    :ivar read: returns the answer for a page's address, and its size in bytes.
    :ivar following: returns the address of the page after an answer; None: it was the last one.
    :ivar checkpoint: called before each further page; whatever it raises ends the list.
    :ivar endpoint: returns the service's address, which pages are relative to.
    """

    read: Callable[[str], tuple[JsonMap, int]]
    following: Callable[[JsonMap], str | None]
    checkpoint: Callable[[], None]
    endpoint: Callable[[], str]
    monotonic: Callable[[], float] = time.monotonic

    def pages(self, first: str) -> Iterator[JsonMap]:
        """Yield the answers, from the address of the first page on.

        :raises EndlessList: the list exceeds a bound, or leads elsewhere.
        """
        until = self.monotonic() + LONGEST
        seen: set[str] = set()
        size = 0
        address: str | None = first
        while address is not None:
            if address in seen:
                raise EndlessList("a page of its list follows itself")
            if len(seen) >= MOST_PAGES:
                raise EndlessList(f"its list has more than {MOST_PAGES} pages")
            if seen:
                self.checkpoint()
                if self.monotonic() > until:
                    raise EndlessList(f"its list takes more than {LONGEST:g} s")
            seen.add(address)
            answer, length = self.read(address)
            size += length
            if size > MOST_BYTES:
                raise EndlessList(f"its list has more than {MOST_BYTES} bytes")
            yield answer
            address = self.following(answer)
            if address is not None:
                check_origin(self.endpoint, address)


def check_origin(endpoint: Callable[[], str], address: str) -> None:
    """Check that a link of an answer leads to the service that has given it.

    :raises EndlessList: it leads elsewhere.
    """
    if address.startswith("/") and not address.startswith("//"):
        return
    own = endpoint()
    try:
        if _origin(urllib.parse.urljoin(f"{own}/", address)) == _origin(own):
            return
    except ValueError:  # No address at all.
        pass
    raise EndlessList("a page of its list is at another host, port or scheme than the service")


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
