"""TCP connections between two processes, which can be cut, held or slowed down."""

import asyncio
import contextlib
import enum
import random
import socket
import struct
import threading
import typing
from collections.abc import Callable, Coroutine, Sequence

from harness.ports import HOST, free_port

Address = tuple[str, int]
T = typing.TypeVar("T")
CHUNK = 65536
CONNECT_WITHIN = 5.0
"""Seconds."""


class LinkState(enum.StrEnum):
    """The ways in which a link carries bytes."""

    OPEN = "passes everything on"
    CUT = "resets what is open and what comes"
    HELD = "passes nothing on, and everything later, as after a partition"
    SILENT = "passes nothing on, and resets everything later"
    SLOW = "passes everything on, late"


class Link:
    """A port that leads to the first of some addresses that accepts a connection.

    Use `Links.add` to make one.  Any thread may set its state.

    :ivar port: its port on the loopback interface.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, targets: Sequence[Address], delay: float) -> None:
        self.port = free_port()
        self._loop = loop
        self._targets = targets
        self._delay = delay
        self._state = LinkState.OPEN
        self._passes = asyncio.Event()
        self._passes.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_refused: Callable[[int], bool] = lambda port: False
        self._random = random.Random(self.port)

    async def listen(self) -> asyncio.Server:
        """Accept connections from now on."""
        return await asyncio.start_server(self._serve, HOST, self.port, backlog=512)

    def set(self, state: LinkState) -> None:
        """Change the state, at once."""
        _run(self._loop, self.enter(state))

    async def enter(self, state: LinkState) -> None:
        """Change the state; for the links' own thread."""
        if state == LinkState.CUT or self._state == LinkState.SILENT:
            self._reset()
        self._state = state
        if state in (LinkState.HELD, LinkState.SILENT):
            self._passes.clear()
        else:
            self._passes.set()

    def refuse(self, is_refused: Callable[[int], bool]) -> None:
        """Reset connections whose client's port is refused, those that are open and those that come."""
        _run(self._loop, self._refuse(is_refused))

    async def _refuse(self, is_refused: Callable[[int], bool]) -> None:
        self._is_refused = is_refused
        for writer in self._writers:
            if _port_of(writer, "sockname") == self.port and is_refused(_port_of(writer, "peername")):
                _reset(writer)

    def _reset(self) -> None:
        for writer in self._writers:
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        far_writer: asyncio.StreamWriter | None = None
        try:
            await self._passes.wait()
            if self._state == LinkState.CUT or self._is_refused(_port_of(writer, "peername")):
                _reset(writer)
                return
            far_reader, far_writer = await self._connect()
            self._writers.add(far_writer)
            pumps = [self._pump(reader, far_writer), self._pump(far_reader, writer)]
            await asyncio.gather(*pumps)
        except OSError:
            pass
        finally:
            for end in filter(None, (writer, far_writer)):
                self._writers.discard(end)
                end.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for host, port in self._targets:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_WITHIN)
        raise ConnectionError("no target accepts a connection")

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._passes.wait()
            if self._state == LinkState.SLOW:
                await asyncio.sleep(self._delay * self._random.uniform(0.5, 1.5))
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class Links:
    """Links that share one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._all: list[Link] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="links")
        self._thread.start()

    def add(self, *targets: Address, delay: float = 0.2) -> Link:
        """Return a new link.

        :param targets: tried in this order for each connection.
        :param delay: seconds by which a slow link delays each chunk, on the average.
        """
        return _run(self._loop, self._add(targets, delay))

    async def _add(self, targets: Sequence[Address], delay: float) -> Link:
        link = Link(self._loop, targets, delay)
        self._servers.append(await link.listen())
        self._all.append(link)
        return link

    def close(self) -> None:
        """Reset all connections, and end the thread."""
        _run(self._loop, self._cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for link in self._all:
            await link.enter(LinkState.CUT)
        await asyncio.gather(*tasks, return_exceptions=True)


def _port_of(writer: asyncio.StreamWriter, end: str) -> int:
    """Return the port of an end of a connection; 0: it is closed.

    :param end: sockname or peername.
    """
    address = writer.get_extra_info(end)
    return int(address[1]) if address else 0


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection so that the other end sees an error, not an end."""
    peer = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _run(loop: asyncio.AbstractEventLoop, job: Coroutine[typing.Any, typing.Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(job, loop).result(60)
