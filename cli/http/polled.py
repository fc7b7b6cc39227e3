"""The connections of the HTTP server by their file descriptors, and what its thread waits for on each.

The loop of waitress asks every connection in each round whether it is to be read or written.  With a thousand
of them a round takes milliseconds, and each request has two rounds.  Here a round asks those only that may
have changed.
"""

import contextlib
import select
import typing
from collections import deque
from collections.abc import Iterable, Iterator

from waitress import wasyncore


class PolledMap(dict[int, typing.Any]):
    """A map of waitress's: its connections, its listening socket and its trigger, by their descriptors.

    The server's thread uses it; any thread may call `touch` and `answering`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._poll = select.poll()
        self._flags: dict[int, int] = {}
        self._touched: deque[int] = deque()
        self._answering: list[int] = []

    def __setitem__(self, descriptor: int, item: typing.Any) -> None:
        super().__setitem__(descriptor, item)
        self.touch(descriptor)

    def __delitem__(self, descriptor: int) -> None:
        super().__delitem__(descriptor)
        self.touch(descriptor)

    def touch(self, descriptor: int) -> None:
        """Let the next round ask the connection what it waits for."""
        self._touched.append(descriptor)

    @contextlib.contextmanager
    def answering(self, descriptor: int) -> Iterator[None]:
        """Let each round ask the connection, while a worker answers its request and so may change it.

        At its end waitress wakes the server's thread.  That may run before this context ends or after it, and
        finds the connection either way: so it is touched first, then removed.
        """
        self._answering.append(descriptor)
        try:
            yield
        finally:
            self.touch(descriptor)
            self._answering.remove(descriptor)

    def serve(self, seconds: float) -> None:
        """Serve the connections that are ready, or wait for one, so many seconds at most."""
        touched = {self._touched.popleft() for _ in range(len(self._touched))}
        self._renew(touched.union(self._answering))
        for descriptor, flags in self._poll.poll(1000 * seconds):
            if (item := self.get(descriptor)) is not None:
                wasyncore.readwrite(item, flags)
                self.touch(descriptor)

    def touch_all(self) -> None:
        """Let the next round ask all connections."""
        self._touched.extend(self)

    def _renew(self, descriptors: Iterable[int]) -> None:
        for descriptor in descriptors:
            item = self.get(descriptor)
            flags = 0 if item is None else _flags_of(item)
            if flags == self._flags.get(descriptor, 0):
                continue
            if flags:
                self._poll.register(descriptor, flags)
                self._flags[descriptor] = flags
            else:
                self._poll.unregister(descriptor)
                del self._flags[descriptor]


def _flags_of(item: typing.Any) -> int:
    """Return the events that a connection waits for, as the loop of waitress has them."""
    flags = select.POLLIN | select.POLLPRI if item.readable() else 0
    return flags | select.POLLOUT if item.writable() and not item.accepting else flags
